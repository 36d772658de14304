"""Windlass: durable graphs of steps on PostgreSQL."""

from windlass.core import errors
from windlass.core.errors import Permanent, Transient, WindlassError
from windlass.core.outcome import Cancel, Parked, Snooze
from windlass.core.retry import Retry
from windlass.lazy import __getattr__ as __getattr__
from windlass.recipe.app import App, load
from windlass.recipe.handle import index, item, text
from windlass.recipe.provider import call, provider
from windlass.recipe.recipe import Recipe, recipe
from windlass.recipe.step import Step, step
from windlass.recipe.waiting import approve, savepoint, sleep, wait_for
from windlass.worker.context import Context, context

__all__ = [
    "App",
    "AsyncClient",
    "Cancel",
    "Client",
    "Context",
    "Extension",
    "Job",
    "JobCancelled",
    "JobFailed",
    "Parked",
    "Permanent",
    "Recipe",
    "Retry",
    "Snooze",
    "Step",
    "Transient",
    "Windlass",
    "WindlassError",
    "approve",
    "call",
    "commit",
    "context",
    "errors",
    "index",
    "item",
    "load",
    "provider",
    "recipe",
    "savepoint",
    "sleep",
    "step",
    "text",
    "wait_for",
]
