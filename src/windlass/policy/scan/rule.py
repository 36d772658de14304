"""Rules of scanners, as data: read from `rules/*.toml`, or made from the patterns and keywords of a policy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from windlass.policy.scan.check import CHECKS, Check, entropy
from windlass.policy.scan.names import KEYWORD, PATTERN

# Before and after a match, for words that must be near it.
NEAR_BEFORE, NEAR_AFTER = 80, 40

# A token begins at a word's edge, or after an escape of JSON such as `\n`, whose letter is no part of a word.
_LEFT = r"(?:\b|\\[nrtbf])"
_RIGHT = r"(?:[^0-9A-Za-z_]|$)"

_ASSIGNED = (
    r"([0-9A-Za-z_.-]{3,60})"
    # Between the name and the sign: the end of a quoted name, a bracket, or a type.
    r"(?:[ \t]{1,3}string)?[\x22\x27`\\\])]{0,6}[ \t]{0,8}"
    r"(?:=>|:{1,3}=|\?=|\.=|={1,3}|:|,|\|\||>)"
    r"(?:\s|\\[nrt]){0,20}[\x22\x27`\\=(\[]{0,6}"
    # Only a value with a digit can be one of a machine.
    r"(?=[A-Za-z_./+=~:@%|!#$^&*-]{0,60}[0-9])([0-9A-Za-z_./+=~:@%|!#$^&*-]{8,300})"
)


@dataclass(frozen=True, slots=True)
class ScanRule:
    """One rule. Group 1 of its pattern is the text that is found; without a group, the whole match is."""

    id: str
    scanner: str
    type: str
    pattern: str
    about: str = ""
    severity: str = "high"
    confidence: float = 1.0
    # One of these is in every match, so that a text without them needs no look. None: the rule is always tried.
    starts: tuple[str, ...] = ()
    # The starts are compared without case; they are in lower case.
    is_folded: bool = False
    entropy: float = 0.0
    check: Check | None = None
    # One of these, in lower case, is near every finding.
    near: tuple[str, ...] = ()
    # The format has a mark of its own, so that chance does not make it.
    has_mark: bool = False
    # Made by a policy, so its pattern may be of any form and is tried on bounded parts of a text.
    is_custom: bool = False

    def accepts(self, data: bytes, start: int, end: int) -> bool:
        """Return whether a match passes the rule's checks."""
        if self.near and not self._is_near(data, start, end):
            return False
        if not self.entropy and self.check is None:
            return True
        text = data[start:end].decode("utf-8", "replace")
        if self.entropy and (entropy(text) < self.entropy or _is_example(text)):
            return False
        return self.check is None or self.check(text)

    def _is_near(self, data: bytes, start: int, end: int) -> bool:
        around = data[max(0, start - NEAR_BEFORE) : start] + b"\n" + data[end : end + NEAR_AFTER]
        text = around.decode("utf-8", "replace").lower()
        return any(re.search(rf"(?<![a-z]){re.escape(word)}", text) for word in self.near)


@dataclass(frozen=True, slots=True)
class AssignedRules:
    """Values after names, such as `api_key = "…"`.

    `pattern` matches at the begin of one of the words: group 1 is the rest of the name, group 2 the value. All its
    repetitions are bounded and apart, so a match costs a bounded time in any engine.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[bytes]
    assigned: ScanRule
    vendor: ScanRule
    # The shapes of vendors by the first three letters of their names.
    shapes: Mapping[bytes, tuple[tuple[bytes, re.Pattern[bytes]], ...]]


@dataclass(frozen=True, slots=True)
class Family:
    """The rules of one built-in scanner."""

    name: str
    rules: tuple[ScanRule, ...]
    assigned: AssignedRules | None = None

    @property
    def every(self) -> tuple[ScanRule, ...]:
        """All rules, with those about values after names."""
        if self.assigned is None:
            return self.rules
        return (*self.rules, self.assigned.assigned, self.assigned.vendor)


@cache
def family(name: str) -> Family:
    """Read the rules of a built-in scanner."""
    text = files("windlass.policy.scan").joinpath("rules", f"{name}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    rules = (*_tokens(name, data), *_texts(name, data))
    return Family(name, tuple(rules), _assigned(name, data) if "assigned" in data else None)


def custom_rules(patterns: Iterable[str], keywords: Iterable[str]) -> Iterator[tuple[ScanRule, str]]:
    """Make rules from the regular expressions and keywords of a policy, each with the text it was made from."""
    for at, pattern in enumerate(sorted(patterns)):
        yield ScanRule(f"{PATTERN}:{at}", PATTERN, PATTERN, f"(?m:{pattern})", is_custom=True), pattern
    for at, keyword in enumerate(sorted(keywords)):
        rule = ScanRule(f"{KEYWORD}:{at}", KEYWORD, KEYWORD, f"(?i:{re.escape(keyword.strip())})", is_custom=True)
        yield rule, keyword


def _tokens(name: str, data: Mapping[str, Any]) -> Iterator[ScanRule]:
    for one in data.get("token", ()):
        flags = "i" if one.get("ignore_case") else ""
        left = one.get("left", "")
        edge = rf"(?:{_LEFT}|{left})" if left else _LEFT
        yield _rule(name, data, one, f"{edge}((?{flags}:{one['match']})){_RIGHT}")


def _texts(name: str, data: Mapping[str, Any]) -> Iterator[ScanRule]:
    for one in data.get("text", ()):
        yield _rule(name, data, one, one["match"])


def _rule(name: str, data: Mapping[str, Any], one: Mapping[str, Any], pattern: str) -> ScanRule:
    starts = one.get("starts", ())
    words = one.get("words", ())
    near = tuple(word.lower() for word in one.get("near", ()))
    return ScanRule(
        one["id"],
        name,
        data["type"],
        pattern,
        one["about"],
        one.get("severity", data["severity"]),
        one.get("confidence", data["confidence"]),
        tuple(starts) or tuple(word.lower() for word in words) or near,
        not starts,
        one.get("entropy", data.get("entropy", 0.0)),
        CHECKS[one["check"]] if "check" in one else None,
        near,
        pattern.startswith(("(?:" + _LEFT, _LEFT)),
    )


def _assigned(name: str, data: Mapping[str, Any]) -> AssignedRules:
    told, (vendor,) = data["assigned"], data["vendor"]
    shapes: dict[bytes, tuple[tuple[bytes, re.Pattern[bytes]], ...]] = {}
    for word, shape in vendor["shapes"].items():
        known = shapes.get(word[:3].encode(), ())
        shapes[word[:3].encode()] = (*known, (word.encode(), re.compile(shape.encode(), re.IGNORECASE)))
    assigned, by_vendor = (_rule(name, data, part, _ASSIGNED) for part in (told, vendor))
    return AssignedRules(
        (*told["words"], *vendor["shapes"]), re.compile(_ASSIGNED.encode()), assigned, by_vendor, shapes
    )


def _is_example(text: str) -> bool:
    """Return whether a token is one from documentation, which ends in EXAMPLE or repeats a character."""
    upper = text.upper()
    return (
        upper.endswith("EXAMPLE")
        or "EXAMPLEEXAMPLE" in upper
        or "XXXXXX" in upper
        or "ABCDEFGHIJ" in upper
        or "1234567890" in upper
    )
