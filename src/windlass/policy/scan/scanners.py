"""Answers what a policy wants to know about a content: one scan for all its rules, and the redacted content.

    ScanWants ─► matcher of the wanted families, patterns and keywords ─► hits ─► ScanReport
                 plug-ins, each in a process of its own              ─►

A scanner that did not answer is named in the report and missing from `facts.scanners`, so the judge cannot decide. A
content that was scanned in part has answers from no scanner, and a finding `content_truncated` for each of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from windlass.core.errors import BadPolicy
from windlass.policy.content import ScanWants, counted
from windlass.policy.document import ContentMatch
from windlass.policy.question import ContentFacts
from windlass.policy.scan.finding import LIMITS, TRUNCATED, Finding, Found, ScanLimits, ScanReport, digest_of
from windlass.policy.scan.matcher import Matcher
from windlass.policy.scan.names import FAMILIES, KEYWORD, PATTERN
from windlass.policy.scan.port import Closeable, Scanner, ScannerSilent, ScanText
from windlass.policy.scan.reading import Hit, Reading, distinct
from windlass.policy.scan.redaction import redacted
from windlass.policy.scan.rule import custom_rules, family

MATCHERS_MAX = 64
_ROUNDS_MAX = 4


@dataclass(frozen=True, slots=True)
class Redaction:
    """A content without what was found. `content` is None if it cannot be redacted, and `reason` says why."""

    content: bytes | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The rules that answer one `ScanWants`."""

    matcher: Matcher
    # The text of a policy by the id of the rule made from it.
    custom: Mapping[str, str]


@dataclass(slots=True)
class _Scan:
    """A scan under way."""

    reading: Reading
    hits: list[Hit] = field(default_factory=list)
    silent: list[tuple[str, str]] = field(default_factory=list)
    given_up: set[str] = field(default_factory=set)


class Scanners:
    """All scanners of an installation. It may be used from any number of threads."""

    def __init__(
        self,
        plugins: Iterable[Scanner] = (),
        *,
        limits: ScanLimits = LIMITS,
        with_hyperscan: bool | None = None,
    ) -> None:
        self._plugins = {one.name: one for one in plugins}
        if taken := sorted({*FAMILIES, PATTERN, KEYWORD} & set(self._plugins)):
            raise ValueError(f"{taken[0]} is the name of a built-in scanner")
        self._limits = limits
        self._with_hyperscan = with_hyperscan
        self._lock = threading.Lock()
        self._prepared: dict[ScanWants, _Prepared] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names that rules of policies may use."""
        return frozenset((*FAMILIES, *self._plugins))

    def scan(self, content: bytes, wants: ScanWants, *, media_type: str = "", key: bytes = b"") -> ScanReport:
        """Scan a content. `key` is the installation's key for the digests of findings; without it there are none."""
        scan = self._scanned(content, wants, media_type)
        return self._report(scan, content, wants, media_type, key)

    def close(self) -> None:
        """End the processes of plug-ins."""
        for plugin in self._plugins.values():
            if isinstance(plugin, Closeable):
                plugin.close()

    def redact(
        self, content: bytes, wants: ScanWants, *, media_type: str = "", match: ContentMatch | None = None
    ) -> Redaction:
        """Replace everything that is found, or that counts for one rule of a policy, and scan the result again."""
        for _ in range(_ROUNDS_MAX):
            scan = self._scanned(content, wants, media_type)
            if scan.silent:
                return Redaction(None, f"the scanner {scan.silent[0][0]} did not answer")
            if scan.reading.is_truncated:
                return Redaction(None, "a part of the content was not scanned")
            hits = scan.hits if match is None else [hit for hit in scan.hits if _counts(scan, hit, match)]
            if not hits:
                return Redaction(content)
            changed = redacted(scan.reading, hits)
            if changed is None:
                return Redaction(None, "the content is no text")
            if changed == content:
                break
            content = changed
        return Redaction(None, "the redacted content still matches")

    def spans(self, text: bytes, wants: ScanWants) -> list[tuple[str, int, int]]:
        """Return the rules that match in a text that is no JSON, each with the bytes of the text."""
        scan = self._scanned(text, wants, "text/plain")
        spans = [(hit.found.rule, start, end) for hit in scan.hits for _, start, end in hit.parts]
        if scan.silent or scan.reading.is_truncated:
            # What is not known to be clean is not shown.
            spans.append((TRUNCATED, 0, len(text)))
        return spans

    def _scanned(self, content: bytes, wants: ScanWants, media_type: str) -> _Scan:
        if unknown := sorted(wants.scanners - self.names):
            raise BadPolicy(f"there is no scanner {unknown[0]!r}", remedy=f"Known: {', '.join(sorted(self.names))}")
        scan = _Scan(Reading(content, media_type, self._limits))
        prepared = self._prepare(wants)
        scan.hits = scan.reading.hits(prepared.matcher, must_be_flat=bool(prepared.custom))
        for name in sorted(wants.scanners & set(self._plugins)):
            try:
                found = self._plugins[name].scan(ScanText(scan.reading.text, media_type))
            except ScannerSilent as error:
                scan.silent.append((name, str(error)))
                if error.has_given_up:
                    scan.given_up.add(name)
            else:
                scan.hits += [scan.reading.placed(one) for one in found]
        scan.hits = distinct(scan.hits)
        return scan

    def _prepare(self, wants: ScanWants) -> _Prepared:
        wants = replace(wants, scanners=wants.scanners & frozenset(FAMILIES))
        with self._lock:
            known = self._prepared.get(wants)
            if known is None:
                custom = list(custom_rules(wants.patterns, wants.keywords))
                families = [family(name) for name in sorted(wants.scanners)]
                matcher = Matcher(families, [rule for rule, _ in custom], with_hyperscan=self._with_hyperscan)
                known = _Prepared(matcher, {rule.id: text for rule, text in custom})
                if len(self._prepared) >= MATCHERS_MAX:
                    self._prepared.pop(next(iter(self._prepared)))
                self._prepared[wants] = known
            return known

    def _report(self, scan: _Scan, content: bytes, wants: ScanWants, media_type: str, key: bytes) -> ScanReport:
        custom = self._prepare(wants).custom
        findings = _findings(scan, key)
        facts = dict.fromkeys(one.fact for one in findings if one.rule not in custom)
        rules = {custom[one.rule]: one.scanner for one in findings if one.rule in custom}
        silent = {name for name, _ in scan.silent}
        answered = wants.scanners - silent
        if scan.reading.is_truncated:
            cut = [_truncated(name, scan.reading) for name in sorted(wants.scanners)]
            facts |= dict.fromkeys(one.fact for one in cut)
            findings = [*cut, *findings]
            answered = frozenset()
        return ScanReport(
            ContentFacts(
                len(content),
                media_type,
                answered,
                tuple(facts),
                frozenset(text for text in wants.keywords if rules.get(text) == KEYWORD),
                frozenset(text for text in wants.patterns if rules.get(text) == PATTERN),
            ),
            tuple(_few(findings, self._limits)),
            scan.reading.is_truncated,
            tuple(scan.silent),
            frozenset(scan.given_up),
            len(scan.hits),
        )


