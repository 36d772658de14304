"""The duties of the engine, ordered so that each makes work for the next. A new duty is a line here."""

from __future__ import annotations

from windlass.engine.loops.adopter import Adopter
from windlass.engine.loops.duty import EngineDuty
from windlass.engine.loops.escalator import Escalator
from windlass.engine.loops.expirer import Expirer
from windlass.engine.loops.granter import Granter
from windlass.engine.loops.kernel_asker import KernelAsker
from windlass.engine.loops.parent_notifier import ParentNotifier
from windlass.engine.loops.pruner import Pruner
from windlass.engine.loops.rescuer import Rescuer
from windlass.engine.loops.router import Router
from windlass.engine.loops.undoer import Undoer
from windlass.engine.loops.waker import Waker
from windlass.engine.loops.warden import Warden
from windlass.engine.loops.webhook_applier import WebhookApplier

DUTIES: tuple[type[EngineDuty], ...] = (
    Rescuer,
    Waker,
    Expirer,
    Escalator,
    ParentNotifier,
    WebhookApplier,
    Undoer,
    Warden,
    KernelAsker,
    Router,
    Granter,
    Adopter,
    Pruner,
)
