"""The stream of one job: every event in order, from any of them on, and then the end."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from tests.api.streams.script import finish, submit
from tests.api.streams.stage import staged
from tests.engine.rig import Rig, plan, task
from windlass.core.note import Note
from windlass.core.outcome import Failure, Fault, Report, Success
from windlass.engine import note, settle
from windlass.views import read


async def seqs(rig: Rig, job: UUID) -> list[str]:
    return [str(event.seq) for event in await read.events(rig.db, job)]


async def test_a_job_is_told_to_its_end(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        job = await submit(rig)
        client = await stage.job(job)
        await finish(rig)
        await client.to_the_end()
        assert client.ids == await seqs(rig, job)
        assert [frame.data["type"] for frame in client.named("job")] == [
            "job.submitted",
            "job.processing",
            "job.completed",
        ]
        running = next(frame for frame in client.named("step") if frame.data["type"] == "step.running")
        assert (running.data["step"], running.data["no"], running.data["attempt"]) == ("one", 0, 1)
        end = client.frames[-1]
        assert (end.event, end.id) == ("end", client.ids[-1])
        assert (end.data["job_id"], end.data["status"]) == (str(job), "COMPLETED")


async def test_a_reader_who_comes_back_with_any_number_gets_exactly_the_rest(rig: Rig) -> None:
    job = await submit(rig)
    one = await rig.claim_one()
    for number in range(200):
        await note.note(rig.db, [Note(job, one.no, one.attempt, progress_pct=number / 2, message=f"at {number}")])
    async with staged(rig.db) as stage:
        so_far = await seqs(rig, job)
        assert len(so_far) > 200
        clients = await asyncio.gather(*(stage.job(job, after) for after in range(len(so_far) + 1)))
        await settle.settle(rig.db, [Report(job, one.no, one.attempt, Success("1"))], spread=lambda: 0.0)
        whole = await seqs(rig, job)
        assert len(whole) > len(so_far)
        for after, client in enumerate(clients):
            await client.to_the_end()
            assert client.ids == whole[after:]
            assert client.frames[-1].event == "end"
        # The same for clients that connect after the end.
        for after in (0, 1, 100, len(whole) - 1, len(whole)):
            late = await stage.job(job, after)
            await late.to_the_end()
            assert late.ids == whole[after:]
            assert late.frames[-1].event == "end"


@pytest.mark.covers("SCR-93")
async def test_progress_is_told_as_it_was_said(rig: Rig) -> None:
    job = await submit(rig)
    one = await rig.claim_one()
    async with staged(rig.db) as stage:
        client = await stage.job(job)
        jobs = await stage.feed()
        await note.note(rig.db, [Note(job, one.no, one.attempt, progress_pct=40, message="half way, nearly")])
        await client.until(lambda: client.frames[-1].data.get("type") == "step.progress")
        await jobs.until(lambda: bool(jobs.ids))
        for data in (client.frames[-1].data, jobs.frames[-1].data):
            assert (data["progress_pct"], data["progress_message"]) == (40, "half way, nearly")
        assert jobs.frames[-1].data["status"] == "PROCESSING"


async def test_a_job_that_fails_ends_its_stream_with_how(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b", "a"), task("c", "b"), recipe="long"), caller="ann")
    async with staged(rig.db) as stage:
        client = await stage.job(job)
        await rig.run_one(Failure(Fault("broken", "it broke"), is_retryable=False))
        await client.to_the_end()
        assert client.ids == await seqs(rig, job)
        assert (client.frames[-1].event, client.frames[-1].data["status"]) == ("end", "FAILED")


async def test_children_of_a_fan_out_are_told_by_their_steps_name(rig: Rig) -> None:
    wide = plan(task("few"), task("many", each="[1, 2, 3]"), recipe="wide")
    job = await rig.submit(wide, caller="ann")
    async with staged(rig.db) as stage:
        client = await stage.job(job)
        await rig.run_out()
        await client.to_the_end()
        assert client.ids == await seqs(rig, job)
        steps = {frame.data["step"] for frame in client.named("step")}
        assert steps == {"few", "many"}
        assert len([frame for frame in client.named("step") if frame.data["type"] == "step.completed"]) == 5


async def test_a_large_payload_is_left_out_and_said_to_be(rig: Rig) -> None:
    job = await submit(rig)
    one = await rig.claim_one()
    preview = '"' + "x" * 20_000 + '"'
    async with staged(rig.db) as stage:
        client = await stage.job(job)
        await note.note(rig.db, [Note(job, one.no, one.attempt, preview=preview)])
        await client.until(lambda: client.frames[-1].data.get("type") == "step.preview")
        data = client.frames[-1].data
        assert (data["payload"], data["has_payload"]) == (None, True)


async def test_many_may_follow_one_job(rig: Rig) -> None:
    job = await submit(rig)
    async with staged(rig.db) as stage:
        clients = [await stage.job(job) for _ in range(20)]
        await finish(rig)
        whole = await seqs(rig, job)
        for client in clients:
            await client.to_the_end()
            assert client.ids == whole
        await stage.until(lambda: stage.hub.count == 0)


async def test_a_number_of_the_future_is_refused(rig: Rig) -> None:
    job = await submit(rig)
    async with staged(rig.db) as stage:
        assert (await stage.job(job, 99)).status == 400
        assert stage.hub.count == 0
