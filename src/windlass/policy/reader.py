"""Reads a policy document: YAML or JSON text in, a typed `PolicyDocument` out.

The reader is strict. An unknown key, an unknown word, a duplicate id or a value over a limit is a `BadPolicy` that
names its place, its line and the nearest known word. A document that can be read can also be judged by: conditions in
CEL are compiled here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, cast

from windlass.core.constraint import NO_CONSTRAINTS, Constraints
from windlass.core.errors import BadPolicy, BadRecipe, TooLarge
from windlass.core.expression import nearest
from windlass.core.verdict import (
    APPROVAL_EXPIRES_S,
    BAD_TOPIC,
    DECISION_WORDS,
    DEFAULT,
    FAULT,
    NO_POLICY,
    NO_RULE,
    ApprovalTerms,
    Decision,
    Edge,
    OutputDecision,
    Remediation,
    VelocityLimit,
    Voters,
)
from windlass.policy.document import (
    AnyRule,
    ContentMatch,
    DelegationMatch,
    Expect,
    InputPolicy,
    InputRule,
    Match,
    McpLists,
    OutputPolicy,
    OutputRule,
    PolicyDocument,
    PolicyTest,
    PolicyTier,
    RequireHuman,
    Rule,
    RuleMode,
    ScopeMatch,
    Selector,
    TenantPolicy,
)
from windlass.policy.keys import RULE_ID
from windlass.policy.question import CallerFacts, ContentFacts, DelegationChain, FindingFact, Question, fold, topic_of
from windlass.policy.scan.names import FAMILIES, installed_names
from windlass.policy.value_reader import ValueReader
from windlass.recipe.yaml_text import read_document

POLICY_BYTES_MAX = 2 << 20
RULES_MAX = 10_000
TESTS_MAX = 20_000
REMEDIATIONS_MAX = 20

Parts = dict[str, Any]
Placed = list[tuple[str, Parts]]


def read_policy(source: str | bytes, *, scanners: Collection[str] | None = None) -> PolicyDocument:
    """Read a document. Rules may name the installed scanners, or only the given ones. Raises BadPolicy."""
    size = len(source.encode(errors="surrogatepass") if isinstance(source, str) else source)
    if size > POLICY_BYTES_MAX:
        raise BadPolicy(f"a policy of {size:,} bytes; at most {POLICY_BYTES_MAX:,} are allowed")
    try:
        value, lines = read_document(source, has_aliases=False)
    except (BadRecipe, TooLarge) as error:
        raise BadPolicy(error.message, remedy=error.remedy) from None
    if value is None:
        raise BadPolicy("the policy is empty", remedy="Write at least `default_decision: deny`")
    if isinstance(value, dict) and isinstance(value.get("version"), int):
        # `version: 7` means the text, as people write it.
        value = {**value, "version": str(value["version"])}
    return _DocumentReader(ValueReader(lines), scanners).document(value)


def read_question(value: Any, *, scanners: Collection[str] | None = None) -> Question:
    """Read a request, with the keys of a test's `request`. Raises BadPolicy that names the key."""
    reader = _DocumentReader(ValueReader({}), scanners)
    return reader.question(reader.read.section("request", value, "request"), "request")


def read_answer(value: dict[str, Any]) -> Rule:
    """Read a kernel's decision, with the keys of a rule, as strictly as a rule. Raises BadPolicy that names the key."""
    reader = _DocumentReader(ValueReader({}), frozenset())
    return reader._rule("answer", reader.read.section("rule", {"id": "answer", **value}, "answer"))


class _KnownRules:
    """The ids of a document's rules, for the tests that name them."""

    def __init__(self, document: PolicyDocument) -> None:
        rules: tuple[AnyRule, ...] = (*document.rules, *document.input_rules, *document.output_rules)
        self.names = {rule.id for rule in rules}
        self.shadows = {rule.id for rule in rules if rule.mode is RuleMode.SHADOW}
        self.counted = {rule.id for rule in document.rules if rule.velocity is not None}


