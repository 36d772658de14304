"""The door with many processes: each has its own copy of the policy, and all share the counters."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from pathlib import Path

from tests.engine.rig import Rig
from tests.engine.test_door import document, put

ROOT = Path(__file__).parents[2]
PROCESSES, EACH, LIMIT = 8, 12, 50


async def _submitter(dsn: str) -> Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.engine.door_process", dsn, str(EACH)),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 120) == b"ready\n"
    return process


async def test_eight_processes_together_pass_exactly_the_limit(rig: Rig, dsn: str) -> None:
    # The processes use the server's clock, which moves by much less than the window.
    limit = f"velocity: {{max_requests: {LIMIT}, window_seconds: 86400, key: caller}}"
    await put(rig, document(f"{{id: fast, match: {{topics: [job.r]}}, {limit}, decision: deny}}"))
    processes = await asyncio.gather(*(_submitter(dsn) for _ in range(PROCESSES)))
    told = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    counts = [tuple(map(int, out.split())) for out, _ in told]
    assert sum(passed for passed, _ in counts) == LIMIT
    assert sum(denied for _, denied in counts) == PROCESSES * EACH - LIMIT
