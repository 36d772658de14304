"""The rules that must hold in the end for provider work, slots, costs and signals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.external import ProviderStatus, WorkKey
from windlass.core.plan import NodeKind
from windlass.core.signal import fits
from windlass.store.plans import PLANS
from windlass.testing.checker import Tables
from windlass.testing.replay import BUSY
from windlass.testing.sim.log import Log
from windlass.testing.sim.plans import COST
from windlass.testing.sim.world import Ware, World

Row = Mapping[str, Any]

# By recorded status: the possible true status. A provider may forget work that it has reported.
_ENDS = {
    status: (ProviderStatus(status), ProviderStatus.UNKNOWN)
    for status in ("SUCCEEDED", "FAILED", "CANCELLED", "UNKNOWN")
}


async def still_open(connection: asyncpg.Connection) -> int:
    """Count the provider work and provider events left after all jobs have ended."""
    return int(
        await connection.fetchval(
            "SELECT (SELECT count(*) FROM windlass.provider_jobs WHERE state <> 'ENDED')"
            " + (SELECT count(*) FROM windlass.provider_events WHERE state = 'DUE')"
        )
    )


async def check_outside(connection: asyncpg.Connection, tables: Tables, log: Log, world: World) -> list[str]:
    """Return every complaint."""
    work = await connection.fetch("SELECT * FROM windlass.provider_jobs ORDER BY job_id, no, round")
    events = await connection.fetch("SELECT * FROM windlass.provider_events ORDER BY provider, id")
    signals = await connection.fetch("SELECT * FROM windlass.signals ORDER BY seq")
    slots = await connection.fetchval("SELECT count(*) FROM windlass.slots")
    waits = await connection.fetchval("SELECT count(*) FROM windlass.waits")
    wrong = [
        *_work(work, world),
        *_busy(tables),
        *_faults(tables, work, world),
        *_results(tables, work, world),
        *_events(work, events, world),
    ]
    wrong += await _costs(connection, events, world)
    wrong += [*_signals(tables, signals, log), *_waits(tables, signals)]
    if slots:
        wrong.append(f"{slots} slots are left after the end")
    if waits:
        wrong.append(f"{waits} waits are left after the end")
    return wrong


def _key(row: Row) -> WorkKey:
    return WorkKey(row["job_id"], row["no"], row["round"])


def _work(work: list[Row], world: World) -> list[str]:
    """Check that each round has one piece of work, that rounds follow each other, and that no such work goes on."""
    wrong = []
    rounds: dict[tuple[UUID, int], list[int]] = defaultdict(list)
    for row in work:
        rounds[row["job_id"], row["no"]].append(row["round"])
        wrong += [f"work {_key(row)} {text}" for text in _round(row, world)]
    wrong += [f"step {place} has the rounds {found}" for place, found in rounds.items() if not _is_row(found)]
    known = {_key(row) for row in work}
    for ware in world.wares.values():
        if ware.key not in known:
            wrong.append(f"{ware.id} was done for {ware.key}, which has no row")
        if not ware.is_over(world.scheduler.now):
            wrong.append(f"{ware.id} of {ware.key} goes on, and no step waits for it")
    return wrong


def _round(row: Row, world: World) -> Iterator[str]:
    """Compare the row with the provider's work."""
    id = world.by_key.get(_key(row))
    truth = None if id is None else world.wares[id].said(world.scheduler.now).status
    if row["state"] != "ENDED":
        yield f"is still {row['state']}"
    if row["external_id"] is not None and row["external_id"] != id:
        yield f"is called {row['external_id']}, and is {id}"
    if row["status"] in _ENDS and truth not in _ENDS[row["status"]]:
        yield f"ended as {row['status']}, and is {truth}"
    is_given_up = row["status"] is not None and row["status"] not in ProviderStatus.__members__
    if id is not None and row["external_id"] is None and is_given_up:
        yield f"ended as {row['status']}, and the provider had taken it as {id}"


def _busy(tables: Tables) -> list[str]:
    """Check that a busy provider never fails a step."""
    return [
        f"step {step['no']} of {step['job_id']} failed because its provider was busy"
        for steps in tables.steps.values()
        for step in steps
        if step["state"] == "FAILED" and msgspec.json.decode(step["error"] or "{}").get("code") == BUSY
    ]


def _faults(tables: Tables, work: list[Row], world: World) -> list[str]:
    """Check that an attempt fails only by its own work."""
    wrong = []
    attempts = {_key(row): row["attempt"] for row in work}
    told = {ware.end.fault.message: ware for ware in world.wares.values() if ware.end.fault is not None}
    for events in tables.events.values():
        for event in events:
            if event["no"] is None or event["payload"] is None or event["source"] not in ("webhook", "poller"):
                continue
            ware = told.get(msgspec.json.decode(event["payload"]).get("error", {}).get("message"))
            if ware is not None and attempts.get(ware.key) != event["attempt"]:
                wrong.append(f"attempt {event['attempt']} failed of {ware.key}, which was of {attempts.get(ware.key)}")
    return wrong


def _is_row(rounds: list[int]) -> bool:
    return rounds == list(range(rounds[0], rounds[0] + len(rounds)))


