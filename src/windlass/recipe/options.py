"""What a step may ask for before it runs: a provider's place, a key's place, money; and how long it may wait."""

from __future__ import annotations

import math
import re
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.core.expression import closing_brace
from windlass.core.template import escape
from windlass.recipe.duration import duration_s

LIMIT_MAX = 1_000_000
COST_MAX = 1e9

_PROVIDER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


def key_template(text: Any, place: str) -> str:
    """A concurrency key as a template. Its holes are written `{…}`, or `${…}` as everywhere else; `{{` is a brace."""
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
    """Refuse what could not be a provider's name in `providers.yaml`."""
    if not isinstance(name, str) or not _PROVIDER.fullmatch(name):
        remedy = "Use its name in providers.yaml: letters, digits, _, dots and dashes"
        raise BadRecipe(f"a provider's name cannot be {name!r}", place=place, remedy=remedy)


def check_limit(limit: Any, place: str) -> int:
    """How many steps with one key may run at once."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise BadRecipe(f"a limit must be 1 to {LIMIT_MAX:,}, not {limit!r}", place=place)
    return limit


def check_cost(cost: Any, place: str) -> float:
    """What an attempt may cost, which is set aside before it runs."""
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or not math.isfinite(cost) or not 0 < cost <= COST_MAX:
        raise BadRecipe(f"a cost must be more than 0, up to {COST_MAX:,.0f}, not {cost!r}", place=place)
    return float(cost)


def length_s(value: str | float, place: str, what: str) -> float:
    """Seconds of a length of time that is more than none."""
    return check_length(duration_s(value, place), place, what)


def check_length(seconds: float, place: str, what: str) -> float:
    """A length of time that is more than none."""
    if seconds <= 0:
        raise BadRecipe(f"{what} must be more than 0", place=place)
    return float(seconds)
