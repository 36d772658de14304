"""Keeps a process's copy of the policy current, and writes what its shadow rules would have decided.

So no request waits for the compiler, and no job for the record of a shadow rule.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from windlass.core.bell import PolicyPublished
from windlass.core.errors import Unavailable
from windlass.engine.policies import Policies
from windlass.store.database import Database
from windlass.store.outage import OutageLog

# Costs nothing while the copy is fresh.
TURN_EVERY_S = 5.0

_log = logging.getLogger("windlass.policy")


class PolicyWatch:
    """Reads the policy when another one was published. It is ready while the process can judge by the policy."""

    name = "policy"

    def __init__(self, db: Database, policies: Policies) -> None:
        self._db = db
        self._policies = policies
        self._outages = OutageLog(_log, "the reader of the policy")
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._turned_s = 0.0

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._task is not None

    @property
    def problem(self) -> str | None:
        """Why the process denies every job, or None."""
        known = self._policies.known
        return "the policy was not read yet" if known is None else known.problem

    async def start(self) -> None:
        """Listen for publishes, and read the policy."""
        await self._db.listen(PolicyPublished, self._on_bell)
        await self._turn()
        self._task = asyncio.create_task(self._run(), name="windlass-policy")

    async def stop(self) -> None:
        """Stop reading. The copy stays, and is checked by every commit."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            with suppress(Unavailable):
                # The last seconds of a process that is stopped are not lost.
                await self._policies.shadows.flush(self._db)

    def alive(self) -> float | None:
        """Return the seconds since its last turn."""
        return None if self._task is None else asyncio.get_running_loop().time() - self._turned_s

    def ready(self) -> bool:
        """Tell whether the process can judge by the policy in force."""
        return self.problem is None

    def _on_bell(self, _: PolicyPublished) -> None:
        self._policies.expire()
        self._bell.set()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(TURN_EVERY_S):
                    await self._bell.wait()
            except TimeoutError:
                pass
            self._bell.clear()
            await self._turn()

    async def _turn(self) -> None:
        self._turned_s = asyncio.get_running_loop().time()
        try:
            await self._policies.current(self._db)
            await self._policies.shadows.flush(self._db)
            self._outages.over()
        except Unavailable as error:
            self._outages.note(error)
