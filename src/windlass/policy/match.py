"""The conditions of a rule, compiled: for each a test of the facts, and words that explain why it failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from windlass.core.glob import Glob
from windlass.policy.document import ContentMatch, DelegationMatch, Match, McpLists
from windlass.policy.facts import Facts
from windlass.policy.predicate import parse_predicate
from windlass.policy.question import DelegationChain, fold
from windlass.policy.when import Undecided, When

Holds = Callable[[Facts], bool]

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)
# The lists of a match, and the facts that they are compared with.
_ONE_OF = {
    "tenants": "tenant",
    "capabilities": "capability",
    "pack_ids": "pack_id",
    "actor_ids": "actor_id",
    "actor_types": "actor_type",
    "agent_risk_tiers": "agent_risk_tier",
}
_ANY_OF = {"risk_tags": "risk_tags", "agent_data_classifications": "agent_data_classifications"}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a rule. `failure` explains why it does not hold for the facts."""

    name: str
    holds: Holds
    failure: Callable[[Facts], str]


def conditions_of(match: Match, when: When | None = None) -> tuple[Condition, ...]:
    """Return the conditions of a match but for its topics, the quick ones first and CEL last."""
    found = _lists(match)
    if match.labels:
        found.append(_labels(match.labels))
    if match.secrets_present is not None:
        found.append(_secrets(match.secrets_present))
    if match.label_allowlist:
        found.append(_allowlist(match.label_allowlist))
    if match.label_threshold:
        found.append(_threshold(match.label_threshold))
    if match.mcp is not None:
        found.append(_mcp(match.mcp))
    if match.delegation is not None:
        found.append(_delegation(match.delegation))
    if match.predicate:
        found.append(_predicate(match.predicate))
    if when is not None:
        found.append(_when(when))
    return tuple(found)


def content_conditions_of(match: ContentMatch) -> tuple[Condition, ...]:
    """Return the conditions on the request of a rule about content, but for its topics."""
    known = Match(tenants=match.tenants, capabilities=match.capabilities, risk_tags=match.risk_tags)
    return conditions_of(known)


def globs_of(topics: frozenset[str]) -> tuple[Glob, ...]:
    """Return the globs of a match, in order."""
    return tuple(Glob(text) for text in sorted(topics))


def _lists(match: Match) -> list[Condition]:
    found = [
        _one_of(name, attribute, values) for name, attribute in _ONE_OF.items() if (values := getattr(match, name))
    ]
    found += [
        _any_of(name, attribute, values) for name, attribute in _ANY_OF.items() if (values := getattr(match, name))
    ]
    if match.requires:
        found.append(_all_of(match.requires))
    return found


def _one_of(name: str, attribute: str, values: frozenset[str]) -> Condition:
    wanted = _folded(values)
    get = attrgetter(attribute)
    # Most rules name tenants, so that test saves a call.
    is_tenant = attribute == "tenant"
    return Condition(
        name,
        (lambda facts: facts.tenant in wanted) if is_tenant else (lambda facts: get(facts) in wanted),
        lambda facts: f"{_quoted(get(facts))} is not one of {_listed(values)}",
    )


def _any_of(name: str, attribute: str, values: frozenset[str]) -> Condition:
    wanted = _folded(values)
    get: Callable[[Facts], frozenset[str]] = attrgetter(attribute)
    return Condition(
        name,
        lambda facts: not wanted.isdisjoint(get(facts)),
        lambda facts: f"{_listed(get(facts))} has none of {_listed(values)}",
    )


def _all_of(values: frozenset[str]) -> Condition:
    wanted = _folded(values)
    return Condition(
        "requires",
        lambda facts: wanted <= facts.requires,
        lambda facts: f"{_listed(wanted - facts.requires)} is not required",
    )


def _labels(wanted: Mapping[str, str]) -> Condition:
    pairs = tuple(wanted.items())

    def holds(facts: Facts) -> bool:
        labels = facts.question.labels
        return all(labels.get(name) == value for name, value in pairs)

    def failure(facts: Facts) -> str:
        labels = facts.question.labels
        name, value = next((name, value) for name, value in pairs if labels.get(name) != value)
        found = _quoted(labels[name]) if name in labels else "missing"
        return f"the label {name} is {found}, not {_quoted(value)}"

    return Condition("labels", holds, failure)


