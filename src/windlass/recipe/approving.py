"""The terms of a step that asks people: who may decide, how many must, and who may decide later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.core.approval import OnReject, voters_json
from windlass.core.errors import BadRecipe
from windlass.core.verdict import APPROVAL_EXPIRES_S, Voters
from windlass.recipe.duration import duration_s
from windlass.recipe.options import check_keys

NEED_MAX = 100
NAMES_MAX = 100
# The keys of a document's step that are terms.
TERM_KEYS = ("who", "need", "escalate", "on_reject", "expires")


def expires_s(value: Any, place: str) -> float:
    """Return the time for the decision in seconds; a day if none is given."""
    return APPROVAL_EXPIRES_S if value is None else duration_s(value, f"{place}.expires")


def approval_with(question: Any, show: Any, place: str) -> dict[str, Any]:
    """Return the arguments of a step that asks people: the question, and the values that they see."""
    if isinstance(question, str) and not question.strip():
        raise BadRecipe("the question is empty", place=f"{place}.approve", remedy='Ask something, such as "Publish?"')
    if show is not None and not isinstance(show, Mapping):
        raise BadRecipe("values are shown by name", place=f"{place}.show", remedy="Write a mapping")
    return {"question": question, "show": dict(show)} if show else {"question": question}


def terms_json(terms: Mapping[str, Any], place: str) -> dict[str, Any] | None:
    """Check the terms and return them as a plan holds them: without defaults. None if all are defaults."""
    need = _need(terms.get("need"), f"{place}.need")
    who = _people(terms.get("who"), f"{place}.who")
    on_reject = _on_reject(terms.get("on_reject"), f"{place}.on_reject")
    after_s, later = _escalate(terms.get("escalate"), f"{place}.escalate")
    if after_s is not None and who == ((), ()):
        raise BadRecipe(
            "all people may decide already", place=f"{place}.escalate", remedy="Say with `who` who may first"
        )
    if after_s is not None and after_s >= expires_s(terms.get("expires"), place):
        raise BadRecipe("this is after the approval expires", place=f"{place}.escalate.after")
    group = Voters(frozenset(who[0]), frozenset(who[1]), after_s, frozenset(later[0]), frozenset(later[1]))
    found: dict[str, Any] = {
        "need": need if need != 1 else None,
        "who": voters_json(group) or None,
        "on_reject": str(on_reject) if on_reject is not OnReject.FAIL else None,
    }
    return {name: value for name, value in found.items() if value is not None} or None


def _need(need: Any, place: str) -> int:
    if need is None:
        return 1
    if not isinstance(need, int) or isinstance(need, bool) or not 1 <= need <= NEED_MAX:
        raise BadRecipe(f"the number of people must be 1 to {NEED_MAX}, not {need!r}", place=place)
    return need


def _on_reject(word: Any, place: str) -> OnReject:
    try:
        return OnReject.FAIL if word is None else OnReject(word)
    except ValueError:
        raise BadRecipe(f"{word!r} is not fail or continue", place=place) from None


def _people(who: Any, place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return roles and callers. A text or a list names roles."""
    if who is None:
        return (), ()
    if not isinstance(who, Mapping):
        return _names(who, place), ()
    check_keys(who, ("roles", "callers"), place)
    roles, callers = _names(who.get("roles"), f"{place}.roles"), _names(who.get("callers"), f"{place}.callers")
    if not roles and not callers:
        raise BadRecipe("nobody is named", place=place, remedy="Name roles or callers, or leave `who` out")
    return roles, callers


def _escalate(escalate: Any, place: str) -> tuple[float | None, tuple[tuple[str, ...], tuple[str, ...]]]:
    if escalate is None:
        return None, ((), ())
    if not isinstance(escalate, Mapping):
        raise BadRecipe("this must be a mapping", place=place, remedy='Write {"after": "4h", "to": ["cto"]}')
    check_keys(escalate, ("after", "to", "callers"), place)
    if "after" not in escalate:
        raise BadRecipe("it does not say after what time", place=place, remedy="Add `after`")
    roles = _names(escalate.get("to"), f"{place}.to")
    callers = _names(escalate.get("callers"), f"{place}.callers")
    if not roles and not callers:
        raise BadRecipe("has neither `to` nor `callers`", place=place)
    return duration_s(escalate["after"], f"{place}.after"), (roles, callers)


def _names(names: Any, place: str) -> tuple[str, ...]:
    found = [names] if isinstance(names, str) else [] if names is None else names
    if not isinstance(found, list | tuple | set | frozenset) or not all(isinstance(one, str) and one for one in found):
        raise BadRecipe("this must be a list of names", place=place)
    if len(found) > NAMES_MAX:
        raise BadRecipe(f"{len(found)} names; at most {NAMES_MAX} are allowed", place=place)
    return tuple(sorted(found))
