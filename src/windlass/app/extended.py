"""Builds the parts that a process hands to the handlers, routes and commands of extensions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from windlass.app.extending import values
from windlass.app.extension_submit import submitting
from windlass.app.windlass import Windlass
from windlass.extension.facade import Parts, made_live
from windlass.extension.installed import Installed
from windlass.extension.instruments import Instruments
from windlass.store.statements import named


@contextmanager
def extended(windlass: Windlass, found: Sequence[Installed], registry: Any = None) -> Iterator[dict[str, Parts]]:
    """Yield the parts of these extensions while the block lasts. Metrics go into `registry`, else into the process's
    registry.
    """
    if not found:
        yield {}
        return
    registry = registry if registry is not None else getattr(windlass.observer, "registry", None)
    submit = submitting(windlass, time.monotonic)
    made = [
        Parts(
            one.name,
            windlass.db,
            statements(one),
            values(one, windlass.settings),
            Instruments(one.name, one.extension.metrics, _instruments(one, registry)),
            submit,
        )
        for one in found
    ]
    with made_live(made) as live:
        yield live


def statements(one: Installed) -> dict[str, str]:
    """Return the extension's statements by name."""
    try:
        return named(one.texts(one.extension.statements))
    except ValueError as error:
        raise one.broken(str(error)) from error


def _instruments(one: Installed, registry: Any) -> dict[str, Any] | None:
    if registry is None:
        return None
    from windlass.telemetry.added import added

    try:
        return added(registry, one.extension.metrics)
    except ValueError as error:
        raise one.broken(f"a metric cannot be registered: {error}") from error
