"""A policy document as typed values. `reader.py` makes them from YAML, `canonical.py` makes its hash.

Lists whose order has no meaning are sets, so that two documents with the same meaning have the same hash. `line` is
the line in the text; it is for messages and no part of the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from windlass.core.constraint import NO_CONSTRAINTS, Constraints
from windlass.core.verdict import (
    ApprovalTerms,
    Decision,
    Edge,
    OutputDecision,
    Remediation,
    VelocityLimit,
)
from windlass.policy.question import Question

NOTHING: frozenset[str] = frozenset()
MAX_SCAN_BYTES = 2 << 20
DEFAULT_TENANT = "default"

FailModeWord = Literal["open", "closed"]


class PolicyTier(StrEnum):
    """The tiers of documents. A document of a lower tier applies to some requests and only tightens."""

    GLOBAL = "global"
    TENANT = "tenant"
    WORKFLOW = "workflow"
    JOB = "job"


class RuleMode(StrEnum):
    """Whether a rule decides, or only records what it would have decided."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True)
class Selector:
    """The requests that a document applies to. Every given value must be equal."""

    tenant_id: str = ""
    workflow_id: str = ""
    job_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class McpLists:
    """Allowed and denied MCP servers, tools, resources and actions."""

    allow_servers: frozenset[str] = NOTHING
    deny_servers: frozenset[str] = NOTHING
    allow_tools: frozenset[str] = NOTHING
    deny_tools: frozenset[str] = NOTHING
    allow_resources: frozenset[str] = NOTHING
    deny_resources: frozenset[str] = NOTHING
    allow_actions: frozenset[str] = NOTHING
    deny_actions: frozenset[str] = NOTHING


@dataclass(frozen=True, slots=True)
class DelegationMatch:
    """Conditions on the chain of delegation. A direct request meets all of them."""

    max_depth: int | None = None
    issuers: frozenset[str] = NOTHING
    require_issuer: str = ""
    required_scope: frozenset[str] = NOTHING
    forbid_delegated: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """The conditions of a rule. An empty condition always holds; all others must hold."""

    topics: frozenset[str] = NOTHING
    tenants: frozenset[str] = NOTHING
    capabilities: frozenset[str] = NOTHING
    pack_ids: frozenset[str] = NOTHING
    actor_ids: frozenset[str] = NOTHING
    actor_types: frozenset[str] = NOTHING
    agent_risk_tiers: frozenset[str] = NOTHING
    agent_data_classifications: frozenset[str] = NOTHING
    risk_tags: frozenset[str] = NOTHING
    requires: frozenset[str] = NOTHING
    labels: Mapping[str, str] = field(default_factory=dict)
    label_allowlist: Mapping[str, frozenset[str]] = field(default_factory=dict)
    label_threshold: Mapping[str, float] = field(default_factory=dict)
    secrets_present: bool | None = None
    mcp: McpLists | None = None
    predicate: str = ""
    delegation: DelegationMatch | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about requests."""

    id: str
    decision: Decision
    at: frozenset[Edge] = frozenset({Edge.SUBMIT})
    match: Match = field(default_factory=Match)
    when: str = ""
    velocity: VelocityLimit | None = None
    reason: str = ""
    approval: ApprovalTerms | None = None
    constraints: Constraints = NO_CONSTRAINTS
    remediations: tuple[Remediation, ...] = ()
    mode: RuleMode = RuleMode.ENFORCE
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ScopeMatch:
    """Compares an instruction with the categories of items: the condition holds if an item is out of scope."""

    instruction_path: str
    items_path: str
    category_path: str = "category"
    name_path: str = "name"
    allowed_categories: Mapping[str, frozenset[str]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    on_missing_input: str = "deny"
    on_ambiguous: str = "deny"


@dataclass(frozen=True, slots=True)
class ContentMatch:
    """The conditions of a rule about content. All given conditions must hold."""

    tenants: frozenset[str] = NOTHING
    topics: frozenset[str] = NOTHING
    capabilities: frozenset[str] = NOTHING
    risk_tags: frozenset[str] = NOTHING
    scanners: frozenset[str] = NOTHING
    content_patterns: frozenset[str] = NOTHING
    keywords: frozenset[str] = NOTHING
    content_types: frozenset[str] = NOTHING
    detectors: frozenset[str] = NOTHING
    path: str = ""
    # The content has more bytes than this; the smaller of the two keys that say so.
    size_gt: int | None = None
    has_error: bool | None = None
    scope: ScopeMatch | None = None


@dataclass(frozen=True, slots=True)
class InputRule:
    """A rule about the content of inputs: a refusal, or an approval."""

    id: str
    decision: Decision
    match: ContentMatch = field(default_factory=ContentMatch)
    severity: str = "high"
    description: str = ""
    reason: str = ""
    approval: ApprovalTerms | None = None
    is_enabled: bool = True
    mode: RuleMode = RuleMode.ENFORCE
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OutputRule:
    """A rule about the content of outputs."""

    id: str
    decision: OutputDecision
    match: ContentMatch = field(default_factory=ContentMatch)
    severity: str = "high"
    description: str = ""
    reason: str = ""
    is_reviewed: bool = False
    is_enabled: bool = True
    mode: RuleMode = RuleMode.ENFORCE
    line: int | None = field(default=None, compare=False)


AnyRule = Rule | InputRule | OutputRule


@dataclass(frozen=True, slots=True)
class InputPolicy:
    """Whether and how inputs are scanned."""

    is_enabled: bool = False
    fail_mode: FailModeWord = "closed"
    max_scan_bytes: int = MAX_SCAN_BYTES


@dataclass(frozen=True, slots=True)
class OutputPolicy:
    """Whether and how outputs are scanned."""

    is_enabled: bool = False
    fail_mode: FailModeWord = "closed"
    scan_at: str = "worker"


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """The limits of one tenant."""

    allow_topics: frozenset[str] = NOTHING
    deny_topics: frozenset[str] = NOTHING
    allowed_repo_hosts: frozenset[str] = NOTHING
    denied_repo_hosts: frozenset[str] = NOTHING
    max_concurrent_jobs: int | None = None
    mcp: McpLists | None = None


@dataclass(frozen=True, slots=True)
class RequireHuman:
    """Which refusals by input rules become approvals."""

    min_severity_for_deny: str = ""
    min_confidence_for_deny: float = 0.0
    downgrade_when_prompt_only: bool = False


@dataclass(frozen=True, slots=True)
class Expect:
    """The verdict that a test expects."""

    decision: Decision | OutputDecision
    rule: str | None = None
    # The rules in shadow mode that would have decided; None means that the test does not look at them.
    would: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """A request with the verdict that it must get."""

    question: Question
    expect: Expect
    name: str = ""
    # For rules with a velocity limit: the requests that passed in the window before this one.
    counts: Mapping[str, int] = field(default_factory=dict)
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A whole document. `default_decision` is None if a document of a lower tier has no opinion."""

    version: str = ""
    tier: PolicyTier = PolicyTier.GLOBAL
    selector: Selector = field(default_factory=Selector)
    default_tenant: str = DEFAULT_TENANT
    default_decision: Decision | None = Decision.DENY
    rules: tuple[Rule, ...] = ()
    input_rules: tuple[InputRule, ...] = ()
    output_rules: tuple[OutputRule, ...] = ()
    input_policy: InputPolicy = field(default_factory=InputPolicy)
    output_policy: OutputPolicy = field(default_factory=OutputPolicy)
    tenants: Mapping[str, TenantPolicy] = field(default_factory=dict)
    require_human: RequireHuman | None = None
    tests: tuple[PolicyTest, ...] = ()
