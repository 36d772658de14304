"""Windlass: durable graphs of steps on PostgreSQL."""

from windlass.core.errors import Permanent, Transient, WindlassError
from windlass.core.outcome import Cancel, Parked, Snooze
from windlass.core.retry import Retry
from windlass.recipe.app import App, load
from windlass.recipe.handle import index, item, text
from windlass.recipe.recipe import Recipe, recipe
from windlass.recipe.step import Step, sleep, step

__all__ = [
    "App",
    "Cancel",
    "Parked",
    "Permanent",
    "Recipe",
    "Retry",
    "Snooze",
    "Step",
    "Transient",
    "WindlassError",
    "index",
    "item",
    "load",
    "recipe",
    "sleep",
    "step",
    "text",
]
