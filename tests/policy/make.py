"""Short ways to make policies and questions in tests."""

from __future__ import annotations

from typing import Any

from windlass.core.verdict import Verdict
from windlass.policy.document import PolicyDocument
from windlass.policy.judge import judge
from windlass.policy.question import Question
from windlass.policy.reader import read_policy, read_question
from windlass.policy.rules import Policy, compile_policy


def document(text: str) -> PolicyDocument:
    """A document; lines of a rule may be given alone."""
    return read_policy(text)


def policy(*texts: str) -> Policy:
    """The policy of one or several documents."""
    return compile_policy([read_policy(text) for text in texts])


def rule(text: str, default: str = "allow") -> Policy:
    """A policy of one rule `r`: its keys, in one line each."""
    body = "\n".join(f"    {line.strip()}" for line in text.strip().splitlines())
    return policy(f"default_decision: {default}\nrules:\n  - id: r\n{body}\n")


def question(topic: str = "job.mail", edge: str = "submit", **fields: Any) -> Question:
    """A question with the keys of a test's request."""
    return read_question({"topic": topic, "edge": edge, **fields})


def ask(found: Policy | None, topic: str = "job.mail", edge: str = "submit", **fields: Any) -> Verdict:
    """The verdict about a question."""
    return judge(found, question(topic, edge, **fields)).verdict


def decided(found: Policy, topic: str = "job.mail", edge: str = "submit", **fields: Any) -> tuple[str, str]:
    """The decision about a question, and its rule."""
    verdict = ask(found, topic, edge, **fields)
    return str(verdict.decision), verdict.rule
