"""The other processes of a simulation: submitters, controllers, external answers, and engines."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from windlass.app.entropy import Ids
from windlass.core.errors import BadExpression, Conflict, Denied, Refused
from windlass.core.outcome import Cancel, Failure, Fault, Report, Success
from windlass.core.plan import Plan
from windlass.core.template import Template
from windlass.engine import control, rerun
from windlass.engine.loops.runner import Loops
from windlass.engine.settle import settle
from windlass.engine.submit import Submission, submit
from windlass.store.artifact import Artifacts, Ref, ref_of
from windlass.testing.sim.database import SimDatabase
from windlass.testing.sim.log import Answer, Log, Told
from windlass.testing.sim.reruns import rerun_from
from windlass.views import explain, read
from windlass.worker.resolve import is_away

CALLERS = ("ada", "bob", "cy")


class PlainResolver:
    """Resolves templates of plain paths, the only templates of the simulated recipes."""

    async def resolve_async(self, template: Template, scope: Mapping[str, Any], caller: str = "") -> Any:
        """Return the value of the template."""
        return template.resolve(scope, _no_evaluator)


def _no_evaluator(text: str, _: Any) -> Any:
    raise BadExpression(f"{text} needs the evaluator")


class MemoryArtifacts(Artifacts):
    """Artifacts that end with the run."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def put(self, body: bytes) -> Ref:
        """Keep these bytes."""
        ref = ref_of(body)
        self._kept[ref.sha256] = body
        return ref

    async def get(self, ref: Ref) -> bytes:
        """Return the kept bytes."""
        return self._kept[ref.sha256]

    async def part(self, ref: Ref, start: int, length: int) -> bytes:
        """Return a part of the kept bytes."""
        return self._kept[ref.sha256][start : start + length]


@dataclass
class Stage:
    """The shared state of all processes of a run; `is_kind` is true in the last phase."""

    db: SimDatabase
    log: Log
    ids: Ids
    plans: list[Plan]
    is_kind: bool = False
    cancel_chance: float = 0.4
    jobs: list[UUID] = field(default_factory=list)
    # The jobs that wait for an event, now or later.
    listening: list[UUID] = field(default_factory=list)

    async def patiently(self, rng: random.Random, action: Callable[[], Any]) -> Any:
        """Repeat the action until the database answers; return None when it is refused."""
        while True:
            try:
                return await action()
            except Refused:
                return None
            except Exception as error:
                if not is_away(error):
                    raise
                await self.db.scheduler.sleep(rng.uniform(0.1, 3))


async def run_submitter(stage: Stage, rng: random.Random, wishes: list[Submission]) -> None:
    """Submit everything in `wishes`. Unanswered submissions stay in it, and the restarted process repeats them."""
    while wishes:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 3.0))
        batch = wishes[: rng.choice([1, 1, 2, 3])]
        for wish in batch:
            stage.log.asked[wish.job_id] = dict(wish.inputs)
        answers = await stage.patiently(rng, partial(submit, stage.db, batch))
        del wishes[: len(batch)]
        for wish, answer in zip(batch, answers, strict=True):
            job_id = None if isinstance(answer, Conflict | Denied) else answer.job_id
            stage.log.answers.append(Answer(wish.caller, wish.idempotency_key, dict(wish.inputs), job_id))
            if job_id is not None and job_id not in stage.jobs:
                stage.jobs.append(job_id)
                if wish.plan.has_events:
                    stage.listening.append(job_id)


def wishes_of(stage: Stage, rng: random.Random, count: int) -> list[Submission]:
    """Return the submissions of a run: some repeat a key, with the same body or with another."""
    wishes: list[Submission] = []
    for number in range(count):
        old = rng.choice(wishes) if wishes and rng.random() < 0.2 else None
        inputs = {
            "flag": rng.random() < 0.6,
            "items": list(range(rng.choice([0, 1, 2, 4, 7]))),
            "seconds": rng.choice([0, 3, 15]),
        }
        wishes.append(
            Submission(
                plan=old.plan if old else rng.choice(stage.plans),
                inputs=dict(old.inputs) if old and rng.random() < 0.7 else {**inputs, "n": number},
                job_id=stage.ids.new(),
                caller=old.caller if old else rng.choice(CALLERS),
                idempotency_key=old.idempotency_key if old else (f"key {number}" if rng.random() < 0.5 else None),
                priority=rng.choice([0, 0, 0, 5]),
                deadline_s=rng.uniform(5, 60) if rng.random() < 0.1 else None,
                ttl_s=rng.uniform(10, 90) if rng.random() < 0.1 else None,
                correlation_id=f"c{number}" if rng.random() < 0.3 else None,
            )
        )
    return wishes


