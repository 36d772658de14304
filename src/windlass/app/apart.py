"""The configuration of an isolation worker (`app/apart_worker.py`): database, settings, and where its steps are."""

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
    """A step's function, and where it is found."""

    name: str
    address: Address
    is_cpu: bool


class Config(msgspec.Struct, frozen=True):
    """The line that the process is told when it starts."""

    dsn: str
    settings: Settings
    handlers: list[Handler]
    queues: list[str]
    begun: int
    log_format: str
    log_level: int


def program(dsn: str, settings: Settings, steps: Mapping[str, StepLike]) -> Program | None:
    """How an isolation worker for these steps is started; None if another process cannot find one of them."""
    try:
        handlers = [Handler(step.name, Address.of(step.function), step.is_cpu) for step in steps.values()]
    except Permanent:
        return None
    # A script that is imported may start everything that it starts, a second time.
    if any(handler.address.module == "__main__" for handler in handlers):
        return None
    settings = replace(settings, database_url=dsn)

    def config(queues: Sequence[str], begun: int) -> bytes:
        form, level = configured() or (settings.log_format, logging.INFO)
        # The last lines before a death are the evidence, so the process logs more than others.
        told = Config(dsn, settings, handlers, list(queues), begun, form, min(level, logging.INFO))
        return msgspec.json.encode(told, enc_hook=str)

    return Program("windlass.app.apart_worker", config)
