"""The options of a step: its queue or provider, retries, timeout, and the limits that it waits for.

An option is written in Python (`@step`, `provider`) or in a document, and becomes a field of a plan's node. This module
handles both forms. A new option is a keyword in `StepOptions`, a field in `Asks`, and a line in each function below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from windlass.core.errors import BadRecipe
from windlass.core.plan import EffectKind, Node, NodeKind, Undo
from windlass.core.queue import MAIN_PROCESSING
from windlass.core.retry import Retry
from windlass.recipe.approving import TERM_KEYS, expires_s, terms_json
from windlass.recipe.duration import duration_s
from windlass.recipe.options import (
    check_amount,
    check_cost,
    check_length,
    check_limit,
    check_provider,
    check_retry,
    check_takes,
    key_template,
    length_s,
    read_retry,
    read_text,
)
from windlass.recipe.undoing import check_effect, check_undo, read_undo, undo_of

# The default timeout of an attempt.
TIMEOUT_S = 3600.0
# The options that only a task has; they are also keys of documents.
_OF_TASKS = ("provider", "concurrency", "limit", "takes", "places", "cost")
# What a document says about the effect of a task.
_OF_EFFECTS = ("undo", "undo_when", "effect")
# The kinds whose steps no worker runs, and that are not jobs of their own.
_UNWORKED = (NodeKind.TIMER, NodeKind.EVENT, NodeKind.APPROVAL)
# The keys of a document's step, by its kind.
DOCUMENT_KEYS: dict[NodeKind, tuple[str, ...]] = {
    NodeKind.TASK: ("queue", "retry", "timeout", "wait", "savepoint", *_OF_TASKS, *_OF_EFFECTS),
    NodeKind.RECIPE: ("ttl", "savepoint"),
    NodeKind.TIMER: ("savepoint",),
    NodeKind.EVENT: ("timeout", "savepoint"),
    NodeKind.APPROVAL: (*TERM_KEYS, "savepoint"),
}


class StepOptions(TypedDict, total=False):
    """The keywords that `@step` and `provider` have in common."""

    retry: Retry | None
    timeout: str | float | None
    queue: str | None
    concurrency: str | None
    limit: int | None
    takes: int | None
    places: int | None
    cost: float | None
    wait: str | float | None
    undo: Any
    undo_when: str | None
    effect: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """The options of a step under the names of its node's fields. None means the default of the node."""

    queue: str = MAIN_PROCESSING
    retry: Retry = Retry()
    timeout_s: float = TIMEOUT_S
    provider: str | None = None
    # A template. Before the recipe is compiled, it has the form of the source: text with placeholders, or a value.
    concurrency: Any = None
    limit: int | None = None
    takes: int | None = None
    places: int | None = None
    cost: float | None = None
    wait_s: float | None = None
    ttl_s: float | None = None
    # The terms of an approval, as a plan holds them (`recipe/approving.py`).
    approval: dict[str, Any] | None = None
    undo: Undo | None = None
    effect: EffectKind | None = None
    savepoint: bool = False


def asks_of(options: StepOptions, place: str, *, provider: str | None, queue: str) -> Asks:
    """Return the options from the keywords of `@step` or `provider`; `queue` is the default queue."""
    for name in options:
        if name not in StepOptions.__annotations__:
            raise TypeError(f"{place} got an unexpected keyword argument {name!r}")
    said: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    key = options.get("concurrency")
    limit = check_limit(said["limit"], f"{place}.limit") if "limit" in said else None
    if provider is not None:
        check_provider(provider, f"{place}.provider")
    if key is not None:
        key_template(key, f"{place}.concurrency")
    return Asks(
        queue=options.get("queue") or queue,
        retry=check_retry(said.get("retry", Retry()), f"{place}.retry"),
        timeout_s=duration_s(said["timeout"], f"{place}.timeout") if "timeout" in said else TIMEOUT_S,
        provider=provider,
        concurrency=key,
        limit=limit,
        takes=check_takes(said["takes"], limit, f"{place}.takes") if "takes" in said else None,
        places=check_amount(said["places"], f"{place}.places") if "places" in said else None,
        cost=check_cost(said["cost"], f"{place}.cost") if "cost" in said else None,
        wait_s=length_s(said["wait"], f"{place}.wait", "a wait") if "wait" in said else None,
        undo=undo_of(said.get("undo"), said.get("undo_when"), place),
        effect=check_effect(said.get("effect"), place),
    )