def _results(tables: Tables, work: list[Row], world: World) -> list[str]:
    """Check that a step's output is the output of its last round."""
    wrong = []
    last: dict[tuple[UUID, int], Row] = {(row["job_id"], row["no"]): row for row in work}
    for (job_id, no), row in last.items():
        step = next((one for one in tables.steps[job_id] if one["no"] == no), None)
        if step is None or step["state"] != "COMPLETED":
            continue
        output = msgspec.json.decode(step["output"])
        ware = world.wares.get(world.by_key.get(_key(row), ""))
        if "ware" not in output:
            # An external answer completed the step.
            continue
        if ware is None or output != _output(ware):
            wrong.append(f"step {no} of {job_id} has {output}, and its last round {_key(row)} came to {ware}")
        if row["attempt"] != step["attempt"]:
            wrong.append(f"step {no} of {job_id} ended by attempt {step['attempt']}, its work by {row['attempt']}")
    return wrong


def _output(ware: Ware) -> Any:
    is_done = ware.end.status is ProviderStatus.SUCCEEDED and ware.end.output is not None
    return msgspec.json.decode(ware.end.output or "") if is_done else None


def _events(work: list[Row], events: list[Row], world: World) -> list[str]:
    """Check that no accepted webhook is lost, and that at most one event of each piece of work settled its step."""
    wrong = []
    names = {(row["provider"], row["external_id"]) for row in work}
    applied: dict[str, list[str]] = defaultdict(list)
    for row in events:
        if row["state"] in ("WAITING", "DUE") and (row["provider"], row["external_id"]) in names:
            wrong.append(f"webhook {row['id']} of {row['external_id']} is still {row['state']}")
        if row["state"] == "APPLIED":
            applied[row["external_id"]].append(row["id"])
    wrong += [f"{ids} of {name} all took effect" for name, ids in applied.items() if len(ids) > 1]
    found = {row["id"] for row in events}
    wrong += [f"webhook {id} was answered for, and is not kept" for id in sorted(world.log.answered - found)]
    return wrong


async def _costs(connection: asyncpg.Connection, events: list[Row], world: World) -> list[str]:
    """Check that each applied result was paid for, once."""
    wrong = []
    rows = await connection.fetch(
        "SELECT p.job_id, p.no, p.round, p.external_id, c.amount FROM windlass.provider_events e"
        " JOIN windlass.provider_jobs p ON p.provider = e.provider AND p.external_id = e.external_id"
        " LEFT JOIN windlass.costs c ON (c.job_id, c.no, c.attempt) = (p.job_id, p.no, p.attempt)"
        " WHERE e.state = 'APPLIED' ORDER BY 1, 2, 3"
    )
    for row in rows:
        cost = world.wares[row["external_id"]].end.cost
        # An unreported cost is the expected cost, if there is one.
        wanted = [None, Decimal(str(COST))] if cost is None else [Decimal(cost.amount)]
        if row["amount"] not in wanted:
            wrong.append(f"{_key(row)} cost {wanted}, and {row['amount']} was written down")
    return wrong


def _signals(tables: Tables, signals: list[Row], log: Log) -> list[str]:
    """Check that an answered signal is kept, and completed at most one step."""
    wrong = []
    found = {(row["job_id"], row["id"]): row for row in signals}
    for place, heard in log.signalled.items():
        if place not in found:
            wrong.append(f"signal {place} was answered {heard}, and is not kept")
        elif "delivered" in heard and found[place]["taken_no"] is None:
            wrong.append(f"signal {place} was answered {heard}, and no step has taken it")
    taken: dict[tuple[UUID, int], list[str]] = defaultdict(list)
    for row in signals:
        if row["taken_no"] is not None:
            taken[row["job_id"], row["taken_no"]].append(row["id"])
    for (job_id, no), ids in taken.items():
        step = next(one for one in tables.steps[job_id] if one["no"] == no)
        output = None if step["output"] is None else msgspec.json.decode(step["output"])
        if len(ids) > 1 or step["state"] != "COMPLETED" or output is None or output["signal"] != ids[0]:
            wrong.append(f"step {no} of {job_id} is {step['state']} with {output}, and took {ids}")
    return wrong


def _waits(tables: Tables, signals: list[Row]) -> list[str]:
    """Check that a waiting step takes the first matching signal, even an early one, and times out only without one."""
    wrong = []
    for job_id, steps in tables.steps.items():
        plan = PLANS.get(tables.jobs[job_id]["plan"])
        assert plan is not None
        inputs = msgspec.json.decode(tables.jobs[job_id]["input"])
        for step in steps:
            node = plan.nodes[step["node"]]
            if node.kind is not NodeKind.EVENT or step["state"] not in ("COMPLETED", "FAILED"):
                continue
            match = dict.fromkeys(node.with_, inputs["flag"])
            fitting = [
                row
                for row in signals
                if (row["job_id"], row["name"]) == (job_id, node.run)
                and fits(match, msgspec.json.decode(row["body"]))
                and (row["taken_no"] is None or row["taken_no"] == step["no"])
                and row["at"] < step["finished_at"]
            ]
            if fitting and fitting[0]["taken_no"] is None:
                wrong.append(f"step {step['no']} of {job_id} is {step['state']}, and never took {fitting[0]['id']}")
    return wrong
