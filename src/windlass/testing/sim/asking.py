"""Runs in which recipes ask people: their plans, the voters, a process that changes what was approved, and the checks.

Only the seeds from ASKING_FROM on are such runs, so that the histories of all other seeds stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.approval import Choice, Voter
from windlass.core.plan import Node, NodeKind, Plan
from windlass.engine.approvals import Cast, vote
from windlass.store.plans import PLANS
from windlass.testing.checker import Tables
from windlass.testing.sim.cast import CALLERS, Stage
from windlass.testing.sim.plans import library

ASKING_FROM = 1_000_000
ASKING_UNTIL = 2_000_000
ASKING_PLANS = 6
LEADS = ("lena", "leo", "lia")
KEYS = ("k1", "k2")
_PENDING = "SELECT id, job_id FROM windlass.approvals WHERE state = 'PENDING' ORDER BY id"
_MEDDLE = (
    "UPDATE windlass.jobs SET labels = json_build_object('meddled', windlass.clock()) WHERE id = $1 AND labels IS NULL"
)
_ROWS = (
    "SELECT a.*, j.plan, j.caller, j.input, j.labels, s.node, s.index, s.state AS step_state, s.output,"
    " windlass.callers_above(a.job_id) AS above FROM windlass.approvals a JOIN windlass.jobs j ON j.id = a.job_id"
    " LEFT JOIN windlass.steps s ON s.job_id = a.job_id AND s.no = a.no ORDER BY a.id"
)
# Notes that the auditor has not taken yet count too.
_RECORDED = (
    "SELECT (SELECT count(*) FROM windlass.audit WHERE event = 'approval_used')"
    " + (SELECT count(*) FROM windlass.audit_notes WHERE event = 'approval_used')"
)
_VOTES = "SELECT approval_id, caller, choice, at FROM windlass.votes ORDER BY approval_id, at, caller"


def is_asking(seed: int) -> bool:
    """Return whether the recipes of this seed ask people."""
    return ASKING_FROM <= seed < ASKING_UNTIL


def asking_library() -> list[Plan]:
    """Return plans in which people are asked before some of the steps."""
    plans: list[Plan] = []
    for number, plan in enumerate(library()[:ASKING_PLANS]):
        rng = random.Random(f"asking plan {number}")
        nodes = [_asking(rng, node) for node in plan.nodes]
        nodes[0] = _asking(rng, nodes[0], chance=1.0)
        plans.append(replace(plan, recipe=f"asking_{number}", nodes=tuple(nodes)))
    return plans


def _asking(rng: random.Random, node: Node, chance: float = 0.4) -> Node:
    if node.kind is not NodeKind.TASK or rng.random() >= chance:
        return node
    said: dict[str, Any] = {"need": rng.choice([1, 2]), "who": {"roles": ["lead"]}}
    if rng.random() < 0.3:
        said["on_reject"] = "continue"
    return Node(
        node.name,
        NodeKind.APPROVAL,
        needs=node.needs,
        when=node.when,
        each=node.each,
        with_={"question": "go on?", "show": {"flag": "${inputs.flag}"}},
        wait_s=rng.choice([15.0, 60.0]),
        approval=said,
    )


async def run_voters(stage: Stage, rng: random.Random) -> None:
    """Vote as anybody, with any key: as people who may, and as callers of the jobs, who may not."""
    while True:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 2.0))
        rows = await stage.patiently(rng, lambda: stage.db.run(lambda c: c.fetch(_PENDING)))
        if not rows:
            continue
        row = rng.choice(rows)
        person = rng.choice((*LEADS, *CALLERS))
        choice = Choice.REJECT if rng.random() < 0.15 else Choice.APPROVE
        cast = Cast(row["id"], Voter(person, frozenset({"lead"}), True), choice, reason="sim", key_id=rng.choice(KEYS))
        for _ in range(rng.choice([1, 1, 2])):
            await stage.patiently(rng, partial(vote, stage.db, cast))


async def run_meddler(stage: Stage, rng: random.Random) -> None:
    """Change what was asked about: the labels of a job that waits for votes."""
    while True:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 12.0))
        rows = await stage.patiently(rng, lambda: stage.db.run(lambda c: c.fetch(_PENDING)))
        if rows:
            job_id = rng.choice(rows)["job_id"]
            await stage.patiently(rng, partial(_meddle, stage, job_id))


async def _meddle(stage: Stage, job_id: UUID) -> None:
    await stage.db.run(lambda connection: connection.execute(_MEDDLE, job_id))


async def check_asking(connection: asyncpg.Connection, tables: Tables) -> list[str]:
    """Check every approval against its votes, its job and its step."""
    votes: dict[UUID, list[asyncpg.Record]] = defaultdict(list)
    for row in await connection.fetch(_VOTES):
        votes[row["approval_id"]].append(row)
    wrong: list[str] = []
    used: dict[tuple[UUID, int], int] = defaultdict(int)
    for row in await connection.fetch(_ROWS):
        if row["state"] == "USED":
            used[row["job_id"], row["no"]] += 1
            wrong += [f"approval {row['id']} was used {text}" for text in _misused(row, votes[row["id"]])]
        elif row["state"] in ("PENDING", "APPROVED"):
            wrong.append(f"approval {row['id']} is {row['state']} after its job has ended")
    for (job_id, no), count in used.items():
        if count > 1:
            wrong.append(f"step {no} of {job_id} used {count} approvals")
    recorded = await connection.fetchval(_RECORDED)
    if recorded != sum(used.values()):
        wrong.append(f"{sum(used.values())} approvals were used, and {recorded} uses are recorded")
    return wrong + _unapproved(tables, used)


def _misused(row: asyncpg.Record, votes: list[asyncpg.Record]) -> list[str]:
    # However a caller is written in a vote, the person is the part before its key.
    people = {vote["caller"].partition("#")[0] for vote in votes if vote["choice"] == "approve"}
    found = []
    if len(people) < row["need"]:
        found.append(f"after {len(people)} of {row['need']} people had approved")
    if people & {row["requester"], *row["above"]}:
        found.append("by the vote of its requester, or of a caller above it")
    if any(vote["choice"] == "reject" for vote in votes):
        found.append("though a person had rejected it")
    if any(vote["at"] > row["expires_at"] for vote in votes):
        found.append("by a vote after its time was over")
    labels = msgspec.json.decode(row["labels"] or "{}")
    changed_at = datetime.fromisoformat(labels["meddled"]) if "meddled" in labels else None
    if changed_at is None or changed_at < row["created_at"]:
        if row["subject"] != _digest(row, labels):
            found.append("and is not bound to what ran")
    elif row["created_at"] < changed_at < row["decided_at"]:
        found.append("though its job had been changed")
    return found


def _digest(row: asyncpg.Record, labels: dict[str, str]) -> str:
    """Return the digest of everything that counts, written out again: the engine's own may forget a field."""
    plan = PLANS.get(row["plan"])
    assert plan is not None
    named = {
        "edge": row["edge"],
        "plan": row["plan"],
        "caller": row["caller"],
        "inputs": row["input"],
        "labels": labels,
        "step": plan.nodes[row["node"]].name,
        "index": row["index"],
        "question": row["question"],
        "arguments": row["arguments"],
        "provider": "",
        "host": "",
        "constraints": "",
    }
    return hashlib.sha256(json.dumps(named, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _unapproved(tables: Tables, used: dict[tuple[UUID, int], int]) -> list[str]:
    """Return the steps that went on with a yes that nobody gave."""
    wrong = []
    for job_id, steps in tables.steps.items():
        plan = PLANS.get(tables.jobs[job_id]["plan"])
        # A re-run keeps the answers of the job that it repeats.
        if plan is None or tables.jobs[job_id]["retry_of"] is not None:
            continue
        for step in steps:
            is_asked = plan.nodes[step["node"]].kind is NodeKind.APPROVAL and step["fan"] is None
            if not is_asked or step["state"] != "COMPLETED" or step["output"] is None:
                continue
            said = msgspec.json.decode(step["output"])
            if said["approved"] and not used[job_id, step["no"]]:
                wrong.append(f"step {step['no']} of {job_id} went on as approved, and no approval of it was used")
    return wrong
