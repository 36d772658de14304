"""One chaos run from beginning to end: start, inject faults, heal, drain, gather evidence, judge."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import Unavailable
from windlass.store.database import Database
from windlass.store.migrate import migrate
from windlass.store.outage import is_transient
from windlass.testing.chaos import lines
from windlass.testing.chaos.clients import Clients
from windlass.testing.chaos.cluster import Cluster
from windlass.testing.chaos.evidence import dump, gather, is_open_outside, still_open
from windlass.testing.chaos.faults import FAULTS_A_MINUTE_MIN, missing
from windlass.testing.chaos.ledger import Ledger
from windlass.testing.chaos.report import summary, verdict_text
from windlass.testing.chaos.verdict import Violation, judge

DRAIN_S = 120.0
# After this long without an event, the run is stuck.
STILL_S = 75.0
STUCK_SHOWN = 3
DEADLY = "deadly"

Say = Callable[[str], None]


async def run(seed: int, minutes: float, say: Say, *, is_loud: bool = False) -> bool:
    """Run, print a report, and return whether every rule held. A failed run keeps its data."""
    folder = _folder()
    cluster = Cluster(folder, random.Random(f"faults {seed}"), seed)
    say(f"chaos: seed {seed}, {minutes:g} min, in {folder}")
    violations: list[Violation] = []
    try:
        await cluster.server.start()
        try:
            violations = await _on_server(cluster, seed, minutes, say, say if is_loud else _silent)
        finally:
            await cluster.server.stop()
    except BaseException:
        say(f"the run was cut short; its data is in {folder}")
        raise
    if violations:
        say(verdict_text(violations))
        say(f"FAILED: seed {seed}; its data and logs are in {folder}")
    else:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        say("PASSED: no accepted job lost, no step completed twice, every job at its end")
    return not violations


async def _on_server(cluster: Cluster, seed: int, minutes: float, say: Say, tell_fault: Say) -> list[Violation]:
    dsn, ledger = cluster.server.dsn, Ledger()
    db = await Database.open(dsn, max_size=1)
    await migrate(db)
    async with db.connection() as connection:
        await lines.install(connection)
    await db.close()
    settings = replace(Settings(), home=cluster.folder)
    async with Windlass.connect(dsn, settings=settings) as windlass, cluster.running():
        clients = Clients(windlass, ledger, seed)
        clients.start()
        await cluster.torment(minutes * 60, tell_fault)
        await cluster.heal()
        violations: list[Violation] = []
        if not await clients.finish(DRAIN_S):
            violations.append(Violation("unanswered", None, f"callers had no answer {DRAIN_S:.0f} s after the faults"))
        say(f"faults are over after {sum(cluster.played.values())}; waiting for open jobs to end")
        began_s = time.monotonic()
        violations += await _drain(windlass, cluster.folder, say)
        say(f"drained in {time.monotonic() - began_s:.0f} s")
        complaints = await cluster.dismiss()
        evidence = await gather(windlass, cluster.journal, cluster.outside.entries())
    violations += [Violation("goodbye", None, complaint) for complaint in complaints]
    violations += judge(evidence, ledger, crashes=cluster.server.crashes, dismissed=cluster.dismissed)
    violations += _faults(cluster, minutes, {line.pid for line in evidence.journal if line.step == DEADLY})
    say(summary(cluster, evidence, ledger))
    return violations


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="windlass-chaos-"))
    folder.chmod(0o711)  # as root, the server runs as another user and must pass through
    return folder


def _silent(_: str) -> None:
    pass


async def _drain(windlass: Windlass, folder: Path, say: Say) -> list[Violation]:
    """Wait until every job has ended. Jobs that do not end are shown, not only counted."""
    until_s = time.monotonic() + DRAIN_S
    moved_s, seen = time.monotonic(), -1
    while True:
        try:
            jobs = await still_open(windlass)
            is_open = bool(jobs) or await is_open_outside(windlass)
        except Exception as error:
            if not (isinstance(error, Unavailable) or is_transient(error)):
                raise
            await asyncio.sleep(0.5)
            continue
        if not is_open:
            return []
        now_s, events = time.monotonic(), sum(job.event_seq for job in jobs)
        if events != seen:
            moved_s, seen = now_s, events
        if now_s > until_s or now_s - moved_s > STILL_S:
            break
        await asyncio.sleep(0.5)
    texts = [await dump(windlass, job.id) for job in jobs]
    await asyncio.to_thread((folder / "stuck.txt").write_text, "\n\n".join(texts))
    say(f"{len(jobs)} jobs are stuck; all are in {folder / 'stuck.txt'}, the first ones are:")
    for text in texts[:STUCK_SHOWN]:
        say(text)
    return [Violation("stuck", job.id, f"{job.recipe} is still {job.state}") for job in jobs]


def _faults(cluster: Cluster, minutes: float, poisoned: Collection[int]) -> list[Violation]:
    """Report a run without enough faults: it proves nothing. `poisoned` are the processes that ran a poison job."""
    found = [
        Violation("no chaos", None, f"{member.name} ended by itself with {one.code}")
        for member in cluster.members
        for one in member.exits
        if one.code not in (0, UNREACHABLE) and not (one.code == -signal.SIGKILL and one.pid in poisoned)
    ]
    if minutes < 1:
        return found
    played = sum(cluster.played.values())
    if played < FAULTS_A_MINUTE_MIN * minutes:
        found.append(Violation("no chaos", None, f"{played} faults in {minutes:g} min are too few"))
    found += [Violation("no chaos", None, f"never: {fault}") for fault in missing(cluster.played)]
    if not poisoned:
        found.append(Violation("no chaos", None, "no poison was run"))
    return found


# The command's exit code when the database is away at its start; its supervisor tries again.
UNREACHABLE = 3
