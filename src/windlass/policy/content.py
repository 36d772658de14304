"""The conditions of rules about content: what scanners, keywords and sizes say about inputs or an output.

A condition on content that was not scanned, or whose scanner did not answer, is Undecided. The judge then follows the
document's fail mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from windlass.core.glob import Glob
from windlass.policy.document import ContentMatch
from windlass.policy.facts import Facts
from windlass.policy.keys import SEVERITIES
from windlass.policy.match import Condition
from windlass.policy.question import ContentFacts, FindingFact, fold
from windlass.policy.scope import is_out_of_scope
from windlass.policy.when import Undecided


@dataclass(frozen=True, slots=True)
class ScanWants:
    """What must be known about some content before it can be judged."""

    scanners: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()

    def __or__(self, other: ScanWants) -> ScanWants:
        return ScanWants(self.scanners | other.scanners, self.patterns | other.patterns, self.keywords | other.keywords)


def wants_of(match: ContentMatch) -> ScanWants:
    """Return what a rule wants to know about content."""
    return ScanWants(match.scanners, match.content_patterns, match.keywords)


def is_for(globs: tuple[Glob, ...], conditions: Iterable[Condition], facts: Facts) -> bool:
    """Return whether a rule about content is for this request: its topic, tenant, capability and risk tags."""
    topic = facts.question.topic
    if globs and not any(glob.matches(topic) for glob in globs):
        return False
    return all(condition.holds(facts) for condition in conditions)


def content_failure(match: ContentMatch, facts: Facts) -> str | None:
    """Return the first condition on the content that does not hold, or None. Raises Undecided."""
    content = facts.question.content
    if content is None:
        if _needs_content(match):
            raise Undecided("the content was not scanned")
        content = ContentFacts()
    if match.size_gt is not None and content.size_bytes <= match.size_gt:
        return f"the content has {content.size_bytes:,} bytes, not more than {match.size_gt:,}"
    if match.has_error is not None and content.has_error is not match.has_error:
        return "the step failed" if content.has_error else "the step did not fail"
    if match.content_types and _media_type(content.content_type) not in _folded(match.content_types):
        return f"the media type is {content.content_type or 'not known'}"
    if match.keywords and _folded(match.keywords).isdisjoint(_folded(content.keywords)):
        return "no keyword was found"
    if match.content_patterns and match.content_patterns.isdisjoint(content.patterns):
        return "no regular expression was found"
    if match.scope is not None and not is_out_of_scope(match.scope, facts.question.inputs):
        return "every item is in the scope of the instruction"
    return _finding_failure(match, content)


def strongest(findings: Iterable[FindingFact]) -> tuple[int, float]:
    """Return the highest severity, as its rank, and the highest confidence. Without findings both are lowest."""
    found = list(findings)
    return max((_rank(one.severity) for one in found), default=-1), max((one.confidence for one in found), default=0.0)


def counted(match: ContentMatch, content: ContentFacts) -> list[FindingFact]:
    """Return the findings that count for a rule."""
    return [
        finding
        for finding in content.findings
        if (not match.scanners or finding.scanner in match.scanners)
        and (not match.detectors or fold(finding.type) in _folded(match.detectors))
        and (not match.path or _is_below(finding.path, match.path))
    ]


def _needs_content(match: ContentMatch) -> bool:
    return bool(
        match.scanners
        or match.content_patterns
        or match.keywords
        or match.content_types
        or match.detectors
        or match.size_gt is not None
        or match.has_error is not None
    )


def _finding_failure(match: ContentMatch, content: ContentFacts) -> str | None:
    if not match.scanners and not match.detectors:
        return None
    if counted(match, content):
        return None
    if content.scanners is not None and (silent := match.scanners - content.scanners):
        raise Undecided(f"no answer from the scanner {', '.join(sorted(silent))}")
    return "no scanner found anything"


def _is_below(place: str, path: str) -> bool:
    """Return whether a finding's place is at or below a path. `[*]` stands for every place in a list.

    A finding about the whole content, or at a place that is not a path of names, may lie below any path: it counts.
    """
    if place == "$" or not place.startswith("$") or "['" in place:
        return True
    pattern = re.escape(path).replace(r"\[\*\]", r"\[\d+\]")
    return re.fullmatch(rf"{pattern}(?:[.\[].*)?", place) is not None


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _media_type(text: str) -> str:
    return fold(text.partition(";")[0])


def _folded(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(fold(text) for text in texts)
