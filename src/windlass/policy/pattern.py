"""Checks regular expressions and paths of a policy, so that a bad one is refused when the document is read.

Scanners run the expressions with RE2, which takes linear time. It knows neither back references nor looking around, so
both are refused here, and so is everything else that it cannot compile. The other limits refuse honest mistakes.
"""

from __future__ import annotations

import re

from windlass.policy.scan.engine import compile_pattern

PATTERN_CHARS_MAX = 256
ALTERNATIONS_MAX = 5

_LOOKING = ("(?=", "(?!", "(?<=", "(?<!")
_BACK_REFERENCE = re.compile(r"\\[1-9]|\(\?P=")
_REPEAT = re.compile(r"[*+]|\{\d*,?\d*\}")
_PATH = re.compile(r"(?:\$|[A-Za-z_][\w-]*)(?:\.[A-Za-z_][\w-]*|\[\*\]|\[\d{1,6}\])*")


def pattern_fault(text: str) -> str | None:
    """Return why a regular expression cannot be used, or None."""
    if len(text) > PATTERN_CHARS_MAX:
        return f"has {len(text):,} characters; at most {PATTERN_CHARS_MAX} are allowed"
    if any(each in text for each in _LOOKING) or _BACK_REFERENCE.search(text):
        return "looks around or back, which the scanners cannot do"
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"cannot be read: {error}"
    bare = _without_literals(text)
    if bare.count("|") > ALTERNATIONS_MAX:
        return f"has more than {ALTERNATIONS_MAX} alternations"
    if _has_nested_repeat(bare):
        return "repeats a group that has a repetition inside"
    try:
        compile_pattern(text)
    except ValueError as error:
        return f"cannot be used by the scanners: {error}"
    return None


def path_of(text: str) -> str | None:
    """Return a path as `$.a[*].b`, or None if it cannot be read. The `$` may be left out."""
    if not _PATH.fullmatch(text):
        return None
    return text if text.startswith("$") else f"$.{text}"


def _without_literals(text: str) -> str:
    """Return the expression with a letter in place of each escape and each set of characters."""
    text = re.sub(r"\\.", "x", text, flags=re.DOTALL)
    return re.sub(r"\[\^?\]?[^\]]*\]", "x", text)


def _has_nested_repeat(text: str) -> bool:
    """Return whether a repeated group contains a repetition, at any depth."""
    # For each open group: whether it has a repetition so far.
    stack = [False]
    at = 0
    while at < len(text):
        char = text[at]
        if char == "(":
            stack.append(False)
        elif char == ")" and len(stack) > 1:
            has_repeat = stack.pop()
            if has_repeat and _REPEAT.match(text, at + 1):
                return True
            stack[-1] = stack[-1] or has_repeat
        elif _REPEAT.match(text, at):
            stack[-1] = True
        at += 1
    return False
