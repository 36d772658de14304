"""Predicates on the chain of delegation: three forms of text, kept for documents that use them.

    delegation.depth > 2                     also >=, <, <=, ==
    delegation.issuer == "payroll"           the first issuer of the chain
    delegation.scope.contains("refund")

A direct request has no chain, so no predicate holds for it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from windlass.policy.question import DelegationChain, fold

_DEPTH = re.compile(r"delegation\.depth\s*(>=|<=|==|>|<)\s*(\d{1,6})")
_ISSUER = re.compile(r"""delegation\.issuer\s*==\s*(["'])([^"']{1,255})\1""")
_SCOPE = re.compile(r"""delegation\.scope\.contains\(\s*(["'])([^"']{1,255})\1\s*\)""")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Predicate:
    """A parsed predicate: `depth` with an operator and a number, `issuer` or `scope` with a name."""

    kind: str
    value: str
    compare: str = ""
    number: int = 0

    def holds(self, chain: DelegationChain | None) -> bool:
        """Return whether the predicate holds for a chain."""
        if chain is None:
            return False
        if self.kind == "depth":
            return _COMPARE[self.compare](chain.depth, self.number)
        if self.kind == "issuer":
            return bool(chain.issuers) and fold(chain.issuers[0]) == self.value
        return any(fold(scope) == self.value for scope in chain.scope)


def parse_predicate(text: str) -> Predicate | None:
    """Return the predicate of a text, or None if it has none of the three forms."""
    text = text.strip()
    if found := _DEPTH.fullmatch(text):
        return Predicate("depth", "", found[1], int(found[2]))
    if found := _ISSUER.fullmatch(text):
        return Predicate("issuer", fold(found[2]))
    if found := _SCOPE.fullmatch(text):
        return Predicate("scope", fold(found[2]))
    return None