class _DocumentReader:
    """Turns the plain values of sections into typed values, and checks what concerns several keys."""

    def __init__(self, read: ValueReader, scanners: Collection[str] | None) -> None:
        self.read = read
        self._scanners = scanners

    def document(self, value: Any) -> PolicyDocument:
        parts = self.read.section("document", value, "")
        rules = tuple(self._rule(place, one) for place, one in self._bounded(parts, "rules"))
        inputs = tuple(self._input_rule(place, one) for place, one in self._bounded(parts, "input_rules"))
        outputs = tuple(self._output_rule(place, one) for place, one in self._bounded(parts, "output_rules"))
        if len(rules) + len(inputs) + len(outputs) > RULES_MAX:
            raise self.read.bad("rules", f"the document has more than {RULES_MAX:,} rules")
        tier = PolicyTier(parts.get("tier", PolicyTier.GLOBAL))
        document = PolicyDocument(
            version=parts.get("version", ""),
            tier=tier,
            selector=self._selector(parts, tier),
            default_tenant=fold(parts.get("default_tenant", "default")),
            default_decision=self._default(parts, tier),
            rules=rules,
            input_rules=inputs,
            output_rules=outputs,
            input_policy=InputPolicy(**_enabled(parts.get("input_policy", {}), bool(inputs))),
            output_policy=OutputPolicy(**_enabled(parts.get("output_policy", {}), bool(outputs))),
            tenants={name: self._tenant(one) for name, one in parts.get("tenants", {}).items()},
            require_human=RequireHuman(**parts["require_human"]) if "require_human" in parts else None,
        )
        self._check_ids(parts)
        known = _KnownRules(document)
        tests = tuple(self._test(place, one, known) for place, one in self._bounded(parts, "tests", TESTS_MAX))
        return replace(document, tests=tests)

    def _bounded(self, parts: Parts, key: str, most: int = RULES_MAX) -> Placed:
        found: Placed = parts.get(key, [])
        if len(found) > most:
            raise self.read.bad(key, f"has {len(found):,} entries; at most {most:,} are allowed")
        return found

    def _selector(self, parts: Parts, tier: PolicyTier) -> Selector:
        selector = Selector(**{name: fold(text) for name, text in parts.get("selector", {}).items()})
        wanted = {
            PolicyTier.GLOBAL: (),
            PolicyTier.TENANT: ("tenant_id",),
            PolicyTier.WORKFLOW: ("workflow_id",),
            PolicyTier.JOB: ("job_id", "session_id"),
        }[tier]
        if not wanted and selector != Selector():
            raise self.read.bad("selector", "the global tier applies to all requests", "Set `tier`, or leave it out")
        if wanted and not any(getattr(selector, name) for name in wanted):
            raise self.read.bad("tier", f"the tier {tier} needs selector.{' or selector.'.join(wanted)}")
        return selector

    def _default(self, parts: Parts, tier: PolicyTier) -> Decision | None:
        if "default_decision" in parts:
            return DECISION_WORDS[parts["default_decision"]]
        return Decision.DENY if tier is PolicyTier.GLOBAL else None

    def _check_ids(self, parts: Parts) -> None:
        places: dict[str, str] = {}
        for key in ("rules", "input_rules", "output_rules"):
            for place, one in parts.get(key, []):
                name = one["id"]
                if not RULE_ID.fullmatch(name):
                    raise self.read.bad(
                        f"{place}.id", f"{name!r} is not an id", "Use letters, digits, dots, hyphens and underscores"
                    )
                if name in places:
                    at = self.read.line(places[name])
                    where = places[name] if at is None else f"line {at}"
                    raise self.read.bad(f"{place}.id", f"the id {name!r} is taken by the rule on {where}")
                places[name] = f"{place}.id"

    def _rule(self, place: str, parts: Parts) -> Rule:
        decision = DECISION_WORDS[parts["decision"]]
        constraints = _constraints(parts.get("constraints", {}))
        if constraints != NO_CONSTRAINTS and decision is Decision.DENY:
            raise self.read.bad(f"{place}.constraints", "a denied job has no use for constraints")
        if constraints == NO_CONSTRAINTS and decision is Decision.ALLOW_WITH_CONSTRAINTS:
            raise self.read.bad(place, "has no constraints", "Add `constraints`, or write `decision: allow`")
        if constraints != NO_CONSTRAINTS and decision is Decision.ALLOW:
            decision = Decision.ALLOW_WITH_CONSTRAINTS
        at = frozenset(Edge(word) for word in parts.get("at", ["submit"]))
        if "velocity" in parts and Edge.CLAIM in at:
            raise self.read.bad(f"{place}.at", "a rule with `velocity` cannot be asked at claim: it would count twice")
        if "velocity" in parts and parts.get("mode") == RuleMode.SHADOW:
            raise self.read.bad(f"{place}.mode", "a rule with `velocity` counts requests, so it cannot be a shadow")
        return Rule(
            id=parts["id"],
            decision=decision,
            at=at,
            match=_match(parts.get("match", {})),
            when=parts.get("when", ""),
            velocity=_velocity(parts.get("velocity")),
            reason=parts.get("reason", ""),
            approval=self._approval(place, parts, decision),
            constraints=constraints,
            remediations=self._remediations(place, parts.get("remediations", [])),
            mode=RuleMode(parts.get("mode", RuleMode.ENFORCE)),
            line=self.read.line(place),
        )

    def _approval(self, place: str, parts: Parts, decision: Decision) -> ApprovalTerms | None:
        if decision is not Decision.REQUIRE_APPROVAL:
            if "approval" in parts:
                raise self.read.bad(f"{place}.approval", "only `decision: require_approval` has it")
            return None
        found = parts.get("approval", {})
        who, escalate = found.get("who", {}), found.get("escalate", {})
        if escalate and not who:
            raise self.read.bad(f"{place}.approval.escalate", "all people may vote already", "Add `who`")
        if escalate and not escalate.keys() & {"to", "callers"}:
            raise self.read.bad(f"{place}.approval.escalate", "has neither `to` nor `callers`")
        group = Voters(
            who.get("roles", frozenset()),
            who.get("callers", frozenset()),
            escalate.get("after"),
            escalate.get("to", frozenset()),
            escalate.get("callers", frozenset()),
        )
        return ApprovalTerms(found.get("need", 1), (group,), found.get("expires", APPROVAL_EXPIRES_S))

    def _remediations(self, place: str, found: Placed) -> tuple[Remediation, ...]:
        if len(found) > REMEDIATIONS_MAX:
            raise self.read.bad(f"{place}.remediations", f"has more than {REMEDIATIONS_MAX} entries")
        names = [one["id"] for _, one in found]
        if len(set(names)) < len(names):
            raise self.read.bad(f"{place}.remediations", "two of them have the same id")
        return tuple(
            Remediation(**{**one, "remove_labels": tuple(sorted(one.get("remove_labels", ())))}) for _, one in found
        )

    def _input_rule(self, place: str, parts: Parts) -> InputRule:
        decision = DECISION_WORDS[parts["decision"]]
        return InputRule(
            id=parts["id"],
            decision=decision,
            match=self._content_match(f"{place}.match", parts.get("match", {})),
            severity=parts.get("severity", "high"),
            description=parts.get("description", ""),
            reason=parts.get("reason", ""),
            approval=self._approval(place, parts, decision),
            is_enabled=parts.get("enabled", True),
            mode=RuleMode(parts.get("mode", RuleMode.ENFORCE)),
            line=self.read.line(place),
        )

    def _output_rule(self, place: str, parts: Parts) -> OutputRule:
        decision = OutputDecision(parts["decision"])
        is_reviewed = parts.get("review", False)
        if is_reviewed and decision not in (OutputDecision.QUARANTINE, OutputDecision.DENY):
            raise self.read.bad(f"{place}.review", "only a quarantined output is reviewed")
        return OutputRule(
            id=parts["id"],
            decision=decision,
            match=self._content_match(f"{place}.match", parts.get("match", {})),
            severity=parts.get("severity", "high"),
            description=parts.get("description", ""),
            reason=parts.get("reason", ""),
            is_reviewed=is_reviewed,
            is_enabled=parts.get("enabled", True),
            mode=RuleMode(parts.get("mode", RuleMode.ENFORCE)),
            line=self.read.line(place),
        )

    def _content_match(self, place: str, parts: Parts) -> ContentMatch:
        self._check_scanners(f"{place}.scanners", parts.get("scanners", ()))
        sizes = [parts.pop(key) for key in _SIZE_KEYS if key in parts]
        scope = parts.pop("scope", None)
        return ContentMatch(
            **parts, size_gt=min(sizes, default=None), scope=None if scope is None else ScopeMatch(**scope)
        )

    def _check_scanners(self, place: str, names: Iterable[str]) -> None:
        for name in sorted(names):
            if self._scanners is None and name in FAMILIES:
                continue
            # The packages are asked only for a name that is not built in.
            known = installed_names() if self._scanners is None else self._scanners
            if name not in known:
                raise self.read.bad(place, f"there is no scanner {name!r}: {nearest(name, known)}")

    def _tenant(self, parts: Parts) -> TenantPolicy:
        mcp = parts.pop("mcp", None)
        return TenantPolicy(**parts, mcp=None if mcp is None else McpLists(**mcp))

    def question(self, parts: Parts, place: str) -> Question:
        """Make a question from a section `request`."""
        found = dict(parts)
        found["edge"] = Edge(found.get("edge", Edge.SUBMIT))
        if "topic" not in found:
            found["topic"] = topic_of(found["recipe"], found.get("step", "")) if "recipe" in found else ""
        if "caller" in found:
            found["caller"] = CallerFacts(**found["caller"])
        if "delegation" in found:
            found["delegation"] = DelegationChain(**found["delegation"])
        if "content" in found:
            found["content"] = self._content(found["content"], f"{place}.content")
        return Question(**found)

    def _content(self, parts: Parts, place: str) -> ContentFacts:
        findings = tuple(FindingFact(**one) for _, one in parts.pop("findings", []))
        self._check_scanners(f"{place}.findings", {finding.scanner for finding in findings})
        self._check_scanners(f"{place}.scanners", parts.get("scanners", ()))
        return ContentFacts(**parts, findings=findings)

    def _test(self, place: str, parts: Parts, known: _KnownRules) -> PolicyTest:
        question = self.question(parts["request"], f"{place}.request")
        counts = parts.get("counts", {})
        for name in counts:
            if name not in known.counted:
                raise self.read.bad(
                    f"{place}.counts.{name}", f"no rule {name!r} has `velocity`: {nearest(name, known.counted)}"
                )
        expect = self._expect(f"{place}.expect", parts["expect"], question.edge, known)
        return PolicyTest(question, expect, parts.get("name", ""), counts, self.read.line(place))

    def _expect(self, place: str, parts: Parts, edge: Edge, known: _KnownRules) -> Expect:
        word = parts["decision"]
        words: Collection[str] = tuple(OutputDecision) if edge is Edge.OUTPUT else DECISION_WORDS
        if word not in words:
            raise self.read.bad(f"{place}.decision", f"{word!r} is no decision at the edge {edge}")
        decision = OutputDecision(word) if edge is Edge.OUTPUT else DECISION_WORDS[word]
        rule = parts.get("rule")
        if rule is not None and rule not in known.names and not rule.startswith(_OWN_RULES):
            hint = nearest(rule, known.names | {*_OWN_RULES})
            raise self.read.bad(f"{place}.rule", f"there is no rule {rule!r}: {hint}")
        for name in sorted(parts.get("would", ())):
            if name not in known.shadows:
                hint = nearest(name, known.shadows)
                raise self.read.bad(f"{place}.would", f"no rule {name!r} is in shadow mode: {hint}")
        return Expect(decision, rule, parts.get("would"))


