"""A submission: the request for a job, checked before anything is written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from windlass.core.caller import CRITICAL, PRIORITY_MAX
from windlass.core.errors import BadInput
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.plan import Plan
from windlass.engine.asker import Asker
from windlass.store.columns import encode

CORRELATION_ID_MAX = 200
BUDGET_MAX = 1_000_000_000_000
BUDGET_PLACES_MAX = 12


class Webhook(NamedTuple):
    """The address for the notice of a job's end. The secret is sealed already."""

    url: str
    secret: bytes


class Submission(NamedTuple):
    """A request for a job. `inputs` fit the plan's schema already (`recipe/schema.py` checks and completes them)."""

    plan: Plan
    inputs: Mapping[str, Any]
    job_id: UUID
    caller: str = "local"
    idempotency_key: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 0
    deadline_s: float | None = None
    # The job's time to live. None: that of its recipe, or `default_s`, or as long as the plan needs.
    ttl_s: float | None = None
    default_s: float | None = None
    correlation_id: str | None = None
    parent: tuple[UUID, int, int] | None = None
    depth: int = 0
    retry_of: UUID | None = None
    webhook: Webhook | None = None
    # The most that the job may spend. None: as much as its recipe and its caller may.
    budget: Decimal | None = None
    # Holds on every step of the job until their owners remove them. The job is PENDING meanwhile.
    holds: Hold = NO_HOLD
    # Further parts of the request that the job does not store. The same key with other parts is a conflict.
    asked: tuple[str, ...] = ()
    # The verified caller, as policies see it. None: as far as it is known from the caller's name.
    asker: Asker | None = None
    # The policy denies the job: its steps are born ended.
    is_denied: bool = False

    @property
    def is_ttl_default(self) -> bool:
        """Whether neither the caller nor the recipe chose the time to live."""
        return self.ttl_s is None and self.plan.ttl_s is None

    @property
    def lives_s(self) -> float:
        """The job's time to live in seconds."""
        if self.ttl_s is not None:
            return self.ttl_s
        return self.default_s if self.default_s is not None and self.plan.ttl_s is None else self.plan.lives_s

    def check(self) -> None:
        """Refuse values that the tables cannot hold or that make no sense."""
        if not -PRIORITY_MAX <= self.priority <= (CRITICAL if self.plan.is_undo else PRIORITY_MAX):
            raise BadInput(f"priority {self.priority} is not between -{PRIORITY_MAX} and {PRIORITY_MAX}")
        for name, value in (("deadline", self.deadline_s), ("ttl", self.ttl_s)):
            if value is not None and value <= 0:
                raise BadInput(f"{name} must be longer than 0")
            if value is not None and not value <= 10 * 365 * 86400:
                raise BadInput(f"{name} of {value} s is not a time between 0 and 10 years")
        if self.idempotency_key is not None and not 0 < len(self.idempotency_key) <= 255:
            raise BadInput("an idempotency key has 1 to 255 characters")
        if self.correlation_id is not None and not 0 < len(self.correlation_id) <= CORRELATION_ID_MAX:
            raise BadInput(f"a correlation id has 1 to {CORRELATION_ID_MAX} characters")
        if self.labels:
            self._check_labels(self.labels)
        for text in (self.caller, self.idempotency_key, self.correlation_id):
            if text is not None:
                check_text(text)
        if self.budget is not None:
            self._check_budget(self.budget)
        if self.webhook is not None:
            check_text(self.webhook.url)
            if self.correlation_id is None:
                raise BadInput("a job with a webhook needs a correlation id, because the feed reports its end")

    def _check_budget(self, budget: Decimal) -> None:
        exponent = budget.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -BUDGET_PLACES_MAX or not 0 < budget <= BUDGET_MAX:
            raise BadInput(
                f"a budget of {budget!s:.50} is not more than 0, up to {BUDGET_MAX:,}, "
                f"with at most {BUDGET_PLACES_MAX} digits after the point"
            )

    def _check_labels(self, labels: Mapping[str, str]) -> None:
        if len(labels) > 64 or any(len(text) > 255 for pair in labels.items() for text in pair):
            raise BadInput("there may be 64 labels at most, of 255 characters each")
        for text in (text for pair in labels.items() for text in pair):
            check_text(text)


def check_text(text: str) -> None:
    """Refuse text that PostgreSQL cannot store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput("a key, label or caller is not proper text (it holds half a surrogate pair)") from None
    if "\x00" in text:
        raise BadInput("a key, label or caller holds a NUL character, which PostgreSQL cannot store")


def body_hash(submission: Submission, body: str) -> str:
    """Hash everything that was requested; `body` is the inputs as text."""
    # The recipe counts by name, not by plan: a redeploy must not turn a retry into a conflict.
    asked: list[Any] = [
        submission.plan.recipe, body, dict(submission.labels or {}), submission.priority, submission.deadline_s
    ]  # fmt: skip
    if submission.webhook is not None:
        # The secret is left out: sealing the same secret twice gives two texts.
        asked.append(submission.webhook.url)
    if submission.budget is not None:
        asked.append(["budget", format(submission.budget.normalize(), "f")])
    if submission.asked:
        asked.append(list(submission.asked))
    return hashlib.sha256(encode(asked).encode()).hexdigest()
