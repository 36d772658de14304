"""The rules of undo: every standing effect is undone, once, after everything that used it, and by nobody too early."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.outcome import Success
from windlass.core.plan import Plan, UndoOrder
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.core.undo import Past, standing
from windlass.store.plans import PLANS
from windlass.testing.checker import Tables
from windlass.testing.replay import Row
from windlass.testing.sim.log import Log
from windlass.testing.sim.scheduler import START

_BAD = frozenset(map(str, JOB_TERMINAL)) - {JobState.COMPLETED}


def is_undo(plan_hash: str) -> bool:
    """Tell whether the plan undoes another job."""
    plan = PLANS.get(plan_hash)
    return plan is not None and plan.is_undo


def undone_nodes(tables: Tables, plan: Plan, job_id: UUID, new: Row) -> set[str]:
    """Return the steps of a job whose effects were gone when another job ran it again."""
    found: set[str] = set()
    for undo in tables.jobs.values():
        undos = PLANS.get(undo["plan"])
        if undos is None or not undos.is_undo or msgspec.json.decode(undo["input"]) != {"undo_of": str(job_id)}:
            continue
        nodes = {row["no"]: row["node"] for row in tables.steps[job_id]}
        found |= {
            plan.nodes[nodes[undoes]].name
            for row in tables.steps[undo["id"]]
            if row["state"] == StepState.COMPLETED
            and row["finished_at"] <= new["created_at"]
            and (undoes := undos.nodes[row["no"]].undoes) is not None
        }
    return found


async def check_undo(connection: asyncpg.Connection, tables: Tables, log: Log) -> list[str]:
    """Return every complaint about the undo of jobs."""
    parts: dict[UUID, list[Row]] = defaultdict(list)
    for row in await connection.fetch("SELECT * FROM windlass.undos ORDER BY job_id, part"):
        parts[row["job_id"]].append(row)
    attempts = await connection.fetch("SELECT * FROM windlass.undo_attempts")
    late = {(row["job_id"], row["no"]) for row in attempts if row["state"] == "DONE"}
    open_ = await connection.fetchval("SELECT count(*) FROM windlass.undo_attempts WHERE state = 'WAITED'")
    wrong = [f"{open_} attempts are still waited for"] if open_ else []
    wrong += _forgotten(attempts, log)
    for job in tables.jobs.values():
        plan = PLANS.get(job["plan"])
        assert plan is not None
        if plan.may_undo and job["state"] in _BAD:
            told = _Job(tables, job, plan, parts[job["id"]], {no for of, no in late if of == job["id"]})
            wrong += [f"job {job['id']}: {text}" for text in (*told.covered(), *told.ordered(), *told.patient(log))]
    return wrong


def _forgotten(attempts: Sequence[Row], log: Log) -> list[str]:
    """Check that every success that was reported after the end of its job is known."""
    known = {(row["job_id"], row["no"], row["attempt"], row["worker"]): row["state"] for row in attempts}
    told = [one for one in log.told if isinstance(one.outcome, Success) and not one.took_effect]
    return [
        f"{one.key} succeeded after its job had ended, and nobody knows"
        for one in told
        if known.get((*one.key, one.worker), "DONE") != "DONE"
    ]


class _Job:
    """A job that ended badly, and its undo jobs."""

    def __init__(self, tables: Tables, job: Row, plan: Plan, parts: Sequence[Row], late: set[int]) -> None:
        self.job, self.plan, self.parts, self.late = job, plan, parts, late
        self.tables = tables
        self.steps: dict[int, Row] = {row["no"]: row for row in tables.steps[job["id"]]}
        ends = {e["no"]: e["seq"] for e in tables.events[job["id"]] if e["type"] in ("step.completed", "step.failed")}
        rows = self.steps.values()
        self.past = [
            Past(r["no"], r["node"], r["index"], self._state(r), r["attempt"], ends.get(r["no"])) for r in rows
        ]
        # Child jobs are checked as jobs of their own.
        self.stands = [one for one in standing(plan, self.past) if plan.nodes[one.node].undo is not None]

    def _state(self, row: Row) -> StepState:
        return StepState.COMPLETED if row["no"] in self.late else StepState(row["state"])

    def undos(self) -> list[tuple[Row, int, Row]]:
        """Return the undo steps: the undo job, the number of the step that is undone, and the undo step's row."""
        found = []
        for part in self.parts:
            undo = self.tables.jobs[part["undo_job"]]
            plan = PLANS.get(undo["plan"])
            assert plan is not None
            for row in self.tables.steps[undo["id"]]:
                if (undoes := plan.nodes[row["no"]].undoes) is not None:
                    found.append((undo, undoes, row))
        return found

    def covered(self) -> list[str]:
        """Check that an undo job has every standing effect, since the commit that ended the job."""
        wrong = []
        has: dict[int, list[tuple[Row, Row]]] = defaultdict(list)
        for undo, no, row in self.undos():
            has[no].append((undo, row))
        for one in self.stands:
            states = [row["state"] for _, row in has[one.no]]
            if not states:
                wrong.append(f"the effect of {one.name} stands, and nothing undoes it")
            elif all(undo["state"] == JobState.COMPLETED for undo, _ in has[one.no]) and "COMPLETED" not in states:
                wrong.append(f"the undo of {one.name} ended {states}, and its job is COMPLETED")
        first = self.tables.jobs[self.parts[0]["undo_job"]] if self.parts else None
        is_late = self.parts and not any(one.no not in self.late for one in self.stands)
        if first is not None and not is_late and first["created_at"] != self.job["finished_at"]:
            wrong.append(f"it ended at {self.job['finished_at']}, and its undo was made at {first['created_at']}")
        return wrong

    def ordered(self) -> list[str]:
        """Check that an undo begins only after the undo of what completed later or used the effect."""
        wrong = []
        begun: dict[int, int] = {}
        over: dict[int, tuple[int, str]] = {}
        newest = {one.no: place for place, one in enumerate(self.stands)}
        for undo, no, row in self.undos():
            if no not in newest or self.parts[0]["undo_job"] != undo["id"]:
                continue
            for event in self.tables.events[undo["id"]]:
                if event["no"] == row["no"] and event["type"] == "step.running":
                    begun.setdefault(no, event["seq"])
                if event["no"] == row["no"] and event["type"] in ("step.completed", "step.failed", "step.abandoned"):
                    over[no] = (event["seq"], event["type"])
        for no, at in begun.items():
            for other, (end, kind) in over.items():
                one, later = self.stands[newest[no]], self.stands[newest[other]]
                is_user = later.node in self.plan.descendants[one.node]
                in_turn = self.plan.undo_order is UndoOrder.COMPLETION and newest[other] < newest[no]
                if other not in self.late and no not in self.late and (is_user or in_turn) and at < end:
                    wrong.append(f"{one.name} was undone before {later.name}")
                if is_user and kind != "step.completed":
                    wrong.append(f"{one.name} was undone though {later.name}, which used it, was not")
        return wrong

    def patient(self, log: Log) -> list[str]:
        """Check that no undo step began while a handler of the job could act."""
        wrong = []
        firsts = [
            (log.started[key][0][1], key)
            for undo, _, row in self.undos()
            for key in [(undo["id"], row["no"], attempt) for attempt in range(1, row["attempt"] + 1)]
            if undo["id"] == self.parts[0]["undo_job"] and key in log.started
        ]
        for key, begun in log.started.items():
            if key[0] != self.job["id"] or self.plan.nodes[self.steps[key[1]]["node"]].undo is None:
                continue
            # Only the attempt at the end of the job is waited for; an earlier one was over by then.
            step = self.steps[key[1]]
            if step["attempt"] != key[2] or step["state"] != StepState.CANCELLED:
                continue
            worker, since = begun[0]
            # A handler of a lost worker, or past its time, may go on. Its attempt is over: a retry would start too.
            lost_at = self.tables.workers[worker]["lost_at"] if worker in self.tables.workers else None
            until = min(
                log.returned.get(key, float("inf")),
                float("inf") if lost_at is None else (lost_at - START).total_seconds(),
                since + self.plan.nodes[self.steps[key[1]]["node"]].timeout_s,
            )
            wrong += [f"{other} undid while {key} could act" for at, other in firsts if since <= at < until]
        return wrong
