"""The providers of a process: reads the file that names them, and gives a worker's handlers access to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from windlass.app.settings import Settings
from windlass.client.place import SERVER_FILE
from windlass.core.errors import BadSetting
from windlass.engine import children, providers
from windlass.engine.provider_edge import constraints_of
from windlass.engine.providers import ProviderRow
from windlass.providers.config import ProviderConfig
from windlass.providers.desk import Counts, Desk
from windlass.providers.registry import Registry
from windlass.store.database import Database
from windlass.worker.outside import Capabilities, Sign

# `first_key` writes the file under this name.
SECRET_FILE = "secret"


def read_providers(settings: Settings, environ: Mapping[str, str] | None = None) -> Registry:
    """Load the providers of the configured file; none without a file. BadSetting tells what is wrong with the file."""
    if settings.providers is None:
        return Registry({})
    return Registry.load(settings.providers, os.environ if environ is None else environ)


async def announce(db: Database, registry: Registry) -> None:
    """Publish the limits of these providers to all processes. The file read last wins."""
    rows = [_row(one.config) for one in registry]
    if rows:
        await providers.sync(db, rows)


def _row(config: ProviderConfig) -> ProviderRow:
    return ProviderRow(config.name, config.concurrency, config.rate, config.estimate)


def capabilities(
    db: Database,
    settings: Settings,
    registry: Registry,
    new_id: Callable[[], UUID],
    counts: Counts | None = None,
) -> Capabilities:
    """Return the access to providers, tokens and child jobs for the handlers of one worker. Each worker has its own
    desk.
    """

    async def spawn(
        parent: tuple[UUID, int, int], worker: UUID, recipe: Any, inputs: Mapping[str, Any], key: str | None
    ) -> UUID:
        name = recipe if isinstance(recipe, str) else recipe.name
        return await children.spawn(db, new_id(), parent, name, dict(inputs), key=key, worker=worker)

    by_name = {one.name: one for one in registry}
    desk = Desk(db, by_name, public_url=lambda config: _public_url(settings, config), counts=counts)
    return Capabilities(desk, _signer(settings), spawn, partial(constraints_of, db))


def _public_url(settings: Settings, config: ProviderConfig) -> str | None:
    """Return the URL at which this provider reaches the webhooks. A provider on this machine reaches this home's
    server.
    """
    if settings.public_url is not None:
        return settings.public_url
    if not _is_local(config.base_url):
        return None
    try:
        url = (settings.home / SERVER_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return url if _is_local(url) else None


def _is_local(url: str | None) -> bool:
    return url is not None and urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")


def _signer(settings: Settings) -> Sign:
    """Return a function that signs tokens with the installation's secret, which may exist only after the server
    started.
    """
    known: list[Sign] = []

    def sign(job_id: UUID, no: int, attempt: int, ttl_s: float) -> str:
        if not known:
            # Imported here, since only a process that makes tokens needs them.
            from windlass.access.callbacks import Callbacks
            from windlass.app.first_key import secret_of

            if not settings.secret and not (settings.home / SECRET_FILE).exists():
                raise BadSetting(
                    "this worker cannot make a token: it does not know the installation's secret",
                    remedy="Set WINDLASS_SECRET for workers as it is set for the servers",
                )
            known.append(Callbacks(secret_of(settings)).sign)
        return known[0](job_id, no, attempt, ttl_s)

    return sign
