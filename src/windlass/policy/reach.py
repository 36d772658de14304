"""Finds rules that can never decide, because an earlier rule matches everything that they match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from windlass.core.glob import Glob
from windlass.core.verdict import DEFAULT, Decision, Edge
from windlass.policy.document import InputRule, Match, OutputRule, PolicyDocument, Rule, RuleMode
from windlass.policy.match import globs_of
from windlass.policy.question import fold
from windlass.policy.topic_index import TopicIndex

R = TypeVar("R", Rule, InputRule, OutputRule)

# The topics of a rule that names none.
EVERY_TOPIC = Glob("job.?*")
# Lists of which one entry must fit. A later rule with fewer entries matches less.
_SOME = (
    "tenants", "capabilities", "pack_ids", "actor_ids", "actor_types", "agent_risk_tiers",
    "agent_data_classifications", "risk_tags",
)  # fmt: skip
_CONTENT_SOME = (
    "tenants", "capabilities", "risk_tags", "scanners", "content_patterns", "keywords", "content_types", "detectors",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A rule that can never decide, and the earlier rule that matches first."""

    rule: str
    by: str
    line: int | None = None


def unreachable_rules(document: PolicyDocument) -> list[Unreachable]:
    """Return the rules that can never decide, in the order of the document.

    A rule is found if one earlier rule alone matches everything that it matches. Rules that several earlier rules cover
    together are not found.
    """
    rules = [rule for rule in document.rules if rule.mode is RuleMode.ENFORCE]
    # A rule with a velocity limit lets requests pass to later rules.
    firm = [rule for rule in rules if rule.velocity is None]
    inputs = [rule for rule in document.input_rules if _is_on(rule)]
    outputs = [rule for rule in document.output_rules if _is_on(rule)]
    return [
        *_hidden(rules, firm, _covers),
        *_hidden(inputs, inputs, _content_covers),
        *_hidden(outputs, outputs, _content_covers),
    ]


def is_default_reachable(document: PolicyDocument) -> bool:
    """Return whether a request can reach the default decision of a document."""
    rest = Rule(DEFAULT, Decision.DENY)
    return all(
        rule.velocity is not None or rule.mode is RuleMode.SHADOW or not _covers(rule, rest) for rule in document.rules
    )


def _is_on(rule: InputRule | OutputRule) -> bool:
    return rule.is_enabled and rule.mode is RuleMode.ENFORCE


def _hidden(rules: Sequence[R], firm: Sequence[R], covers: Callable[[R, R], bool]) -> Iterator[Unreachable]:
    index = TopicIndex(firm, [globs_of(rule.match.topics) for rule in firm])
    place = {rule.id: at for at, rule in enumerate(rules)}
    for rule in rules:
        # A rule that covers this one covers its first glob too.
        first = next(iter(globs_of(rule.match.topics)), EVERY_TOPIC)
        for earlier in index.covering(first):
            if place[earlier.id] < place[rule.id] and covers(earlier, rule):
                yield Unreachable(rule.id, earlier.id, rule.line)
                break


def _covers(earlier: Rule, later: Rule) -> bool:
    return (
        _edges(later) <= _edges(earlier)
        and (not earlier.when or earlier.when == later.when)
        and _topics_cover(earlier.match.topics, later.match.topics)
        and _match_covers(earlier.match, later.match)
    )


def _edges(rule: Rule) -> frozenset[Edge]:
    """Return the edges at which a rule is asked: a claim asks the question of the submit again."""
    return rule.at | {Edge.CLAIM} if Edge.SUBMIT in rule.at else rule.at


def _topics_cover(earlier: frozenset[str], later: frozenset[str]) -> bool:
    if not earlier:
        return True
    wide = globs_of(earlier)
    return all(any(glob.covers(narrow) for glob in wide) for narrow in globs_of(later) or (EVERY_TOPIC,))


def _match_covers(earlier: Match, later: Match) -> bool:
    return (
        all(_some_covers(getattr(earlier, name), getattr(later, name)) for name in _SOME)
        and _folded(earlier.requires) <= _folded(later.requires)
        and earlier.labels.items() <= later.labels.items()
        and _allowlist_covers(earlier, later)
        and _threshold_covers(earlier, later)
        and (earlier.secrets_present is None or earlier.secrets_present is later.secrets_present)
        and (earlier.mcp is None or earlier.mcp == later.mcp)
        and (not earlier.predicate or earlier.predicate == later.predicate)
        and (earlier.delegation is None or earlier.delegation == later.delegation)
    )


def _some_covers(earlier: frozenset[str], later: frozenset[str]) -> bool:
    return not earlier or (bool(later) and _folded(later) <= _folded(earlier))


def _allowlist_covers(earlier: Match, later: Match) -> bool:
    """A label outside of a longer list is also outside of a shorter one."""
    if not earlier.label_allowlist:
        return True
    return bool(later.label_allowlist) and all(
        name in earlier.label_allowlist and _folded(earlier.label_allowlist[name]) <= _folded(values)
        for name, values in later.label_allowlist.items()
    )


def _threshold_covers(earlier: Match, later: Match) -> bool:
    """A label above a high threshold is also above a lower one."""
    if not earlier.label_threshold:
        return True
    return bool(later.label_threshold) and all(
        name in earlier.label_threshold and earlier.label_threshold[name] <= most
        for name, most in later.label_threshold.items()
    )


def _content_covers(first: InputRule | OutputRule, second: InputRule | OutputRule) -> bool:
    earlier, later = first.match, second.match
    return (
        all(_some_covers(getattr(earlier, name), getattr(later, name)) for name in _CONTENT_SOME)
        and _topics_cover(earlier.topics, later.topics)
        and (not earlier.path or earlier.path == later.path)
        and (earlier.size_gt is None or (later.size_gt is not None and later.size_gt >= earlier.size_gt))
        and (earlier.has_error is None or earlier.has_error is later.has_error)
        and (earlier.scope is None or earlier.scope == later.scope)
    )


def _folded(values: frozenset[str]) -> frozenset[str]:
    return frozenset(fold(value) for value in values)