async def run_controller(stage: Stage, rng: random.Random) -> None:
    """Cancel, pause, resume, retry and explain at random; in the last phase only resume paused jobs."""
    while True:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 4.0))
        if stage.is_kind:
            await _resume_all(stage, rng)
        elif stage.jobs:
            await _control(stage, rng, rng.choice(stage.jobs))


async def _control(stage: Stage, rng: random.Random, job: UUID) -> None:
    db, log = stage.db, stage.log
    match rng.choice(["cancel", "pause", "pause", "resume", "resume", "retry", "look", "delete"]):
        case "cancel" if rng.random() < stage.cancel_chance:
            if await stage.patiently(rng, lambda: control.cancel(db, job, reason="sim")):
                log.cancelled.append(job)
        case "pause":
            await stage.patiently(rng, lambda: control.pause(db, job))
        case "resume":
            await stage.patiently(rng, lambda: control.resume(db, job))
        case "retry":
            new = stage.ids.new()
            log.retried[new] = job
            if await stage.patiently(rng, lambda: rerun.retry(db, job, new)) is not None:
                stage.jobs.append(new)
        case "look":
            await stage.patiently(rng, lambda: explain.why(db, job))
            # With separate randomness, so that the rest of the run does not change. Most jobs have not ended yet.
            own_rng = random.Random(job.int)
            for one in own_rng.sample(stage.jobs, min(4, len(stage.jobs))):
                new = stage.ids.new()
                log.retried[new] = one
                if await rerun_from(stage.patiently, db, log, own_rng, one, new) is not None:
                    stage.jobs.append(new)
                    break
        case "delete":
            await stage.patiently(rng, lambda: control.delete(db, job))


async def _resume_all(stage: Stage, rng: random.Random) -> None:
    views = await stage.patiently(rng, lambda: read.jobs(stage.db, limit=1000, with_deleted=True))
    for view in views:
        if view.is_paused and not view.is_finished:
            await stage.patiently(rng, partial(control.resume, stage.db, view.id))


async def run_outsider(stage: Stage, rng: random.Random) -> None:
    """Answer for external work: once, twice, too late, or for an attempt that never was."""
    query = (
        "SELECT job_id, no, attempt FROM windlass.steps"
        " WHERE state = 'PARKED' AND waiting_for LIKE $1 ORDER BY job_id, no"
    )
    while True:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 4.0))
        # A provider reports its own work; sometimes this process is faster.
        which = "external:outside" if rng.random() < 0.9 else "external:%"
        rows = await stage.patiently(rng, partial(_fetch, stage.db, query, which))
        if not rows:
            continue
        chosen = rng.choice(rows)
        for _ in range(rng.choice([1, 1, 2])):
            attempt = chosen["attempt"] + (rng.choice([-1, 1]) if rng.random() < 0.1 else 0)
            outcome: Success | Failure | Cancel = Success('{"ok":true,"items":[1]}')
            if not stage.is_kind and rng.random() < 0.3:
                outcome = Cancel("outside") if rng.random() < 0.5 else Failure(Fault("outside", "no"))
            key = (chosen["job_id"], chosen["no"], attempt)
            stage.log.send(key, outcome)
            report = Report(*key, outcome, source="outside")
            settled = await stage.patiently(rng, partial(settle, stage.db, [report], spread=rng.random))
            stage.log.told.append(Told(key, outcome, "outside", settled.took_effect[0]))


async def _fetch(db: SimDatabase, query: str, *given: Any) -> Any:
    return await db.run(lambda connection: connection.fetch(query, *given))


async def run_engine(stage: Stage, rng: random.Random) -> None:
    """Run the engine's duties when they are due, and now and then a random duty."""
    loops = Loops(stage.db, MemoryArtifacts(), PlainResolver(), new_id=stage.ids.new, spread=rng.random)
    while True:
        wait_s = 1.0
        try:
            if rng.random() < 0.1:
                await rng.choice(loops.duties).run_once()
            wait_s = await loops.look()
        except Exception as error:
            if not is_away(error):
                raise
        await stage.db.scheduler.sleep(wait_s, hears_bells=True)
