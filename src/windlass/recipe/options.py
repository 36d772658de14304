"""The values of a step's options. Each is read and checked separately; `asks.py` combines them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.core.expression import closing_brace, nearest
from windlass.core.retry import Retry
from windlass.core.template import escape
from windlass.recipe.duration import duration_s

LIMIT_MAX = 1_000_000
ATTEMPTS_MAX = 1000
COST_MAX = 1e9

_PROVIDER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


def key_template(text: Any, place: str) -> str:
    """Return a concurrency key as a template. Placeholders are `{…}`, or `${…}` as elsewhere; `{{` is a brace."""
    if not isinstance(text, str):
        raise BadRecipe(
            f"a concurrency key is text, not {text!r}", place=place, remedy='Write it as in "render:{inputs.user}"'
        )
    out: list[str] = []
    plain = ""
    at = 0
    while at < len(text):
        if text.startswith("$${", at):
            plain, at = plain + "${", at + 3
        elif text.startswith(("{{", "}}"), at):
            plain, at = plain + text[at], at + 2
        elif text.startswith(("${", "{"), at):
            start = text.index("{", at) + 1
            end = closing_brace(text, start)
            if end < 0:
                raise BadRecipe("a `{` without its `}`", place=place, remedy="A literal `{` is written `{{`")
            out.extend((escape(plain), f"${{{text[start:end]}}}"))
            plain, at = "", end + 1
        else:
            plain, at = plain + text[at], at + 1
    return "".join([*out, escape(plain)])


def check_provider(name: Any, place: str) -> None:
    """Raise BadRecipe if the name is not valid in `providers.yaml`."""
    if not isinstance(name, str) or not _PROVIDER.fullmatch(name):
        remedy = "Use its name in providers.yaml: letters, digits, _, dots and dashes"
        raise BadRecipe(f"a provider's name cannot be {name!r}", place=place, remedy=remedy)


def check_limit(limit: Any, place: str) -> int:
    """Check and return how many steps with one key may run at once."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise BadRecipe(f"a limit must be 1 to {LIMIT_MAX:,}, not {limit!r}", place=place)
    return limit


def check_takes(takes: Any, limit: int | None, place: str) -> int:
    """Check and return how many of its key a step takes. A step could never get more than the key's limit."""
    amount = check_amount(takes, place)
    if amount > (1 if limit is None else limit):
        has = "no limit is set, so there is 1" if limit is None else f"its limit is {limit:,}"
        raise BadRecipe(
            f"a step cannot take {amount:,} of its concurrency key: {has}",
            place=place,
            remedy=f"Set limit={amount} or more, or take fewer",
        )
    return amount


def check_amount(amount: Any, place: str) -> int:
    """Check and return how many units a step takes at once."""
    if not isinstance(amount, int) or isinstance(amount, bool) or not 1 <= amount <= LIMIT_MAX:
        raise BadRecipe(f"a step takes 1 to {LIMIT_MAX:,}, not {amount!r}", place=place)
    return amount


def check_cost(cost: Any, place: str) -> float:
    """Check and return the maximum cost of an attempt, which is reserved before it runs."""
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or not math.isfinite(cost) or not 0 < cost <= COST_MAX:
        raise BadRecipe(f"a cost must be more than 0, up to {COST_MAX:,.0f}, not {cost!r}", place=place)
    return float(cost)


def length_s(value: str | float, place: str, what: str) -> float:
    """Parse a duration in seconds that must be more than 0."""
    return check_length(duration_s(value, place), place, what)


def check_length(seconds: float, place: str, what: str) -> float:
    """Check and return a duration that must be more than 0."""
    if seconds <= 0:
        raise BadRecipe(f"{what} must be more than 0", place=place)
    return float(seconds)


def check_retry(retry: Any, place: str) -> Retry:
    """A policy whose numbers make sense, with each number of the type that its JSON has."""
    if not isinstance(retry, Retry):
        raise BadRecipe(f"{retry!r} is not a retry policy", place=place, remedy="Write Retry(max_attempts=4)")
    attempts: Any = retry.max_attempts
    if not isinstance(attempts, int) or isinstance(attempts, bool) or not 1 <= attempts <= ATTEMPTS_MAX:
        raise BadRecipe(f"max_attempts must be 1 to {ATTEMPTS_MAX:,}, not {attempts!r}", place=place)
    for name, low, high in (("base_s", 0, 86400), ("factor", 1, 100), ("cap_s", 0, 30 * 86400), ("jitter", 0, 1)):
        value = getattr(retry, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise BadRecipe(f"{name} must be {low} to {high}, not {value!r}", place=place)
    numbers = (float(retry.base_s), float(retry.factor), float(retry.cap_s), float(retry.jitter))
    return Retry(attempts, *numbers)


def read_retry(value: Any, place: str) -> Retry:
    """A policy as documents write it: how many attempts, or a mapping."""
    if value is None:
        return Retry()
    if isinstance(value, int) and not isinstance(value, bool):
        return Retry(max_attempts=value)
    policy = dict(read_mapping(value, place))
    check_keys(policy, tuple(Retry.__slots__), place)
    return Retry(**policy)


def read_mapping(value: Any, place: str) -> Mapping[str, Any]:
    """A mapping of a document, whose keys are text."""
    if not isinstance(value, Mapping):
        raise BadRecipe(f"a mapping is needed here, not {_kind_of(value)}", place=place)
    for key in value:
        if not isinstance(key, str):
            raise BadRecipe(f"the key {key!r} is not text", place=place)
    return value


def read_text(value: Any, place: str) -> str:
    """Text of a document."""
    if not isinstance(value, str):
        raise BadRecipe(f"text is needed here, not {_kind_of(value)}", place=place)
    return value


def _kind_of(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def check_keys(mapping: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    """Refuse a key that a document cannot have here."""
    for key in mapping:
        if key not in known:
            where = f"{place}.{key}" if place else key
            hint = nearest(key, known)
            raise BadRecipe(f"{key!r} is not known here", place=where, remedy=hint[:1].upper() + hint[1:])