def _counts(scan: _Scan, hit: Hit, match: ContentMatch) -> bool:
    if hit.found.scanner in (PATTERN, KEYWORD):
        return True
    facts = tuple(finding.fact for finding in _findings_of(scan.reading, hit, b"", frozenset()))
    return bool(counted(match, ContentFacts(findings=facts)))


def _findings(scan: _Scan, key: bytes) -> list[Finding]:
    # A key that contains a secret must not be shown as part of a path.
    hidden = frozenset(
        piece.place for hit in scan.hits for piece, _, _ in hit.parts if piece is not None and piece.is_key
    )
    return [finding for hit in scan.hits for finding in _findings_of(scan.reading, hit, key, hidden)]


def _findings_of(reading: Reading, hit: Hit, key: bytes, hidden: frozenset[int]) -> Iterable[Finding]:
    one, flat = hit.found, reading.flat if hit.parts and hit.parts[0][0] is not None else None
    for piece, start, end in hit.parts:
        path = flat.path(piece.place, hidden) if flat is not None and piece is not None else "$"
        yield Finding(
            one.scanner,
            one.rule,
            one.type,
            one.severity,
            one.confidence,
            path,
            start,
            end - start,
            piece is not None and piece.is_key,
            digest_of(hit.text, key),
        )


def _truncated(scanner: str, reading: Reading) -> Finding:
    return Finding(scanner, TRUNCATED, TRUNCATED, "high", 1.0, offset=len(reading.data))


def _few(findings: Iterable[Finding], limits: ScanLimits) -> Iterable[Finding]:
    """Yield as many findings of each rule and scanner as a report may have."""
    rules: dict[tuple[str, str], int] = {}
    scanners: dict[str, int] = {}
    for one in findings:
        rule = (one.scanner, one.rule)
        if rules.get(rule, 0) < limits.findings_per_rule and scanners.get(one.scanner, 0) < limits.findings_per_scanner:
            rules[rule] = rules.get(rule, 0) + 1
            scanners[one.scanner] = scanners.get(one.scanner, 0) + 1
            yield one


class RuleScanner:
    """One built-in scanner by itself, behind the port."""

    def __init__(self, name: str, *, with_hyperscan: bool | None = None) -> None:
        self._name = name
        self._matcher = Matcher([family(name)], with_hyperscan=with_hyperscan)

    @property
    def name(self) -> str:
        """The name by which rules of policies know the scanner."""
        return self._name

    def scan(self, text: ScanText) -> list[Found]:
        """Return what is found in a text."""
        return self._matcher.find(text.data).found