_OWN_RULES = (BAD_TOPIC, DEFAULT, FAULT, NO_POLICY, NO_RULE, "tenant:")
_SIZE_KEYS = ("input_size_gt", "max_input_bytes", "output_size_gt", "max_output_bytes")


def _enabled(parts: Parts, has_rules: bool) -> Parts:
    """Return the section with `is_enabled`. Rules without the key are on: a forgotten key must not turn them off."""
    found = dict(parts)
    found["is_enabled"] = found.pop("enabled", has_rules)
    return found


def _constraints(parts: Parts) -> Constraints:
    """Return the constraints of a section, whose groups are flat in the value. `isolated: false` demands nothing."""
    flat: Parts = {}
    for key, value in parts.items():
        flat.update(value if isinstance(value, dict) else {key: value})
    return Constraints(**{key: value for key, value in flat.items() if value is not False})


def _match(parts: Parts) -> Match:
    found = dict(parts)
    if "mcp" in found:
        found["mcp"] = McpLists(**found["mcp"])
    if "delegation" in found:
        found["delegation"] = DelegationMatch(**found["delegation"])
    return Match(**found)


def _velocity(parts: Parts | None) -> VelocityLimit | None:
    if parts is None:
        return None
    return VelocityLimit(parts["max_requests"], parts["window_seconds"], cast(tuple[str, ...], parts["key"]))
