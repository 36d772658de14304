"""Traces: one for each job over all its processes; and a receiver that does not take them does no harm."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.telemetry.process import ROOT, plan, submitted, worker_process
from tests.telemetry.receiver import Receiver, receiving
from windlass.core.states import JobState
from windlass.store.database import Database
from windlass.telemetry.traces import LINKS_MAX, QUEUE_MAX, link_job, open_tracer, span_id
from windlass.views.read import Waiter, events

JOB = UUID("01997f00-0000-7000-8000-000000000001")
COUNT = 1_000


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(tmp_path) as made:
        yield made


async def test_a_job_is_one_trace_across_processes(dsn: str, db: Database, tmp_path: Path, receiver: Receiver) -> None:
    tracer = open_tracer(receiver.url, "submitter")
    two = plan("film", ("cut", "span", "first"), ("mix", "tick", "second"), ("show", "fail", "first"))
    async with (
        worker_process(dsn, "first", tmp_path, receiver.url) as (first, _),
        worker_process(dsn, "second", tmp_path, receiver.url) as (second, _),
    ):
        (job_id,) = await submitted(db, two, request_id="req-1")
        tracer.submitted(job_id, 0.001)
        view = await Waiter(db).wait(job_id, 30)
        assert view.finished_at is not None
        tracer.ended(job_id, "film", view.state, view.created_at, view.finished_at, "req-1")
        for process in (first, second):
            process.terminate()
            out, _ = await process.communicate()
            assert out.decode().strip() == "opentelemetry"
        await tracer.close()
    spans = {span["name"]: span for span in receiver.spans}
    assert sorted(spans) == ["cut", "film", "inner", "mix", "show", "submit"]
    assert {span["trace"] for span in receiver.spans} == {job_id.hex}
    root = spans["film"]["span"]
    assert root == f"{span_id(job_id):016x}"
    assert spans["film"]["parent"] == ""
    assert {spans[name]["parent"] for name in ("submit", "cut", "mix", "show")} == {root}
    assert spans["inner"]["parent"] == spans["cut"]["span"]
    assert {spans[name]["service"] for name in ("submit", "film")} == {"submitter"}
    assert {spans[name]["service"] for name in ("cut", "mix", "inner")} == {"windlass-worker"}
    facts = spans["mix"]["facts"]
    assert (facts["windlass.job"], facts["windlass.attempt"], facts["windlass.request_id"]) == (str(job_id), 1, "req-1")
    assert facts["windlass.outcome"] == "done"
    assert [name for name, span in sorted(spans.items()) if span["is_error"]] == ["film", "show"]


async def test_every_attempt_has_a_span_of_its_own(receiver: Receiver) -> None:
    tracer = open_tracer(receiver.url, "worker")
    for index in (None, 0, 1):
        for attempt in (1, 2):
            tracer.attempt(JOB, "film", "cut", index, attempt, None)("done")
    await tracer.close()
    assert len({span["span"] for span in receiver.spans}) == 6


async def test_a_child_has_a_span_in_its_parents_trace_and_each_links_to_the_other(receiver: Receiver) -> None:
    tracer = open_tracer(receiver.url, "server")
    child, at = uuid4(), datetime.now(UTC)
    tracer.ended(child, "dub", "COMPLETED", at, at, None, JOB)
    tracer.ended(JOB, "film", "COMPLETED", at, at, None)
    await tracer.close()
    found = {(span["trace"], span["name"]): span for span in receiver.spans}
    assert sorted(found) == sorted([(child.hex, "dub"), (JOB.hex, "dub"), (JOB.hex, "film")])
    below, root = found[JOB.hex, "dub"], found[JOB.hex, "film"]
    assert (below["parent"], below["links"], found[child.hex, "dub"]["links"]) == (root["span"], [child.hex], [JOB.hex])
    assert (found[child.hex, "dub"]["parent"], root["links"]) == ("", [])
    assert (below["facts"]["windlass.job"], below["facts"]["windlass.child"]) == (str(JOB), str(child))


async def test_a_request_goes_on_with_its_callers_trace_and_links_to_its_jobs(receiver: Receiver) -> None:
    tracer = open_tracer(receiver.url, "api")
    theirs, mine = uuid4(), uuid4()
    span = tracer.request(f"00-{theirs.hex}-00000000000000ab-01", mine)
    link_job(JOB)
    span.end("POST", "/jobs", 202, "req-1")
    tracer.request(f"00-{theirs.hex}-00000000000000ab-00", mine).end("GET", "/unsampled", 200, "req-2")
    for odd in (None, "", "00-junk", f"00-{'0' * 32}-{'0' * 16}-01", "00-" + "x" * 100_000):
        tracer.request(odd, mine).end("GET", "/own", 500, "req-3")
    for _ in range(2 * LINKS_MAX):
        link_job(JOB)
    await tracer.close()
    found = {span["name"]: span for span in receiver.spans}
    assert sorted(found) == ["GET /own", "POST /jobs"]
    ours = found["POST /jobs"]
    assert (ours["trace"], ours["parent"], ours["links"]) == (theirs.hex, "00000000000000ab", [JOB.hex])
    assert (found["GET /own"]["trace"], found["GET /own"]["parent"]) == (mine.hex, "")
    assert found["GET /own"]["is_error"]
    assert [span["name"] for span in receiver.spans].count("GET /own") == 5


async def finished_by(db: Database, jobs: list[UUID]) -> Counter[UUID]:
    """How many of these jobs each worker ran."""
    found: Counter[UUID] = Counter()
    for job_id in jobs:
        running = [event for event in await events(db, job_id) if event.type == "step.running"]
        found[UUID(running[-1].payload["worker"])] += 1
    return found


async def ended_by_itself(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 60) == 0


@pytest.mark.parametrize("how", ["hangs", "dies", "was never there"])
async def test_a_receiver_that_is_no_good_does_not_slow_a_worker(
    dsn: str, db: Database, tmp_path: Path, how: str
) -> None:
    """Two workers share the work; the worker without a receiver does the rest alone, and ends when it is told to."""
    with receiving(tmp_path, "hangs" if how == "hangs" else "answers") as receiver:
        if how == "was never there":
            receiver.process.kill()
        async with (
            worker_process(dsn, "default", tmp_path) as (light, _),
            worker_process(dsn, "default", tmp_path, receiver.url) as (traced, traced_id),
        ):
            jobs = await submitted(db, plan("ticks", ("tick", "tick", "default")), COUNT // 2)
            if how == "dies":
                receiver.process.kill()
            jobs += await submitted(db, plan("ticks", ("tick", "tick", "default")), COUNT // 2)
            waiter = Waiter(db)
            views = await asyncio.gather(*(waiter.wait(job_id, 60) for job_id in jobs))
            assert {view.state for view in views} == {JobState.COMPLETED}
            await ended_by_itself(light)
            rest = await submitted(db, plan("ticks", ("tick", "tick", "default")), COUNT // 2)
            await asyncio.gather(*(waiter.wait(job_id, 60) for job_id in rest))
            assert await finished_by(db, rest) == {traced_id: COUNT // 2}
            await ended_by_itself(traced)


async def test_spans_that_nobody_takes_are_dropped_and_not_kept(tmp_path: Path) -> None:
    with receiving(tmp_path, "hangs") as receiver:
        tracer = open_tracer(receiver.url, "worker")
        for attempt in range(3 * QUEUE_MAX):
            tracer.attempt(JOB, "film", "cut", None, attempt, None)("done")
        assert len(tracer._processor._batch_processor._queue) <= QUEUE_MAX
        async with asyncio.timeout(60):
            await tracer.close()
        assert receiver.spans == []


async def test_a_span_that_cannot_be_made_is_not_the_workers_trouble(receiver: Receiver) -> None:
    tracer = open_tracer(receiver.url, "worker")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    tracer._span = broken  # type: ignore[assignment]
    tracer.attempt(JOB, "film", "cut", None, 1, None)("done")
    tracer.submitted(JOB, 0.1)
    await tracer.close()
    assert receiver.spans == []


async def test_a_worker_without_traces_does_not_load_opentelemetry(dsn: str, tmp_path: Path) -> None:
    async with worker_process(dsn, "default", tmp_path) as (process, _):
        process.terminate()
        out, _ = await process.communicate()
        assert out.decode().strip() == "light"


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        ("windlass, windlass.app.observing, windlass.telemetry.traces, windlass.cli.main", "opentelemetry"),
        # FastAPI itself loads OpenTelemetry's API, which does nothing without the rest.
        ("windlass.app.http", "opentelemetry.sdk"),
        ("windlass.app.http", "opentelemetry.exporter"),
    ],
)
def test_no_module_loads_opentelemetry_by_itself(modules: str, unwanted: str) -> None:
    program = f"import sys, {modules}\nsys.exit({unwanted!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
