"""Test P: what many waiting jobs cost: memory of every process, and queries while nothing happens."""

import re
import time
from collections import Counter
from pathlib import Path

import asyncpg
import psutil

from bench.machine import Watch, memory_mb, tree
from bench.measures.run import Run
from bench.roster import WINDLASS
from bench.session import Session, SystemFailed

MEMORY = "P memory, worst process"
QUERIES = "P queries, worst process"
POSTGRES_MEMORY = "P memory, PostgreSQL"
JOBS = 100_000
IDLE_S = 30.0
# With these every statement leaves one line that names the client's port.
LOUD = {"log_line_prefix": "'<%r> '", "log_statement": "'all'"}
STATEMENT = re.compile(r"^<127\.0\.0\.1\((\d+)\)> LOG:  (?:statement|execute)")


async def parked(run: Run) -> None:
    """Memory before and after, then queries per second of each process over an idle stretch."""
    try:
        session = await run.session(WINDLASS, "windlass_parked")
        session.start()
        try:
            await _measure(run, session)
        finally:
            await session.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(MEMORY, "windlass", str(error))
        run.say(f"{MEMORY:24} windlass failed: {error}")


async def _measure(run: Run, session: Session) -> None:
    count = run.count(JOBS)
    processes = {process.pid: _label(process) for process in tree([session.pid, *session.worker_pids])}
    before = {pid: memory_mb(pid) for pid in processes}
    server_before = _server_mb(run)
    with Watch({}) as watch:
        session.ask("park", count=count)
        time.sleep(2)
    after = {pid: memory_mb(pid) for pid in processes}
    growth = {f"{processes[pid]} {pid}": round(after[pid] - before[pid], 1) for pid in processes}
    detail = {"jobs": count, "before_mb": {f"{processes[pid]} {pid}": round(before[pid], 1) for pid in before}}
    others = watch.load.others
    run.results.add(MEMORY, "windlass", "MB more", "lower", max(growth.values()), others, {**detail, "growth": growth})
    server_growth = _server_mb(run) - server_before
    run.results.add(POSTGRES_MEMORY, "postgresql", "MB more", "lower", server_growth, others)
    run.say(f"{MEMORY:24} {growth}")

    asked = await _statements_per_s(run, session, processes)
    run.results.add(QUERIES, "windlass", "queries/s", "lower", max(asked.values(), default=0.0), others, asked)
    run.say(f"{QUERIES:24} {asked}")


async def _statements_per_s(run: Run, session: Session, processes: dict[int, str]) -> dict[str, float]:
    log = run.servers.postgres.folder / "postgres.log"
    await _configure(session.dsn, LOUD)
    time.sleep(1)
    start = log.stat().st_size
    ports: dict[int, int] = {}
    started = time.monotonic()
    while time.monotonic() - started < IDLE_S:
        # Looked at again and again: a connection may be opened meanwhile.
        ports |= _ports(processes)
        time.sleep(1)
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    await _configure(session.dsn, dict.fromkeys(LOUD, "DEFAULT"))
    seen = Counter(int(match.group(1)) for line in lines if (match := STATEMENT.match(line)))
    asked = dict.fromkeys((f"{label} {pid}" for pid, label in processes.items()), 0.0)
    for port, count in seen.items():
        if pid := ports.get(port):
            asked[f"{processes[pid]} {pid}"] += count / IDLE_S
    return {name: round(value, 2) for name, value in asked.items()}


async def _configure(dsn: str, settings: dict[str, str]) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for name, value in settings.items():
            await connection.execute(f"ALTER SYSTEM SET {name} = {value}")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


def _ports(processes: dict[int, str]) -> dict[int, int]:
    found: dict[int, int] = {}
    for pid in processes:
        try:
            for connection in psutil.Process(pid).net_connections("tcp"):
                found[connection.laddr.port] = pid
        except psutil.Error:
            continue
    return found


def _label(process: psutil.Process) -> str:
    words = process.cmdline()
    return Path(words[0]).name if len(words) == 1 else " ".join(Path(word).name for word in words[1:4])


def _server_mb(run: Run) -> float:
    return sum(memory_mb(process.pid) for process in tree([run.servers.postgres.pid]))
