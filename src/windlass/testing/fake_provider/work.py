"""The provider's work: its request, its key, and its status.

Nothing runs, and no piece of work has a timer: its status depends on the time since it was accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import msgspec

from windlass.core.external import ProviderStatus
from windlass.testing.fake_provider.journal import Entry


class Manner(msgspec.Struct, forbid_unknown_fields=True):
    """The behaviour of work. With `seconds` None, work runs until the test ends it. `input.fake` overrides it for one
    piece.

    `outcome`: succeeded, failed, refused (by its content). With `output` None, the output echoes the input.
    """

    queued_s: float = 0.0
    seconds: float | None = 0.0
    outcome: str = "succeeded"
    error: str = "the fake provider was told to fail"
    output: Any = None
    output_bytes: int = 0
    billed_s: float = 1.5
    tokens_in: int = 12
    tokens_out: int = 34
    # For the whole provider, not for one piece:
    honours_keys: bool = True
    webhook_tries: int = 5
    webhook_again_s: float = 0.5
    webhook_profile: str = "standard"


_MANNER_FIELDS = frozenset(Manner.__struct_fields__)


class Work(msgspec.Struct):
    """One piece of work."""

    id: str
    protocol: str
    key: str
    model: str
    input: Any
    webhook: str
    created_at: float
    manner: Manner
    extra: Any = None
    forced: str = ""
    ended_at: float = 0.0
    is_end_noted: bool = False

    def status(self, now: float) -> ProviderStatus:
        """Return the status."""
        if self.forced:
            return ProviderStatus(self.forced)
        manner = self.manner
        age = now - self.created_at
        if age < manner.queued_s:
            return ProviderStatus.QUEUED
        if manner.seconds is None or age < manner.queued_s + manner.seconds:
            return ProviderStatus.RUNNING
        return ProviderStatus.SUCCEEDED if manner.outcome == "succeeded" else ProviderStatus.FAILED

    def done_at(self) -> float | None:
        """Return when it ends without a request; None if it does not."""
        if self.manner.seconds is None:
            return None
        return self.created_at + self.manner.queued_s + self.manner.seconds

    def output(self) -> Any:
        """Return the output."""
        if self.manner.output is not None:
            return self.manner.output
        told: dict[str, Any] = {"echo": self.input, "model": self.model}
        if self.manner.output_bytes:
            told["blob"] = "x" * self.manner.output_bytes
        return told


class Works:
    """All work, by id and by key."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.now = clock
        self.manner = Manner()
        self._by_id: dict[str, Work] = {}
        self._by_key: dict[tuple[str, str], Work] = {}
        self.notes: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Work]:
        return iter(self._by_id.values())

    def get(self, id: str) -> Work | None:
        """Return the work of this id."""
        return self._by_id.get(id)

    def of_key(self, protocol: str, key: str) -> Work | None:
        """Return the work that was started with this key."""
        return self._by_key.get((protocol, key)) if key else None

    def take(
        self, protocol: str, key: str, model: str, input: Any, webhook: str, *, id: str = "", extra: Any = None
    ) -> Work:
        """Accept new work."""
        manner = self.manner
        own = input.get("fake") if isinstance(input, dict) else None
        if isinstance(own, dict):
            known = {name: value for name, value in own.items() if name in _MANNER_FIELDS}
            manner = msgspec.structs.replace(manner, **known)
        work = Work(id or str(uuid4()), protocol, key, model, input, webhook, self.now(), manner, extra)
        self._add(work)
        return work

    def _add(self, work: Work) -> None:
        self._by_id[work.id] = work
        if work.key:
            self._by_key.setdefault((work.protocol, work.key), work)

    def forget(self) -> None:
        """Forget all work."""
        self._by_id.clear()
        self._by_key.clear()

    def recall(self, entry: Entry) -> None:
        """Restore work from a journal entry of an earlier process."""
        if entry.kind == "accepted":
            extra = dict(entry.extra or {})
            manner = msgspec.convert(extra.pop("manner", {}), Manner)
            self._add(
                Work(
                    entry.id, entry.protocol, entry.key, entry.model, entry.input, entry.webhook, entry.at, manner,
                    extra or None,
                )
            )  # fmt: skip
        elif entry.kind == "ended" and (work := self.get(entry.id)) is not None:
            work.forced, work.is_end_noted, work.ended_at = entry.status, True, entry.at
