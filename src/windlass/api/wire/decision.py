"""The policy's decisions about a job on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from windlass.api.wire.wire import Time, Told


class DecisionDocument(Told):
    """A verdict that is not a plain yes."""

    seq: int
    edge: str = Field(description="The moment: submit, dispatch, claim, provider, output.")
    no: int | None = Field(description="The step; null for the whole job.")
    attempt: int | None
    decision: str
    rule: str
    policy: int | None = Field(description="The version of the policy.")
    subject: str | None = Field(description="The digest of what an approval is bound to.")
    reason: str
    constraints: dict[str, Any]
    enforced: dict[str, str] = Field(
        description="Who stops a job that breaks the constraint: `engine` or `output`. `handler` means that only the "
        "handler can keep it, so it is not enforced."
    )
    kernel: str | None
    at: Time


class DecisionList(Told):
    """What the policy said about a job."""

    policy: int | None = Field(description="The policy of the newest verdict under which the job may go on.")
    rule: str | None = Field(description="The rule of that verdict.")
    items: list[DecisionDocument] = Field(description="All verdicts but plain permissions, in order.")
