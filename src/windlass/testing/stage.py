"""The providers of a harness: scripted adapters, created as recipes name them, with a separate desk and poller."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from windlass.access.callbacks import Callbacks
from windlass.access.secret import Secret
from windlass.core.wait import WaitKind
from windlass.engine import children, external, providers
from windlass.engine.provider_edge import constraints_of
from windlass.engine.providers import ProviderRow
from windlass.providers.config import ProviderConfig
from windlass.providers.desk import Desk
from windlass.providers.poller import Poller
from windlass.providers.registry import Provider
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.testing.clock import VirtualClock
from windlass.testing.scripted import Respond, ScriptedAdapter
from windlass.worker.outside import Capabilities

# Ample limits, so that no step of a test waits for a slot.
CONCURRENCY = 100
RATE = 1_000.0
_SECRET = "the harness has no secrets worth keeping"


class Stage:
    """Holds the scripted providers. A provider without a script waits for the test's answer."""

    def __init__(
        self, db: Database, artifacts: Artifacts, clock: VirtualClock, new_id: Callable[[], UUID], rng: random.Random
    ) -> None:
        self._db = db
        self._clock = clock
        self._new_id = new_id
        self._adapters: dict[str, ScriptedAdapter] = {}
        self._new: dict[str, ProviderRow] = {}
        self._providers: dict[str, Provider] = {}
        self._poller = Poller(
            db, self._providers, artifacts, spread=rng.random, clock_s=lambda: clock.now().timestamp(), at_once=1
        )
        callbacks = Callbacks(Secret.of([_SECRET]), lambda: clock.now().timestamp())
        self.capabilities = Capabilities(
            Desk(db, self._providers), callbacks.sign, self._spawn, partial(constraints_of, db)
        )

    def adapter(self, name: str) -> ScriptedAdapter:
        """Return the provider of this name; create it without a script if there was none."""
        return self._adapters.get(name) or self.add(name, None, CONCURRENCY)

    def add(self, name: str, respond: Respond | None, concurrency: int) -> ScriptedAdapter:
        """Create the provider, or give it another script. The engine learns of it at its next turn."""
        config = ProviderConfig(name, "scripted", concurrency=concurrency, rate=RATE)
        found = self._adapters.get(name)
        if found is None:
            found = self._adapters[name] = ScriptedAdapter(config)
        found.respond = respond
        self._providers[name] = Provider(config, found)
        self._new[name] = ProviderRow(name, concurrency, RATE)
        return found

    async def announce(self) -> None:
        """Tell the engine of providers that it does not know."""
        if self._new:
            await providers.sync(self._db, list(self._new.values()))
            self._new.clear()

    async def act(self) -> int:
        """Poll the providers that have a script."""
        return (await self._poller.run_once(self._talking)).count if self._talking else 0

    async def due(self) -> list[datetime]:
        """Return when something happens next without the test: a step wakes, or a provider is polled.

        The end of a wait for an event or an answer that only the test can give does not count.
        """
        talking = [f"{WaitKind.EXTERNAL}:{name}" for name in self._talking]
        waker = await self._db.run(lambda connection: connection.fetchval(sql("harness_wakes"), talking))
        found = [] if waker is None else [waker]
        if self._talking:
            waits = await external.next_due(self._db, self._talking)
            found += [self._clock.now() + timedelta(seconds=wait_s) for wait_s in waits.values()]
        return found

    @property
    def _talking(self) -> list[str]:
        return sorted(name for name, adapter in self._adapters.items() if adapter.respond is not None)

    async def _spawn(
        self, parent: tuple[UUID, int, int], worker: UUID, recipe: Any, inputs: Mapping[str, Any], key: str | None
    ) -> UUID:
        name = recipe if isinstance(recipe, str) else recipe.name
        return await children.spawn(self._db, self._new_id(), parent, name, dict(inputs), key=key, worker=worker)
