"""The duties of the engine, in the order in which one makes work for the next. A new duty is a line here."""

from __future__ import annotations

from windlass.engine.loops.answerer import Answerer
from windlass.engine.loops.duty import EngineDuty
from windlass.engine.loops.expirer import Expirer
from windlass.engine.loops.granter import Granter
from windlass.engine.loops.pruner import Pruner
from windlass.engine.loops.relay import Relay
from windlass.engine.loops.rescuer import Rescuer
from windlass.engine.loops.router import Router
from windlass.engine.loops.waker import Waker

DUTIES: tuple[type[EngineDuty], ...] = (
    Rescuer,
    Waker,
    Expirer,
    Relay,
    Answerer,
    Router,
    Granter,
    Pruner,
)
