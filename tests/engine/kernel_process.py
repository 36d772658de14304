"""A process that asks a kernel: `python -m tests.engine.kernel_process DSN ADDRESS`.

Each line of its input is a number of questions. It asks them at the same time, and prints a line of JSON: how many were
answered, and how many met silence.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from windlass.core.verdict import Edge, Verdict
from windlass.engine.kernels import GuardedKernel
from windlass.policy.kernels.safety_kernel import SafetyKernel
from windlass.policy.question import Question
from windlass.store.database import Database


async def main(dsn: str, address: str) -> None:
    db = await Database.open(dsn, max_size=2)
    kernel = GuardedKernel(db, SafetyKernel(address), clock_s=time.monotonic)
    try:
        print(json.dumps({"is_ready": True}), flush=True)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            answers = await kernel.ask([Question(Edge.SUBMIT, "job.mail")] * int(line))
            answered = sum(isinstance(answer, Verdict) for answer in answers)
            print(json.dumps({"answered": answered, "silent": len(answers) - answered}), flush=True)
    finally:
        await kernel.close()
        await db.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
