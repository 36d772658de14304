"""Finds the matches of many rules in bytes, in time that grows with their number only linearly.

    a text ─► the places of words ─► each rule around its words ─► do its checks pass
              hyperscan or RE2       RE2                           check.py

Every match of a rule contains one of the rule's words, so one pass for all words leaves little to look at. Hyperscan
does that pass if it is installed, else one expression of RE2. A text that consists of words is searched as a whole, by
every rule. RE2's own sets of expressions are not used: they take seconds for some kilobytes of base64. Both libraries
take linear time and release the GIL.

The number of candidates that one rule checks in a text is limited. A text that exceeds the limit was not fully scanned.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from windlass.core.errors import BadSetting
from windlass.policy.scan.assigned import assigned_found
from windlass.policy.scan.engine import compile_pattern
from windlass.policy.scan.finding import Found
from windlass.policy.scan.rule import AssignedRules, Family, ScanRule

# Candidates that one rule checks in one text, and matches that it reports.
TRIES_MAX = 40_000
MATCHES_MAX = 10_000
# A rule is tried from this far before its word to this far after it. A match that reaches the end gets more room.
_BEFORE, _AFTER, _AFTER_MAX = 160, 512, 64 << 10
# The longest match of a rule without words.
_WORDLESS = 48
# More words than one in so many bytes: the whole text is searched instead.
_CROWD = 24
# Patterns of policies may look far ahead after each match, so each look has an end.
WINDOW = 16 << 10
OVERLAP = 4 << 10

Places = Mapping[int, Sequence[int]]


@dataclass(slots=True)
class Matches:
    """What the rules find in one text, and whether a rule gave up."""

    found: list[Found] = field(default_factory=list)
    is_cut: bool = False


def has_hyperscan() -> bool:
    """Return whether the faster library is installed."""
    try:
        import hyperscan  # noqa: F401
    except ImportError:
        return False
    return True


class Matcher:
    """All rules that are tried on one text together. It may be used from any number of threads."""

    def __init__(
        self, families: Iterable[Family] = (), rules: Iterable[ScanRule] = (), *, with_hyperscan: bool | None = None
    ) -> None:
        families = tuple(families)
        self._rules = (*(rule for one in families for rule in one.rules), *rules)
        self._patterns = [compile_pattern(rule.pattern) for rule in self._rules]
        self._assigned = tuple(one.assigned for one in families if one.assigned is not None)
        self._names = [(one, compile_pattern(_any_of(one.words))) for one in self._assigned]
        if with_hyperscan and not has_hyperscan():
            raise BadSetting("hyperscan is not installed", remedy="Install windlass[scan]")
        is_fast = has_hyperscan() if with_hyperscan is None else with_hyperscan
        words = [(at, word, rule.is_folded) for at, rule in enumerate(self._rules) for word in rule.starts]
        size = len(self._rules)
        words += [(size + at, word, True) for at, one in enumerate(self._assigned) for word in one.words]
        wordless = [at for at, rule in enumerate(self._rules) if not rule.starts and not rule.is_custom]
        # Rules that are sure enough to be tried on texts that were joined.
        self.joining = frozenset(rule.id for rule in self._rules if rule.has_mark)
        self._custom = [at for at, rule in enumerate(self._rules) if rule.is_custom]
        self._finder: _Finder = _Hyperscan(words, wordless, self._rules) if is_fast else _Re2(words, wordless)

    def find(self, data: bytes) -> Matches:
        """Find everything that the rules match in a text, in the order of places."""
        matches = Matches()
        places, whole = self._finder.places(data)
        if places is None:
            size = len(self._rules)
            for rules, names in (self._names[at - size] for at in whole if at >= size):
                begins = (match.start() for match in names.finditer(data))
                self._keep(matches, _assigned_at(rules, data, begins))
            whole = [at for at in whole if at < size]
        else:
            for at, starts in places.items():
                if at < len(self._rules):
                    self._keep(matches, self._around(at, starts, data, matches))
                else:
                    self._keep(matches, _assigned_at(self._assigned[at - len(self._rules)], data, starts))
        for at in {*whole, *self._custom}:
            self._keep(matches, self._throughout(at, data))
        matches.found.sort(key=lambda one: (one.start, -one.end, one.rule))
        return matches

    def _keep(self, matches: Matches, candidates: Iterator[Found | None]) -> None:
        """Keep what passes its checks, within the limits."""
        kept = 0
        for tries, one in enumerate(candidates):
            if one is not None:
                matches.found.append(one)
                kept += 1
            if tries >= TRIES_MAX or kept >= MATCHES_MAX:
                matches.is_cut = True
                return

    def _throughout(self, at: int, data: bytes) -> Iterator[Found | None]:
        rule, pattern = self._rules[at], self._patterns[at]
        for match in _windows(pattern, data) if rule.is_custom else pattern.finditer(data):
            yield _accepted(rule, match, data)

    def _around(self, at: int, starts: Sequence[int], data: bytes, matches: Matches) -> Iterator[Found | None]:
        rule, pattern = self._rules[at], self._patterns[at]
        done = 0
        for start, end in _merged(starts, len(data)):
            start = max(start, done)
            while start < end and (match := pattern.search(data, start, end)) is not None:
                if match.end() == end < len(data):
                    # The end of the part may have cut the match, or made it.
                    end = min(len(data), match.start() + _AFTER_MAX)
                    match = pattern.search(data, match.start(), end)
                    if match is None:
                        break
                    matches.is_cut |= match.end() == end < len(data)
                yield _accepted(rule, match, data)
                start = done = max(match.end(), match.start() + 1)


def _accepted(rule: ScanRule, match: Any, data: bytes) -> Found | None:
    start, end = match.span() if rule.is_custom or not match.re.groups else match.span(1)
    return _found(rule, start, end) if start < end and rule.accepts(data, start, end) else None


def _found(rule: ScanRule, start: int, end: int) -> Found:
    return Found(rule.scanner, rule.id, rule.type, start, end, rule.severity, rule.confidence)


def _merged(starts: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text around words, each byte once."""
    first = last = -1
    for at in sorted(starts):
        if at - _BEFORE > last:
            if last >= 0:
                yield first, last
            first = max(0, at - _BEFORE)
        last = min(size, at + _AFTER)
    if last >= 0:
        yield first, last


