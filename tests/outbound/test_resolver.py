"""Names whose servers do not answer: they take the threads of their own caller, and of no other."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.rig import Rig, rig
from windlass.core.errors import Unavailable
from windlass.outbound import dial, resolver
from windlass.outbound.resolver import PER_CALLER_MAX, SystemResolver
from windlass.outbound.send import Sender

SECRET = "whsec_" + "c2VjcmV0" * 6


class Silence:
    """The machine's own `getaddrinfo`, but for names that end in `.silent`: it hangs on those, in its thread."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, **more: Any) -> list[Any]:
        self.asked.append(host)
        if host.endswith(".silent"):
            self.over.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return socket.getaddrinfo("localhost" if host.endswith(".good") else host, port, **more)


@pytest.fixture
def silence() -> Iterator[Silence]:
    made = Silence()
    yield made
    made.over.set()


async def until_asked(silence: Silence, count: int) -> None:
    while len(silence.asked) < count:
        await asyncio.sleep(0.01)


async def test_a_caller_waits_in_its_own_line(silence: Silence) -> None:
    names = SystemResolver(silence)
    crowd = [asyncio.create_task(names.resolve(f"{number}.silent", 80, "crowd")) for number in range(50)]
    await until_asked(silence, PER_CALLER_MAX)
    assert await names.resolve("a.good", 80, "ada")
    assert len(silence.asked) == PER_CALLER_MAX + 1
    late = asyncio.create_task(names.resolve("b.good", 80, "crowd"))
    # A name that waits in another caller's line is not waited for there.
    await asyncio.sleep(0)
    assert await names.resolve("b.good", 80, "ada")
    assert not late.done()
    silence.over.set()
    assert await late
    assert all(isinstance(one, socket.gaierror) for one in await asyncio.gather(*crowd, return_exceptions=True))


async def test_threads_are_counted_until_they_return(silence: Silence) -> None:
    names = SystemResolver(silence)
    for number in range(PER_CALLER_MAX):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(names.resolve(f"{number}.silent", 80, "crowd"), 0.01)
    await until_asked(silence, PER_CALLER_MAX)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(names.resolve("a.good", 80, "crowd"), 0.01)
    assert "a.good" not in silence.asked, "its share is taken by names that do not answer"
    silence.over.set()
    assert await names.resolve("b.good", 80, "crowd")
    assert "a.good" not in silence.asked, "the request that gave up left the line"


async def test_a_name_is_resolved_once_at_a_time(silence: Silence) -> None:
    names = SystemResolver(silence)
    tasks = [asyncio.create_task(names.resolve("one.silent", 80, f"caller{number}")) for number in range(9)]
    await until_asked(silence, 1)
    tasks[0].cancel()
    silence.over.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in found] == [asyncio.CancelledError] + [socket.gaierror] * 8
    assert silence.asked == ["one.silent"]


async def test_a_free_thread_goes_to_the_caller_with_the_fewest(silence: Silence) -> None:
    names = SystemResolver(silence, threads_max=3)
    first = [asyncio.create_task(names.resolve(f"{number}.silent", 80, "crowd")) for number in range(9)]
    await until_asked(silence, 3)
    other = asyncio.create_task(names.resolve("a.good", 80, "ada"))
    await asyncio.sleep(0)
    silence.over.set()
    assert await other
    await asyncio.gather(*first, return_exceptions=True)
    assert silence.asked.index("a.good") <= 5


async def test_a_line_has_an_end(silence: Silence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "LINE_MAX", 2)
    names = SystemResolver(silence, per_caller_max=1)
    tasks = [asyncio.create_task(names.resolve(f"{number}.silent", 80, "crowd")) for number in range(3)]
    await until_asked(silence, 1)
    with pytest.raises(Unavailable):
        await names.resolve("more.silent", 80, "crowd")
    silence.over.set()
    await asyncio.gather(*tasks, return_exceptions=True)


class Missing:
    """A `getaddrinfo` that knows no name while `is_missing`, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_missing = True

    def __call__(self, host: str, port: int, **more: Any) -> list[Any]:
        self.asked.append(host)
        if self.is_missing:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("203.0.113.7", port))]


async def test_a_failed_look_up_is_not_repeated_for_some_seconds() -> None:
    now_s, missing = 0.0, Missing()
    names = SystemResolver(missing, clock=lambda: now_s)
    for caller in ("ada", "bob", "ada"):
        with pytest.raises(socket.gaierror) as failed:
            await names.resolve("gone.example", 443, caller)
        assert failed.value.errno == socket.EAI_NONAME
    assert missing.asked == ["gone.example"]
    missing.is_missing = False
    assert await names.resolve("other.example", 443, "ada") == ["203.0.113.7"]
    now_s += resolver.FAILED_KEPT_S
    assert await names.resolve("gone.example", 443, "ada") == ["203.0.113.7"]
    # An address is asked for each time: what was checked is what is dialled.
    assert await names.resolve("gone.example", 443, "ada") == ["203.0.113.7"]
    assert missing.asked.count("gone.example") == 3


async def test_look_ups_in_line_share_a_failure() -> None:
    missing = Missing()
    names = SystemResolver(missing, per_caller_max=1)
    wanted = ["first.example", *["gone.example"] * 5]
    found = await asyncio.gather(*(names.resolve(host, 443, "ada") for host in wanted), return_exceptions=True)
    assert [type(one) for one in found] == [socket.gaierror] * 6
    assert missing.asked == ["first.example", "gone.example"]


async def test_only_so_many_failures_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "FAILED_MAX", 2)
    missing = Missing()
    names = SystemResolver(missing)
    for host in ("a.example", "b.example", "c.example", "c.example", "a.example"):
        with pytest.raises(socket.gaierror):
            await names.resolve(host, 443)
    assert missing.asked == ["a.example", "b.example", "c.example", "a.example"], "the oldest was forgotten"


async def test_another_callers_webhook_is_taken_while_names_hang(
    dsn: str, tmp_path: Path, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dial, "RESOLVE_WITHIN_S", 0.5)
    async with rig(dsn, tmp_path, webhook_loopback=True) as api:
        api.parts.sender = Sender(is_loopback_allowed=True, resolver=SystemResolver(silence))
        crowd = [asyncio.create_task(submit(api, api.other, f"{number}.silent")) for number in range(24)]
        await until_asked(silence, PER_CALLER_MAX)
        good = await submit(api, api.user, "ada.good")
        assert good == (202, None), "while every thread of the other caller hangs"
        # A name that was not resolved in time is no fault of the request.
        assert set(await asyncio.gather(*crowd)) == {(503, "unavailable")}


async def submit(api: Rig, client: Any, host: str) -> tuple[int, str | None]:
    webhook = {"url": f"http://{host}:8420/hook", "secret": SECRET}
    answer = await client.post("/jobs", json={"recipe": "hello", "webhook": webhook})
    return answer.status_code, answer.json().get("code")
