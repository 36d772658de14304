"""`python -m windlass.testing.chaos`: kills and stops real processes, then checks their history."""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import signal
import sys

from windlass.testing.chaos.run import run

INTERRUPTED = 130


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _main() -> int:
    parser = argparse.ArgumentParser(prog="windlass.testing.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long faults go on (default 1)")
    parser.add_argument("--seed", type=int, help="which faults, jobs and moments; printed, random by default")
    parser.add_argument("--loud", action="store_true", help="print every fault")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    # Errors that the submitters meet are expected, and counted.
    logging.basicConfig(level=logging.ERROR)

    async def guarded() -> bool:
        task = asyncio.current_task()
        assert task is not None
        # A SIGTERM must still end the processes that the run started.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run(seed, given.minutes, _say, is_loud=given.loud)

    try:
        return 0 if asyncio.run(guarded()) else 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(_main())