def _assigned_at(rules: AssignedRules, data: bytes, starts: Iterable[int]) -> Iterator[Found | None]:
    """Try the places of names. Several words of one name lead to one value, which is reported once."""
    done = -1
    for start in starts:
        one = assigned_found(rules, data, start)
        if one is not None and one.start >= done:
            done = one.end
            yield one
        else:
            yield None


def _windows(pattern: Any, data: bytes) -> Iterator[Any]:
    """Search in windows that overlap: a match of up to `OVERLAP` bytes is found, and no look goes farther."""
    at, size = 0, len(data)
    while at < size:
        end = min(size, at + WINDOW)
        match = pattern.search(data, at, end)
        if match is None:
            if end == size:
                return
            at = end - OVERLAP
        elif match.end() == end < size and match.start() > end - OVERLAP and match.start() > at:
            # The end of the window may have cut the match: look again from its start.
            at = match.start()
        else:
            yield match
            at = max(match.end(), match.start() + 1)


class _Finder(Protocol):
    """Finds the words of rules."""

    def places(self, data: bytes) -> tuple[Places | None, Iterable[int]]:
        """Return the places of words by rule, and the rules to try on the whole text.

        A crowd of words has no places: then all rules that may match are tried on the whole text.
        """
        ...


class _Hyperscan:
    """Finds words, and the rules without words, with hyperscan."""

    def __init__(
        self, words: Sequence[tuple[int, str, bool]], wordless: Sequence[int], rules: Sequence[ScanRule]
    ) -> None:
        import hyperscan

        self._hyperscan = hyperscan
        self._by_word: dict[tuple[str, bool], list[int]] = {}
        for at, word, is_folded in words:
            self._by_word.setdefault((word, is_folded), []).append(at)
        # By expression: its rules, and how far before its end a word begins.
        self._rules = [*self._by_word.values(), *([at] for at in wordless)]
        self._lengths = [*(len(word.encode()) for word, _ in self._by_word), *(_WORDLESS for _ in wordless)]
        expressions = [re.escape(word).encode() for word, _ in self._by_word]
        expressions += [rules[at].pattern.encode() for at in wordless]
        flags = [hyperscan.HS_FLAG_CASELESS if is_folded else 0 for _, is_folded in self._by_word]
        flags += [hyperscan.HS_FLAG_PREFILTER] * len(wordless)
        self._database: Any = None
        if expressions:
            self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
            self._database.compile(expressions=expressions, ids=list(range(len(expressions))), flags=flags)
            # For texts with too many words: which of them occur at all.
            once = [each | hyperscan.HS_FLAG_SINGLEMATCH for each in flags]
            self._crowd = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
            self._crowd.compile(expressions=expressions, ids=list(range(len(expressions))), flags=once)
        # Scratch space must not be shared by two scans at a time.
        self._local = threading.local()

    def places(self, data: bytes) -> tuple[Places | None, Iterable[int]]:
        """Return where words begin, and rules without words match."""
        if self._database is None:
            return {}, ()
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = self._hyperscan.Scratch(self._database)
        hits: list[tuple[int, int]] = []
        most = 200 + len(data) // _CROWD
        try:
            self._database.scan(data, match_event_handler=_collect, context=(hits, most), scratch=scratch)
        except self._hyperscan.ScanTerminated:
            return None, self._present(data)
        places: dict[int, list[int]] = {}
        for expression, end in hits:
            for at in self._rules[expression]:
                places.setdefault(at, []).append(max(0, end - self._lengths[expression]))
        return places, ()

    def _present(self, data: bytes) -> Iterable[int]:
        """Return the rules of which a word occurs."""
        scratch = getattr(self._local, "crowd", None)
        if scratch is None:
            scratch = self._local.crowd = self._hyperscan.Scratch(self._crowd)
        hits: list[tuple[int, int]] = []
        self._crowd.scan(data, match_event_handler=_collect, context=(hits, len(self._rules)), scratch=scratch)
        return {at for expression, _ in hits for at in self._rules[expression]}