def _secrets(wanted: bool) -> Condition:
    return Condition(
        "secrets_present",
        lambda facts: facts.has_secrets is wanted,
        lambda facts: f"secrets are {'present' if facts.has_secrets else 'not present'}",
    )


def _allowlist(lists: Mapping[str, frozenset[str]]) -> Condition:
    allowed = {name: _folded(values) for name, values in lists.items()}

    def holds(facts: Facts) -> bool:
        labels = facts.question.labels
        return any(name in labels and fold(labels[name]) not in values for name, values in allowed.items())

    return Condition("label_allowlist", holds, lambda facts: "every label that the request has is in its list")


def _threshold(thresholds: Mapping[str, float]) -> Condition:
    def holds(facts: Facts) -> bool:
        labels = facts.question.labels
        return any(name in labels and _number(name, labels[name]) > most for name, most in thresholds.items())

    return Condition("label_threshold", holds, lambda facts: "no label of the request is above its threshold")


def _number(name: str, text: str) -> float:
    """Return the number of a label. A caller could evade a threshold with other text, so that is Undecided."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise Undecided(f"the label {name} is {_quoted(text)}, which is not a number")
    return float(found[0])


def mcp_failure(lists: McpLists, call: Mapping[str, str] | None) -> str | None:
    """Return why an MCP call does not pass the lists, or None. Denied names are checked before allowed names."""
    if call is None:
        return None
    for name, value in call.items():
        if value in _folded(getattr(lists, f"deny_{name}s")):
            return f"the MCP {name} {_quoted(value)} is denied"
        allowed = getattr(lists, f"allow_{name}s")
        if allowed and value not in _folded(allowed):
            return f"the MCP {name} {_quoted(value)} is not one of {_listed(allowed)}"
    return None


def _mcp(lists: McpLists) -> Condition:
    return Condition(
        "mcp",
        lambda facts: mcp_failure(lists, facts.mcp) is None,
        lambda facts: mcp_failure(lists, facts.mcp) or "",
    )


def _delegation(wanted: DelegationMatch) -> Condition:
    def failure(facts: Facts) -> str:
        return _chain_failure(wanted, facts.question.delegation) or ""

    return Condition("delegation", lambda facts: _chain_failure(wanted, facts.question.delegation) is None, failure)


def _chain_failure(wanted: DelegationMatch, chain: DelegationChain | None) -> str | None:
    """Return why a chain does not meet the conditions, or None. A direct request meets all of them."""
    if chain is None:
        return None
    if wanted.forbid_delegated:
        return "the request is delegated"
    if wanted.max_depth is not None and chain.depth > wanted.max_depth:
        return f"the chain has {chain.depth} links, more than {wanted.max_depth}"
    if wanted.issuers and not _folded(chain.issuers) <= _folded(wanted.issuers):
        return f"an issuer is not one of {_listed(wanted.issuers)}"
    if wanted.require_issuer and (not chain.issuers or fold(chain.issuers[0]) != fold(wanted.require_issuer)):
        return f"the first issuer is not {_quoted(wanted.require_issuer)}"
    if not _folded(wanted.required_scope) <= _folded(chain.scope):
        return f"the chain lacks a scope of {_listed(wanted.required_scope)}"
    return None


def _predicate(text: str) -> Condition:
    predicate = parse_predicate(text)
    if predicate is None:
        raise ValueError(f"{text!r} is not a predicate")
    return Condition(
        "predicate",
        lambda facts: predicate.holds(facts.question.delegation),
        lambda facts: f"`{text}` does not hold",
    )


def _when(when: When) -> Condition:
    holds = when.holds
    return Condition("when", lambda facts: holds(facts.activation), lambda facts: f"`{when.text}` is false")


@lru_cache(maxsize=4096)
def _folded(values: frozenset[str] | tuple[str, ...]) -> frozenset[str]:
    return frozenset(fold(value) for value in values)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…") if text else "nothing"


def _listed(values: frozenset[str]) -> str:
    names = sorted(values)
    shown = ", ".join(names[:8]) or "nothing"
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")
