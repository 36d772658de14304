"""Windlass: durable graphs of steps on PostgreSQL."""

from windlass.core import errors
from windlass.core.errors import Permanent, Transient, WindlassError
from windlass.core.outcome import Cancel, Parked, Snooze
from windlass.core.retry import Retry
from windlass.later import __getattr__ as __getattr__
from windlass.recipe.app import App, load
from windlass.recipe.handle import index, item, text
from windlass.recipe.recipe import Recipe, recipe
from windlass.recipe.step import Step, sleep, step
from windlass.worker.context import Context, context

__all__ = [
    "App",
    "AsyncClient",
    "Cancel",
    "Client",
    "Context",
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
    "context",
    "errors",
    "index",
    "item",
    "load",
    "recipe",
    "sleep",
    "step",
    "text",
]
