"""The fake provider: it forgets nothing, fails as it is told, and its journal says what was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from windlass.providers.adapter import StartRequest
from windlass.providers.adapters.generic import HttpAdapter
from windlass.providers.adapters.replicate import ReplicateAdapter
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import ProviderError
from windlass.testing.conformance.mailbox import WITHIN_S, Mailbox, mailbox
from windlass.testing.conformance.stage import external_id
from windlass.testing.fake_provider import FakeProvider, Fault, read_journal
from windlass.testing.fake_provider.faults import Faults
from windlass.testing.fake_provider.provider import CRASH_CODE


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    async with FakeProvider(tmp_path / "journal") as fake:
        yield fake


def generic(fake: FakeProvider) -> HttpAdapter:
    options = {"cancel": "DELETE /jobs/{id}", "find": "GET /jobs?key={key}"}
    return HttpAdapter(ProviderConfig("g", "http", base_url=fake.base_url("generic"), options=options))


def start(key: str, webhook_url: str | None = None, **fake: Any) -> StartRequest:
    return StartRequest(key, "m", {"fake": fake}, webhook_url)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not is_so():
            await asyncio.sleep(0.01)


async def statuses(mail: Mailbox, count: int) -> list[str]:
    return [(await mail.next()).json()["status"] for _ in range(count)]


async def test_a_crash_between_accept_and_answer_loses_nothing(fake: FakeProvider) -> None:
    adapter = generic(fake)
    await fake.fail(Fault("start", "crash_after", times=1))
    with pytest.raises(ProviderError) as caught:
        await adapter.start_job(start("k", seconds=None))
    assert caught.value.is_ambiguous
    assert await fake.ended() == CRASH_CODE and fake.pid is None
    url = fake.url
    await fake.start()
    assert fake.url == url
    id = external_id(await adapter.start_job(start("k", seconds=None)))
    assert fake.accepted() == {"k": 1}
    assert [entry.kind for entry in fake.entries()] == ["begun", "fault", "accepted", "begun", "repeated"]
    assert not (await adapter.get_job_status(id)).status.is_terminal
    await adapter.close()


async def test_a_crash_before_accept_takes_nothing(fake: FakeProvider) -> None:
    adapter = generic(fake)
    await fake.fail(Fault("start", "crash", times=1))
    with pytest.raises(ProviderError):
        await adapter.start_job(start("k"))
    assert await fake.ended() == CRASH_CODE
    assert fake.accepted() == {}
    await adapter.close()


async def test_a_provider_that_is_killed_sends_its_webhooks_later(fake: FakeProvider) -> None:
    adapter = generic(fake)
    async with mailbox() as mail:
        await fake.behave(seconds=None, webhook_tries=1)
        await fake.fail(Fault("webhook", "drop"))
        id = external_id(await adapter.start_job(start("k", mail.url)))
        await fake.finish()
        await until(lambda: any(entry.way == "webhook:drop" for entry in fake.entries("fault")))
        assert (await adapter.get_job_status(id)).status == "SUCCEEDED"
        await fake.kill()
        await fake.start()
        assert await statuses(mail, 1) == ["done"]
    await adapter.close()


async def test_keys_may_be_ignored(fake: FakeProvider) -> None:
    adapter = generic(fake)
    await fake.behave(honours_keys=False)
    first, second = [external_id(await adapter.start_job(start("k"))) for _ in range(2)]
    assert first != second and fake.accepted("generic") == {"k": 2} and fake.accepted("fal") == {}
    await adapter.close()


async def test_a_webhook_may_come_before_the_answer(fake: FakeProvider) -> None:
    adapter = generic(fake)
    async with mailbox() as mail:
        await fake.fail(Fault("webhook", "early", times=1))
        id = external_id(await adapter.start_job(start("k", mail.url, seconds=None)))
        assert mail.count == 1  # it was taken before start_job returned
        assert (await mail.next()).json()["id"] == id
    await adapter.close()


async def test_webhooks_may_be_doubled_reordered_delayed_and_dropped(fake: FakeProvider) -> None:
    adapter = generic(fake)
    await fake.behave(seconds=None)

    async def told(key: str, fault: Fault | None, count: int) -> list[str]:
        """What is told of work that is ended once its beginning was told, or was kept back by a fault."""
        before = len(fake.entries("fault"))
        await fake.fail(*([] if fault is None else [fault]))
        await adapter.start_job(start(key, mail.url))
        if fault is None or fault.after:
            first = await statuses(mail, 1)
        else:
            first = []
            await until(lambda: fault.kind == "reorder" or len(fake.entries("fault")) > before)
        await fake.finish()
        return first + await statuses(mail, count - len(first))

    async with mailbox() as mail:
        assert await told("plain", None, 2) == ["running", "done"]
        assert await told("doubled", Fault("webhook", "double", after=1, times=1), 3) == ["running", "done", "done"]
        assert await told("delayed", Fault("webhook", "delay", times=1, seconds=1.0), 2) == ["done", "running"]
        assert await told("dropped", Fault("webhook", "drop", times=1), 1) == ["done"]
        await until(lambda: len([entry for entry in fake.entries("webhook") if entry.answer == 200]) == 8)
        assert mail.count == 0
    await adapter.close()


async def test_the_beginning_may_be_told_after_the_end(fake: FakeProvider) -> None:
    adapter = generic(fake)
    async with mailbox() as mail:
        await fake.fail(Fault("webhook", "reorder"))
        await adapter.start_job(start("k", mail.url, seconds=0.5))
        assert await statuses(mail, 2) == ["done", "running"]
    await adapter.close()


async def test_a_webhook_that_is_not_taken_is_sent_again(fake: FakeProvider) -> None:
    adapter = generic(fake)
    await fake.behave(webhook_tries=3, webhook_again_s=0.01)
    async with mailbox(503) as mail:
        await adapter.start_job(start("k", mail.url))
        await until(lambda: len([entry for entry in fake.entries("webhook") if entry.way == "end"]) == 3)
        assert {entry.event for entry in fake.entries("webhook") if entry.way == "end"} == {
            fake.entries("webhook")[-1].event
        }
        assert {entry.answer for entry in fake.entries("webhook")} == {503}
    await adapter.close()


async def test_replicate_tells_only_what_was_asked_for(fake: FakeProvider) -> None:
    config = ProviderConfig("r", "replicate", base_url=fake.base_url("replicate"), options={"events": ["completed"]})
    adapter = ReplicateAdapter(config)
    async with mailbox() as mail:
        await adapter.start_job(StartRequest("k", "a/b", {"fake": {"seconds": 0.05}}, mail.url))
        assert await statuses(mail, 1) == ["succeeded"]
        await until(lambda: len(fake.entries("webhook")) == 1)
    await adapter.close()


async def test_it_can_be_asked_how_it_is(fake: FakeProvider) -> None:
    adapter = generic(fake)
    await fake.behave(seconds=None)
    ids = [external_id(await adapter.start_job(start(f"k{no}"))) for no in range(3)]
    await adapter.cancel_job(ids[0])
    assert await fake.finish(ids[1:2], "failed") == 1
    state = await fake.state()
    assert state["works"] == 3 and state["statuses"] == {"CANCELLED": 1, "FAILED": 1, "RUNNING": 1}
    assert state["counts"] == {"start": 3, "cancel": 1}
    assert [entry.id for entry in fake.entries("cancelled")] == ids[:1]
    with pytest.raises(ValueError, match="there is no fault"):
        Fault("start", "sulk")
    with pytest.raises(ValueError, match="unknown field `patience`"):
        await fake.behave(patience=1)
    await adapter.close()


async def test_many_at_once_are_all_kept(fake: FakeProvider) -> None:
    adapter = generic(fake)
    requests = [adapter.start_job(start(f"k{no % 50}", seconds=None)) for no in range(200)]
    ids = {external_id(started) for started in await asyncio.gather(*requests)}
    assert len(ids) == 50 and set(fake.accepted().values()) == {1}
    await fake.kill()
    assert {entry.id for entry in fake.entries("accepted")} == ids
    await adapter.close()


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b'{"kind":"begun","at":1.0}\n{"kind":"acc')
    assert [entry.kind for entry in read_journal(path)] == ["begun"]
    assert read_journal(tmp_path / "none") == []


def test_chance_is_the_same_every_time() -> None:
    def rolls(seed: int) -> list[bool]:
        faults = Faults(seed)
        faults.set([Fault("any", "lose", chance=0.5)])
        return [faults.pick("start", "fal") is not None for _ in range(50)]

    assert rolls(1) == rolls(1) != rolls(2)
    assert 10 < sum(rolls(1)) < 40


def test_a_fault_is_for_what_it_is_for() -> None:
    faults = Faults(0)
    faults.set([Fault("status", "lose", times=2, after=1, protocol="fal")])
    assert faults.pick("start", "fal") is None and faults.pick("status", "openai") is None
    assert [faults.pick("status", "fal") is not None for _ in range(4)] == [False, True, True, False]
    faults.set([Fault("any", "lose")])
    assert faults.pick("webhook", "fal") is None and faults.pick("list", "fal") is not None
