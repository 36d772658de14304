"""What a recipe says about effects: how a step is undone, how lasting its effect is, how far back an undo goes.

In Python a step names its undo by the function itself, `@wl.step(undo=refund)`. In a document it names the handler, or
a mapping with the options of the undo's attempts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol, TypeVar, runtime_checkable

from windlass.core.errors import BadRecipe
from windlass.core.plan import EffectKind, Undo, UndoMode, UndoOrder, UndoWhen
from windlass.core.queue import MAIN_PROCESSING
from windlass.core.retry import Retry
from windlass.recipe.duration import duration_s
from windlass.recipe.options import check_keys, check_length, check_retry, read_mapping, read_retry, read_text

_KEYS = ("run", "retry", "timeout", "queue")
W = TypeVar("W", bound=StrEnum)


@runtime_checkable
class NamedStep(Protocol):
    """A function with `@wl.step`, as far as another step needs it for its undo."""

    name: str
    asks: Any


def undo_of(handler: Any, when: Any, place: str) -> Undo | None:
    """Return how a step is undone, from the keywords of its decorator: a function with `@wl.step`, or its name."""
    if handler is None:
        _check_none(when, place)
        return None
    if isinstance(handler, NamedStep):
        asks = handler.asks
        if asks.undo is not None:
            raise BadRecipe(f"{handler.name} undoes this step, and cannot have an undo itself", place=f"{place}.undo")
        return Undo(handler.name, _when(when, place), asks.queue, asks.retry, asks.timeout_s)
    if isinstance(handler, str):
        return Undo(handler, _when(when, place))
    raise BadRecipe(
        f"an undo is a function with @wl.step, or its name, not {handler!r}",
        place=f"{place}.undo",
        remedy="Decorate the function with @wl.step",
    )


def read_undo(value: Any, when: Any, place: str) -> Undo | None:
    """Return how a step is undone, from a document: a handler's name, or a mapping with `run` and options."""
    if value is None:
        _check_none(when, place)
        return None
    where = f"{place}.undo"
    if isinstance(value, str):
        return Undo(value, _when(when, place))
    said = read_mapping(value, where)
    check_keys(said, _KEYS, where)
    return Undo(
        read_text(said.get("run"), f"{where}.run"),
        _when(when, place),
        read_text(said.get("queue", MAIN_PROCESSING), f"{where}.queue"),
        read_retry(said.get("retry"), f"{where}.retry"),
        duration_s(said.get("timeout", Undo("").timeout_s), f"{where}.timeout"),
    )


def check_undo(undo: Undo | None, effect: EffectKind | None, place: str) -> Undo | None:
    """Check the options of an undo, and that the step's effect can have one."""
    if undo is None:
        if effect is EffectKind.REVERSIBLE:
            raise BadRecipe("a reversible effect needs an undo", place=place, remedy="Name the step that undoes it")
        return None
    if effect is EffectKind.FINAL:
        raise BadRecipe("a final effect has no undo", place=place, remedy="Drop the undo, or the effect")
    retry: Retry = check_retry(undo.retry, f"{place}.retry")
    return Undo(undo.run, undo.when, undo.queue, retry, check_length(undo.timeout_s, f"{place}.timeout", "a timeout"))


def check_effect(value: Any, place: str) -> EffectKind | None:
    """Return how lasting an effect is."""
    return None if value is None else _word(EffectKind, value, f"{place}.effect")


def check_order(value: Any) -> UndoOrder:
    """Return the order in which the effects of a job are undone."""
    return _word(UndoOrder, value, "undo_order")


def check_mode(value: Any) -> UndoMode:
    """Return who starts the undo of a job."""
    return _word(UndoMode, value, "undo")


def _check_none(when: Any, place: str) -> None:
    if when is not None:
        raise BadRecipe("`undo_when` says when the undo applies, and this step has no undo", place=f"{place}.undo_when")


def _when(value: Any, place: str) -> UndoWhen:
    return UndoWhen.COMPLETED if value is None else _word(UndoWhen, value, f"{place}.undo_when")


def _word(kind: type[W], value: Any, place: str) -> W:
    try:
        return kind(value)
    except ValueError:
        raise BadRecipe(f"{value!r} is not {' or '.join(kind)}", place=place) from None
