"""The five queues of every deployment. A queue is only a name; each worker is configured with the queues it serves."""

from __future__ import annotations

import re

RECIPE_EXECUTORS = "recipe_executors"  # graphs, dispatch, templates
BACKGROUND_PROCESSING = "background_processing"  # work that keeps a core busy: images, video
WEBHOOK_LISTENERS = "webhook_listeners"  # reports of providers
POLLING_WATCHDOGS = "polling_watchdogs"  # polling of providers that send no webhooks
MAIN_PROCESSING = "main_processing"  # all other work

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")

DEFAULT_QUEUES = (RECIPE_EXECUTORS, BACKGROUND_PROCESSING, WEBHOOK_LISTENERS, POLLING_WATCHDOGS, MAIN_PROCESSING)

# A step that may have killed its worker waits in the apart twin of its queue. Ordinary workers do not claim from it.
# Users' queue names hold letters, digits, `_`, `-` and `.` only, so the suffix cannot occur in them.
_APART = "!"


def apart(queue: str) -> str:
    """Return the apart twin of a queue; a twin is its own twin."""
    return queue if is_apart(queue) else queue + _APART


def is_apart(queue: str) -> bool:
    """Return whether the queue holds steps that run alone."""
    return queue.endswith(_APART)


def ordinary(queue: str) -> str:
    """Return the queue that a twin belongs to; an ordinary queue belongs to itself."""
    return queue.removesuffix(_APART)


def is_queue_name(name: str) -> bool:
    """Return whether a step may wait in a queue of this name."""
    return _NAME.fullmatch(name) is not None
