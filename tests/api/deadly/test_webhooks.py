"""Killing the API while providers tell it something: what was answered is stored, what is sent again counts once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.deadly.test_deadly import Servers
from tests.api.outside import SECRETS, VARIABLE, ending, parked, providers_file, signed, step
from tests.api.rig import Rig, rig
from windlass.core.states import StepState
from windlass.engine.claim import Claimed

JOBS = 12
KILLS = 6
AGAIN = 200


@pytest.fixture
def servers(fresh_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    monkeypatch.setenv(VARIABLE, SECRETS)
    providers_file(tmp_path)
    made = Servers(fresh_dsn, tmp_path)
    yield made
    made.close()


@pytest.fixture
async def api(fresh_dsn: str, tmp_path: Path, servers: Servers) -> AsyncIterator[Rig]:
    """What makes the jobs, and looks at them; the webhooks go to the servers."""
    async with rig(fresh_dsn, tmp_path, providers=providers_file(tmp_path)) as made:
        yield made


async def tell(url: str, external_id: str, id: str, output: object = None) -> str | None:
    """What the server says; None when it dies."""
    body = json.dumps({"id": external_id, "status": "SUCCEEDED", "output": output}).encode()
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, verify=False) as client:
        try:
            answer = await client.post("/webhooks/hooks", content=body, headers=signed(body, time.time(), id))
        except httpx.TransportError:
            return None
    assert answer.status_code == 200, answer.text
    return str(answer.json()["status"])


async def only_once(api: Rig, ones: list[Claimed]) -> None:
    for number, one in enumerate(ones):
        view = await step(api, one.job_id)
        assert (view.state, view.output) == (StepState.COMPLETED, number)
        assert len((await ending(api, one.job_id))["step.completed"]) == 1


async def test_an_event_that_was_not_stored_was_not_answered_and_counts_when_it_comes_again(
    servers: Servers, api: Rig
) -> None:
    one = await parked(api, "ext-0")
    url = f"http://127.0.0.1:{servers.port}"
    servers.start("before apply")
    assert await tell(url, "ext-0", "m0", 0) is None
    assert (await step(api, one.job_id)).state is StepState.PARKED
    servers.start("after apply")
    assert await tell(url, "ext-0", "m0", 0) is None, "stored, and yet not answered"
    servers.start()
    assert await tell(url, "ext-0", "m0", 0) == "replayed"
    await only_once(api, [one])


async def test_two_servers_that_get_the_same_at_once_have_one_effect(servers: Servers, api: Rig) -> None:
    ones = [await parked(api, f"ext-{number}") for number in range(JOBS)]
    servers.start()
    urls = (api.url, f"http://127.0.0.1:{servers.port}")
    told = await asyncio.gather(
        *(tell(url, f"ext-{number}", f"m{number}", number) for number in range(JOBS) for _ in range(3) for url in urls)
    )
    assert sorted(map(str, told)) == ["applied"] * JOBS + ["replayed"] * (5 * JOBS)
    # And with messages that differ, about the same work.
    told = await asyncio.gather(*(tell(url, "ext-0", f"n{no}", "x") for no, url in enumerate(urls)))
    assert told == ["late", "late"]
    await only_once(api, ones)


async def test_a_provider_that_sends_until_it_is_answered_is_heard_whatever_dies(servers: Servers, api: Rig) -> None:
    ones = [await parked(api, f"ext-{number}") for number in range(JOBS)]
    url = f"http://127.0.0.1:{servers.port}"
    answers: list[str] = []
    unanswered = 0

    async def provider(number: int) -> None:
        nonlocal unanswered
        for _ in range(AGAIN):
            said = await tell(url, f"ext-{number}", f"m{number}", number)
            if said is not None:
                answers.append(said)
                return
            unanswered += 1
            await asyncio.sleep(0.02)
        raise AssertionError("it was never answered")

    telling = [asyncio.create_task(provider(number)) for number in range(JOBS)]
    for kill in range(KILLS):
        await asyncio.to_thread(servers.start, "before apply" if kill % 2 else "after apply")
        before = unanswered
        for _ in range(500):
            if unanswered > before:
                break
            await asyncio.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            servers.kill()
    await asyncio.to_thread(servers.start)
    await asyncio.gather(*telling)
    assert unanswered >= KILLS
    assert len(answers) == JOBS
    assert set(answers) <= {"applied", "replayed"}
    assert "replayed" in answers
    await only_once(api, ones)
