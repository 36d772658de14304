"""Every key of a policy document: the kind of its value, its limits and its meaning.

`reader.py` reads documents by these tables, and the reference page of the documentation is made from them. So a key
that is read is also documented. The keys of tests and requests are in `request_keys.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from windlass.core.constraint import REDACTION_LEVELS
from windlass.core.verdict import DECISION_WORDS, Decision, Edge, OutputDecision

# An id has no colon, so it is never one of Windlass's own rules.
RULE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
SEVERITIES = ("low", "medium", "high", "critical")
OUTPUT_BYTES_MAX = 16_777_216
WHOLE_MAX = 2**53

Kind = Literal[
    "text",
    "words",
    "word",
    "texts",
    "texts in order",
    "globs",
    "topics",
    "hosts",
    "patterns",
    "path",
    "key",
    "predicate",
    "when",
    "flag",
    "whole",
    "number",
    "money",
    "duration",
    "json",
    "map of texts",
    "map of lists",
    "map of numbers",
    "map of wholes",
    "section",
    "sections",
    "map of sections",
]


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """A key of a section. `words` are its possible values, `section` is the section of its value."""

    kind: Kind
    about: str
    words: tuple[str, ...] = ()
    section: str = ""
    least: int = 0
    most: int = WHOLE_MAX
    is_required: bool = False
    # Lists of allowed things: an empty list allows nothing.
    may_be_empty: bool = False
    default: str = ""


_TIERS = ("global", "tenant", "workflow", "job")
_FAIL_MODES = ("closed", "open")
_MODES = ("enforce", "shadow")
_DECISIONS = tuple(DECISION_WORDS)
_REFUSALS = tuple(word for word, meant in DECISION_WORDS.items() if meant in (Decision.DENY, Decision.REQUIRE_APPROVAL))
_DEFAULTS = tuple(word for word, meant in DECISION_WORDS.items() if meant in (Decision.ALLOW, Decision.DENY))
# Rules about outputs have a list of their own.
RULE_EDGES = tuple(edge for edge in Edge if edge is not Edge.OUTPUT)

_ID = DocumentKey(
    "text", "its name in verdicts, tests and the audit; unique in the document", is_required=True, most=100
)
_REASON = DocumentKey("text", "the sentence that the caller reads", most=1000)
_DESCRIPTION = DocumentKey("text", "a note for readers of the document", most=2000)
_MODE = DocumentKey("word", "`shadow` only records what the rule would have decided", _MODES, default="enforce")
_SEVERITY = DocumentKey("word", "the weight of a finding of this rule", SEVERITIES, default="high")
_ENABLED = DocumentKey("flag", "`false` turns the rule off", default="true")

_DOCUMENT: Mapping[str, DocumentKey] = {
    "version": DocumentKey("text", "your name for this state of the document", most=100),
    "tier": DocumentKey("word", "the tier of the document; a lower tier can only tighten", _TIERS, default="global"),
    "selector": DocumentKey("section", "the requests that a document of a lower tier applies to", section="selector"),
    "default_tenant": DocumentKey("text", "the tenant of requests that name none", default="default", most=255),
    "default_decision": DocumentKey(
        "word",
        "the decision if no rule matches; a lower tier that has none leaves the decision to the other tiers",
        _DEFAULTS,
        default="deny",
    ),
    "rules": DocumentKey("sections", "the rules, in order: the first that matches decides", section="rule"),
    "input_rules": DocumentKey(
        "sections", "rules about the content of inputs; they run after an allow and only tighten", section="input_rule"
    ),
    "output_rules": DocumentKey("sections", "rules about the content of outputs", section="output_rule"),
    "input_policy": DocumentKey("section", "whether and how inputs are scanned", section="input_policy"),
    "output_policy": DocumentKey("section", "whether and how outputs are scanned", section="output_policy"),
    "tenants": DocumentKey("map of sections", "limits by tenant", section="tenant"),
    "require_human": DocumentKey(
        "section", "weak findings of input rules become an approval instead of a refusal", section="require_human"
    ),
    "tests": DocumentKey("sections", "requests with the verdicts that they must get", section="test"),
}

_RULE: Mapping[str, DocumentKey] = {
    "id": _ID,
    "at": DocumentKey("words", "the edges at which the rule is asked", tuple(RULE_EDGES), default="[submit]"),
    "match": DocumentKey("section", "the requests that it applies to; all conditions must hold", section="match"),
    "when": DocumentKey("when", "a CEL expression that must be true; an error denies"),
    "velocity": DocumentKey("section", "the rule fires only for requests past this limit", section="velocity"),
    "decision": DocumentKey("word", "the decision", _DECISIONS, is_required=True),
    "reason": _REASON,
    "approval": DocumentKey("section", "who approves; only with `require_approval`", section="approval"),
    "constraints": DocumentKey("section", "limits for jobs that the rule lets pass", section="constraints"),
    "remediations": DocumentKey("sections", "safer forms of a refused job", section="remediation"),
    "mode": _MODE,
}

_MATCH: Mapping[str, DocumentKey] = {
    "topics": DocumentKey("topics", "a glob matches the topic, `job.<recipe>` or `job.<recipe>.<step>`"),
    "tenants": DocumentKey("texts", "the tenant is in the list"),
    "capabilities": DocumentKey("texts", "the capability is in the list"),
    "pack_ids": DocumentKey("texts", "the pack is in the list"),
    "actor_ids": DocumentKey("texts", "the actor is in the list"),
    "actor_types": DocumentKey("texts", "the actor's type is in the list"),
    "agent_risk_tiers": DocumentKey("texts", "the agent's risk tier is in the list"),
    "agent_data_classifications": DocumentKey("texts", "the agent has one of these classifications"),
    "risk_tags": DocumentKey("texts", "the request has one of these tags"),
    "requires": DocumentKey("texts", "the request requires all of these"),
    "labels": DocumentKey("map of texts", "the request has all of these labels, with exactly these values"),
    "label_allowlist": DocumentKey("map of lists", "a label of the request has a value outside of its list"),
    "label_threshold": DocumentKey("map of numbers", "a label of the request is a number above its threshold"),
    "secrets_present": DocumentKey(
        "flag", "whether the label `secrets_present` is true, 1 or yes, or a risk tag is `secrets`"
    ),
    "mcp": DocumentKey("section", "the MCP call passes these lists; other requests pass too", section="mcp"),
    "predicate": DocumentKey("predicate", '`delegation.depth > 2`, `.issuer == "x"` or `.scope.contains("x")`'),
    "delegation": DocumentKey("section", "the chain of delegation passes these conditions", section="delegation"),
}

_MCP: Mapping[str, DocumentKey] = {
    f"{verb}_{noun}": DocumentKey("texts", f"the {noun} that are {done}")
    for noun in ("servers", "tools", "resources", "actions")
    for verb, done in (("allow", "allowed; without a list, all"), ("deny", "refused, also if they are allowed"))
}

_DELEGATION: Mapping[str, DocumentKey] = {
    "max_depth": DocumentKey("whole", "the chain is at most this long"),
    "issuers": DocumentKey("texts", "every issuer of the chain is in the list"),
    "require_issuer": DocumentKey("text", "the chain began with this issuer", most=255),
    "required_scope": DocumentKey("texts", "the chain has all of these scopes"),
    "forbid_delegated": DocumentKey("flag", "`true` matches direct requests only"),
}

_VELOCITY: Mapping[str, DocumentKey] = {
    "max_requests": DocumentKey(
        "whole", "how many requests may pass in a window", least=1, most=10**9, is_required=True
    ),
    "window_seconds": DocumentKey("whole", "the length of the window", least=1, most=86_400, is_required=True),
    "key": DocumentKey(
        "key",
        "what is counted: `tenant`, `topic`, `caller`, `recipe`, `actor_id`, `actor_type`, `pack_id`, `capability`, "
        "`labels.<name>`, or several with colons",
        is_required=True,
    ),
}

_APPROVAL: Mapping[str, DocumentKey] = {
    "need": DocumentKey("whole", "how many people must approve", least=1, most=100, default="1"),
    "who": DocumentKey("section", "the people who may vote; without it, all with the right to vote", section="who"),
    "expires": DocumentKey("duration", "a request without enough votes is denied after this time", default="24h"),
    "escalate": DocumentKey("section", "more people after some time", section="escalate"),
}

_WHO: Mapping[str, DocumentKey] = {
    "roles": DocumentKey("texts", "people with one of these roles"),
    "callers": DocumentKey("texts", "these callers"),
}

_ESCALATE: Mapping[str, DocumentKey] = {
    "after": DocumentKey("duration", "the time without enough votes", is_required=True),
    "to": DocumentKey("texts", "the roles that may vote from then on"),
    "callers": DocumentKey("texts", "the callers who may vote from then on"),
}

_CONSTRAINTS: Mapping[str, DocumentKey] = {
    "budgets": DocumentKey("section", "limits of time, retries, places, tokens and money", section="budgets"),
    "sandbox": DocumentKey("section", "limits of the handler's surroundings", section="sandbox"),
    "toolchain": DocumentKey("section", "the tools of the handler", section="toolchain"),
    "diff": DocumentKey("section", "limits of changes to files", section="diff"),
    "max_output_bytes": DocumentKey("whole", "the size of an output", most=OUTPUT_BYTES_MAX),
    "allowed_destinations": DocumentKey(
        "hosts", "the hosts that the job may call; globs; an empty list allows none", may_be_empty=True
    ),
    "redaction_level": DocumentKey("word", "how much of the outputs is redacted", REDACTION_LEVELS),
    "redact_patterns": DocumentKey("patterns", "regular expressions whose matches are redacted in outputs"),
}

_BUDGETS: Mapping[str, DocumentKey] = {
    "max_runtime_ms": DocumentKey("whole", "the job's time, from its submit", least=1),
    "max_retries": DocumentKey("whole", "attempts of a step after the first", most=1000),
    "max_concurrent_jobs": DocumentKey("whole", "jobs of a tenant at a time", least=1),
    "max_artifact_bytes": DocumentKey("whole", "the size of an artifact"),
    "max_input_tokens": DocumentKey("whole", "tokens that the job's providers read"),
    "max_output_tokens": DocumentKey("whole", "tokens that the job's providers write"),
    "max_total_tokens": DocumentKey("whole", "tokens of both kinds"),
    "max_cost": DocumentKey("money", "the money that the job may spend"),
}

_SANDBOX: Mapping[str, DocumentKey] = {
    "isolated": DocumentKey("flag", "the handler runs apart from others"),
    "network_allowlist": DocumentKey("hosts", "the hosts that the handler may call", may_be_empty=True),
    "fs_read_only": DocumentKey("texts", "the paths that it may read", may_be_empty=True),
    "fs_read_write": DocumentKey("texts", "the paths that it may change", may_be_empty=True),
}

_TOOLCHAIN: Mapping[str, DocumentKey] = {
    "allowed_tools": DocumentKey("texts", "the tools that it may use", may_be_empty=True),
    "allowed_commands": DocumentKey("texts", "the commands that it may run", may_be_empty=True),
}

_DIFF: Mapping[str, DocumentKey] = {
    "max_files": DocumentKey("whole", "files that it may change"),
    "max_lines": DocumentKey("whole", "lines that it may change"),
    "deny_path_globs": DocumentKey("globs", "paths that it may not change"),
}

_REMEDIATION: Mapping[str, DocumentKey] = {
    "id": DocumentKey("text", "its name; unique in the rule", is_required=True, most=100),
    "title": DocumentKey("text", "a short name for people", most=200),
    "summary": DocumentKey("text", "what changes", most=1000),
    "replacement_topic": DocumentKey("text", "the topic of the safer job", most=255),
    "replacement_capability": DocumentKey("text", "the capability of the safer job", most=255),
    "add_labels": DocumentKey("map of texts", "labels that it gets"),
    "remove_labels": DocumentKey("texts", "labels that it loses"),
}

_CONTENT: Mapping[str, DocumentKey] = {
    "tenants": _MATCH["tenants"],
    "topics": _MATCH["topics"],
    "capabilities": _MATCH["capabilities"],
    "risk_tags": _MATCH["risk_tags"],
    "scanners": DocumentKey("texts", "one of these scanners found something"),
    "content_patterns": DocumentKey("patterns", "one of these regular expressions is found"),
    "keywords": DocumentKey("texts", "one of these texts is found, in any case"),
    "content_types": DocumentKey("texts", "the media type is in the list"),
    "detectors": DocumentKey("texts", "a finding is of one of these types, such as `secret_leak`"),
    "path": DocumentKey("path", "only findings below this place count, such as `$.mails[*].body`"),
}

_INPUT_RULE: Mapping[str, DocumentKey] = {
    "id": _ID,
    "enabled": _ENABLED,
    "severity": _SEVERITY,
    "description": _DESCRIPTION,
    "match": DocumentKey("section", "all conditions must hold", section="input_match"),
    "decision": DocumentKey("word", "the decision", _REFUSALS, is_required=True),
    "reason": _REASON,
    "approval": _RULE["approval"],
    "mode": _MODE,
}

_INPUT_MATCH: Mapping[str, DocumentKey] = {
    **_CONTENT,
    "input_size_gt": DocumentKey("whole", "the inputs have more bytes than this"),
    "max_input_bytes": DocumentKey("whole", "the inputs have more bytes than this; another word for it"),
    "scope": DocumentKey("section", "an item is outside of the instruction's scope", section="scope"),
}

_SCOPE: Mapping[str, DocumentKey] = {
    "instruction_path": DocumentKey("path", "the place of the instruction in the inputs", is_required=True),
    "items_path": DocumentKey("path", "the place of the list of items in the inputs", is_required=True),
    "category_path": DocumentKey("text", "the field of an item with its category", default="category", most=255),
    "name_path": DocumentKey("text", "the field of an item with its name", default="name", most=255),
    "allowed_categories": DocumentKey("map of lists", "for each word of an instruction, the categories it allows"),
    "aliases": DocumentKey("map of texts", "other names of categories"),
    "on_missing_input": DocumentKey("word", "if a place has no value", ("deny", "allow"), default="deny"),
    "on_ambiguous": DocumentKey("word", "if no word is in the instruction", ("deny", "allow"), default="deny"),
}

_OUTPUT_RULE: Mapping[str, DocumentKey] = {
    "id": _ID,
    "enabled": _ENABLED,
    "severity": _SEVERITY,
    "description": _DESCRIPTION,
    "match": DocumentKey("section", "all conditions must hold", section="output_match"),
    "decision": DocumentKey("word", "the decision", tuple(OutputDecision), is_required=True),
    "reason": _REASON,
    "review": DocumentKey("flag", "a person decides about a quarantined output", default="false"),
    "mode": _MODE,
}

_OUTPUT_MATCH: Mapping[str, DocumentKey] = {
    **_CONTENT,
    "output_size_gt": DocumentKey("whole", "the output has more bytes than this"),
    "max_output_bytes": DocumentKey("whole", "the output has more bytes than this; another word for it"),
    "has_error": DocumentKey("flag", "whether the step failed"),
}

_INPUT_POLICY: Mapping[str, DocumentKey] = {
    "enabled": DocumentKey("flag", "`false` turns all input rules off", default="true if there are rules"),
    "fail_mode": DocumentKey(
        "word", "whether a request passes that could not be judged", _FAIL_MODES, default="closed"
    ),
    "max_scan_bytes": DocumentKey("whole", "how much of the inputs is scanned", least=1, default="2097152"),
}

_OUTPUT_POLICY: Mapping[str, DocumentKey] = {
    "enabled": DocumentKey("flag", "`false` turns all output rules off", default="true if there are rules"),
    "fail_mode": DocumentKey(
        "word", "whether an output passes that could not be judged", _FAIL_MODES, default="closed"
    ),
    "scan_at": DocumentKey("word", "the process that scans small outputs", ("worker", "engine"), default="worker"),
}

_TENANT: Mapping[str, DocumentKey] = {
    "allow_topics": DocumentKey("topics", "in a document without rules: the topics that are allowed"),
    "deny_topics": DocumentKey("topics", "in a document without rules: the topics that are denied, asked first"),
    "allowed_repo_hosts": DocumentKey("texts", "the hosts of repositories; other hosts are denied"),
    "denied_repo_hosts": DocumentKey("texts", "hosts of repositories that are denied"),
    "max_concurrent_jobs": DocumentKey("whole", "jobs of the tenant at a time", least=1),
    "mcp": DocumentKey("section", "MCP calls that do not pass these lists are denied", section="mcp"),
}

_REQUIRE_HUMAN: Mapping[str, DocumentKey] = {
    "min_severity_for_deny": DocumentKey("word", "a weaker finding asks a person instead", SEVERITIES),
    "min_confidence_for_deny": DocumentKey("number", "a finding of less confidence asks a person instead", most=1),
    "downgrade_when_prompt_only": DocumentKey("flag", "requests without host and MCP call ask a person instead"),
}

_SELECTOR: Mapping[str, DocumentKey] = {
    "tenant_id": DocumentKey("text", "the tenant; for tier `tenant`", most=255),
    "workflow_id": DocumentKey("text", "the recipe; for tier `workflow`", most=255),
    "job_id": DocumentKey("text", "the job; for tier `job`", most=255),
    "session_id": DocumentKey("text", "the value of the label `session_id`; for tier `job`", most=255),
}

SECTIONS: Mapping[str, Mapping[str, DocumentKey]] = {
    "document": _DOCUMENT,
    "selector": _SELECTOR,
    "rule": _RULE,
    "match": _MATCH,
    "mcp": _MCP,
    "delegation": _DELEGATION,
    "velocity": _VELOCITY,
    "approval": _APPROVAL,
    "who": _WHO,
    "escalate": _ESCALATE,
    "constraints": _CONSTRAINTS,
    "budgets": _BUDGETS,
    "sandbox": _SANDBOX,
    "toolchain": _TOOLCHAIN,
    "diff": _DIFF,
    "remediation": _REMEDIATION,
    "input_rule": _INPUT_RULE,
    "input_match": _INPUT_MATCH,
    "scope": _SCOPE,
    "output_rule": _OUTPUT_RULE,
    "output_match": _OUTPUT_MATCH,
    "input_policy": _INPUT_POLICY,
    "output_policy": _OUTPUT_POLICY,
    "tenant": _TENANT,
    "require_human": _REQUIRE_HUMAN,
}
