"""Every key of a policy's tests, and of requests that are judged by hand.

Requests in files (`windlass policy explain FILE REQUEST.json`) have the keys of the requests of tests. Programs write
such files too, so texts, lists and maps may be empty.
"""

from __future__ import annotations

from collections.abc import Mapping

from windlass.core.verdict import DECISION_WORDS, Edge, OutputDecision
from windlass.policy.keys import SEVERITIES, DocumentKey

_TEST: Mapping[str, DocumentKey] = {
    "name": DocumentKey("text", "what the test shows", most=200),
    "request": DocumentKey("section", "the request", section="request", is_required=True),
    "counts": DocumentKey("map of wholes", "for rules with `velocity`: how many requests passed before this one"),
    "expect": DocumentKey("section", "its verdict", section="expect", is_required=True),
}

_EXPECT: Mapping[str, DocumentKey] = {
    "decision": DocumentKey(
        "word", "the decision", tuple(dict.fromkeys((*DECISION_WORDS, *OutputDecision))), is_required=True
    ),
    "rule": DocumentKey("text", "the rule that decides; `windlass:default` if none matches", most=300),
    "would": DocumentKey("texts", "the rules in shadow mode that would have decided; empty: none", may_be_empty=True),
}

_REQUEST: Mapping[str, DocumentKey] = {
    "edge": DocumentKey("word", "the edge", tuple(Edge), default="submit"),
    "topic": DocumentKey("text", "the topic; else made from recipe and step", most=1000, may_be_empty=True),
    "recipe": DocumentKey("text", "the recipe", most=255, may_be_empty=True),
    "step": DocumentKey("text", "the step", most=255, may_be_empty=True),
    "job_id": DocumentKey("text", "the job", most=255, may_be_empty=True),
    "tenant": DocumentKey("text", "the tenant", most=255, may_be_empty=True),
    "caller": DocumentKey("section", "the caller", section="caller"),
    "labels": DocumentKey("map of texts", "the labels", may_be_empty=True),
    "inputs": DocumentKey("json", "the inputs"),
    "priority": DocumentKey("whole", "the priority", least=-100, most=100),
    "depth": DocumentKey("whole", "how many jobs stand above it", most=10_000),
    "capability": DocumentKey("text", "the capability", most=255, may_be_empty=True),
    "risk_tags": DocumentKey("texts", "the risk tags", may_be_empty=True),
    "requires": DocumentKey("texts", "what it requires", may_be_empty=True),
    "pack_id": DocumentKey("text", "the pack", most=255, may_be_empty=True),
    "actor_id": DocumentKey("text", "the actor", most=255, may_be_empty=True),
    "actor_type": DocumentKey("text", "the actor's type", most=255, may_be_empty=True),
    "agent_risk_tier": DocumentKey("text", "the agent's risk tier", most=255, may_be_empty=True),
    "agent_data_classifications": DocumentKey("texts", "the agent's classifications", may_be_empty=True),
    "provider": DocumentKey("text", "the provider", most=255, may_be_empty=True),
    "model": DocumentKey("text", "the model", most=255, may_be_empty=True),
    "host": DocumentKey("text", "the host that is called", most=255, may_be_empty=True),
    "cost": DocumentKey("money", "the expected cost"),
    "delegation": DocumentKey("section", "the chain of delegation", section="chain"),
    "content": DocumentKey("section", "what scanners say about the content", section="content"),
}

_CALLER: Mapping[str, DocumentKey] = {
    "id": DocumentKey("text", "the caller's name", most=255, may_be_empty=True),
    "type": DocumentKey("text", "user, service or unknown", most=255, may_be_empty=True),
    "tier": DocumentKey("text", "the service level", most=255, may_be_empty=True),
    "role": DocumentKey("text", "user, service or admin", most=255, may_be_empty=True),
    "scopes": DocumentKey("texts", "the rights", may_be_empty=True),
}

_CHAIN: Mapping[str, DocumentKey] = {
    "depth": DocumentKey("whole", "how long the chain is", least=1, is_required=True),
    "issuers": DocumentKey("texts in order", "the issuers, from the first", may_be_empty=True),
    "scope": DocumentKey("texts", "the scopes", may_be_empty=True),
}

_FACTS: Mapping[str, DocumentKey] = {
    "size_bytes": DocumentKey("whole", "the size"),
    "content_type": DocumentKey("text", "the media type", most=255, may_be_empty=True),
    "scanners": DocumentKey("texts", "the scanners that answered; else all", may_be_empty=True),
    "findings": DocumentKey("sections", "what they found", section="finding"),
    "keywords": DocumentKey("texts", "the keywords that were found", may_be_empty=True),
    "patterns": DocumentKey("texts", "the regular expressions that were found", may_be_empty=True),
    "has_error": DocumentKey("flag", "whether the step failed"),
}

_FINDING: Mapping[str, DocumentKey] = {
    "scanner": DocumentKey("text", "the scanner", is_required=True, most=100),
    "type": DocumentKey("text", "the type of the finding", most=100),
    "severity": DocumentKey("word", "its severity", SEVERITIES, default="high"),
    "confidence": DocumentKey("number", "how sure the scanner is, from 0 to 1", most=1, default="1"),
    "path": DocumentKey("path", "the place in the content", default="$"),
}

REQUEST_SECTIONS: Mapping[str, Mapping[str, DocumentKey]] = {
    "test": _TEST,
    "request": _REQUEST,
    "caller": _CALLER,
    "chain": _CHAIN,
    "content": _FACTS,
    "finding": _FINDING,
    "expect": _EXPECT,
}
