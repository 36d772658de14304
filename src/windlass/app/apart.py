"""The configuration of an isolation worker (`app/apart_worker.py`): database, settings, and its steps' addresses."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from windlass.app.settings import Settings
from windlass.core.errors import Permanent
from windlass.telemetry.logs import configured
from windlass.worker.apart import Program
from windlass.worker.child import Address
from windlass.worker.handler import StepLike


class Handler(msgspec.Struct, frozen=True):
    """A step's function, and the address to import it from."""

    name: str
    address: Address
    is_cpu: bool


class Config(msgspec.Struct, frozen=True):
    """The line that the process reads from its standard input when it starts."""

    dsn: str
    settings: Settings
    handlers: list[Handler]
    queues: list[str]
    begun: int
    log_format: str
    log_level: int


def program(dsn: str, settings: Settings, steps: Mapping[str, StepLike]) -> Program | None:
    """Return how to start an isolation worker for these steps; None if another process cannot import one of them."""
    try:
        handlers = [Handler(step.name, Address.of(step.function), step.is_cpu) for step in steps.values()]
    except Permanent:
        return None
    # Importing a script may start everything that the script starts, a second time.
    if any(handler.address.module == "__main__" for handler in handlers):
        return None
    settings = replace(settings, database_url=dsn)

    def config(queues: Sequence[str], begun: int) -> bytes:
        form, level = configured() or (settings.log_format, logging.INFO)
        # The last lines before a death are the evidence, so this process logs at least at level INFO.
        line = Config(dsn, settings, handlers, list(queues), begun, form, min(level, logging.INFO))
        return msgspec.json.encode(line, enc_hook=str)

    return Program("windlass.app.apart_worker", config)