def asks_in(step: Mapping[str, Any], kind: NodeKind, place: str) -> Asks:
    """Return the options from the keys of a document's step; the check of the plan checks their values."""
    key = step.get("concurrency")
    return Asks(
        queue=read_text(step.get("queue", MAIN_PROCESSING), f"{place}.queue"),
        retry=read_retry(step.get("retry"), f"{place}.retry"),
        timeout_s=duration_s(step.get("timeout", TIMEOUT_S), f"{place}.timeout"),
        provider=step.get("provider"),
        concurrency=None if key is None else key_template(key, f"{place}.concurrency"),
        limit=step.get("limit"),
        takes=step.get("takes"),
        places=step.get("places"),
        cost=step.get("cost"),
        wait_s=expires_s(step.get("expires"), place)
        if kind is NodeKind.APPROVAL
        else _length(step, _wait_key(kind), place),
        ttl_s=_length(step, "ttl", place),
        approval=terms_json(step, place) if kind is NodeKind.APPROVAL else None,
        undo=read_undo(step.get("undo"), step.get("undo_when"), place),
        effect=check_effect(step.get("effect"), place),
        savepoint=_flag(step, "savepoint", place),
    )


def node_values(asks: Asks, kind: NodeKind, place: str) -> dict[str, Any]:
    """Check the options and return the fields of the node, except `concurrency`, which the compiler reads."""
    plain = Node(name="")
    timeout_s = check_length(asks.timeout_s, f"{place}.timeout", "a timeout")
    waits = f"{place}.{_wait_key(kind)}"
    values = {
        "queue": asks.queue,
        "retry": check_retry(asks.retry, f"{place}.retry"),
        "timeout_s": timeout_s,
        "provider": asks.provider or "",
        "limit": None if asks.limit is None else check_limit(asks.limit, f"{place}.limit"),
        "takes": None if asks.takes is None else check_takes(asks.takes, asks.limit, f"{place}.takes"),
        "places": None if asks.places is None else check_amount(asks.places, f"{place}.places"),
        "cost": None if asks.cost is None else check_cost(asks.cost, f"{place}.cost"),
        "wait_s": None if asks.wait_s is None else check_length(asks.wait_s, waits, "a wait"),
        "ttl_s": None if asks.ttl_s is None else check_length(asks.ttl_s, f"{place}.ttl", "a ttl"),
        "approval": asks.approval,
        "undo": check_undo(asks.undo, asks.effect, f"{place}.undo"),
        "effect": asks.effect,
        "savepoint": asks.savepoint,
    }
    # No worker runs a timer, an event or an approval, so the plan omits the options that only a worker uses.
    idle = ("queue", "retry", "timeout_s") if kind in _UNWORKED else ()
    return {name: getattr(plain, name) if value is None or name in idle else value for name, value in values.items()}


def check_asks(asks: Asks, kind: NodeKind, place: str) -> None:
    """Refuse options that a step of this kind cannot have, and options that lack another option that they need."""
    for option in _OF_TASKS:
        if getattr(asks, option) is not None and kind is not NodeKind.TASK:
            has = option if option in ("takes", "places") else f"a {option}"
            raise BadRecipe(f"only a step that a worker runs has {has}", place=f"{place}.{option}")
    for option in ("undo", "effect"):
        if getattr(asks, option) is not None and kind is not NodeKind.TASK:
            raise BadRecipe(
                f"only a step that a worker runs has an {option}",
                place=f"{place}.{option}",
                remedy="The steps of a child job have their own undo, which runs with that of this job",
            )
    if asks.ttl_s is not None and kind is not NodeKind.RECIPE:
        raise BadRecipe("only a recipe that is used as a step has a ttl", place=f"{place}.ttl")
    if asks.wait_s is not None and kind not in (NodeKind.TASK, NodeKind.EVENT, NodeKind.APPROVAL):
        raise BadRecipe("only a step that waits for an answer from outside has a wait", place=f"{place}.wait")
    if asks.provider is not None:
        check_provider(asks.provider, f"{place}.provider")
    if asks.limit is not None and asks.concurrency is None:
        raise BadRecipe(
            "a limit is the number of steps with one concurrency key that may run, and this step has no key",
            place=f"{place}.limit",
            remedy='Add a key such as concurrency="render:{inputs.user}"; what a provider takes is in providers.yaml',
        )
    if asks.takes is not None and asks.concurrency is None:
        raise BadRecipe(
            "`takes` says how many of its concurrency key a step takes, and this step has no key",
            place=f"{place}.takes",
            remedy='Add a key such as concurrency="gpu:{inputs.host}"; of a provider a step takes `places`',
        )
    if asks.places is not None and asks.provider is None:
        raise BadRecipe(
            "`places` says how many places of its provider a step takes, and this step has no provider",
            place=f"{place}.places",
            remedy="Name the provider, or use `takes` for a concurrency key",
        )


def _wait_key(kind: NodeKind) -> str:
    return {NodeKind.EVENT: "timeout", NodeKind.APPROVAL: "expires"}.get(kind, "wait")


def _flag(step: Mapping[str, Any], key: str, place: str) -> bool:
    value = step.get(key, False)
    if not isinstance(value, bool):
        raise BadRecipe(f"this is true or false, not {value!r}", place=f"{place}.{key}")
    return value


def _length(step: Mapping[str, Any], key: str, place: str) -> float | None:
    return None if step.get(key) is None else duration_s(step[key], f"{place}.{key}")