def _collect(expression: int, start: int, end: int, flags: int, context: Any) -> bool | None:
    hits, most = context
    hits.append((expression, end))
    # A true answer ends the scan.
    return len(hits) > most or None


def _any_of(words: Iterable[str]) -> str:
    return "(?i:" + "|".join(map(re.escape, words)) + ")"


class _Re2:
    """Finds words with one expression of RE2. Rules without words are always tried."""

    def __init__(self, words: Sequence[tuple[int, str, bool]], wordless: Sequence[int]) -> None:
        self._wordless = wordless
        self._all = sorted({*wordless, *(at for at, _, _ in words)})
        # By the first two characters, because several words may begin at one place.
        self._by_begin: dict[bytes, list[tuple[bytes, bool, list[int]]]] = {}
        by_word: dict[tuple[bytes, bool], list[int]] = {}
        for at, word, is_folded in words:
            by_word.setdefault((word.encode(), is_folded), []).append(at)
        for (text, is_folded), rules in by_word.items():
            self._by_begin.setdefault(text[:2].lower(), []).append((text, is_folded, rules))
        folded = sorted({text.decode().lower() for text, _ in by_word})
        self._pattern = compile_pattern(_any_of(folded)) if folded else None

    def places(self, data: bytes) -> tuple[Places | None, Iterable[int]]:
        """Return where words begin, and every rule without words."""
        places: dict[int, list[int]] = {}
        if self._pattern is None:
            return places, self._wordless
        at = 0
        left = 200 + len(data) // _CROWD
        lower = data.lower()
        while (match := self._pattern.search(lower, at)) is not None:
            start = match.start()
            two = lower[start : start + 2]
            for text, is_folded, rules in (*self._by_begin.get(two, ()), *self._by_begin.get(two[:1], ())):
                if (lower if is_folded else data).startswith(text, start):
                    left -= 1
                    for rule in rules:
                        places.setdefault(rule, []).append(start)
            at = start + 1
            left -= 1
            if left < 0:
                return None, self._all
        return places, self._wordless
