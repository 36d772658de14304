"""The interfaces between the parts of the fake provider."""

from __future__ import annotations

from typing import Any, Protocol

from windlass.core.external import ProviderStatus
from windlass.testing.fake_provider.faults import Faults
from windlass.testing.fake_provider.wire import Reply, Request
from windlass.testing.fake_provider.work import Work, Works


class Speech(Protocol):
    """One protocol."""

    name: str

    async def answer(self, request: Request, path: str) -> Reply | None:
        """Answer a request; None closes the connection."""
        ...

    def news(self, work: Work, status: ProviderStatus) -> bytes | None:
        """Return the body of the webhook for this status; None if there is none."""
        ...


class Teller(Protocol):
    """The part of the provider that a sender of webhooks needs."""

    works: Works
    faults: Faults
    speeches: dict[str, Speech]

    def note(self, kind: str, work: Work | None = None, **more: Any) -> None:
        """Write a line of the journal."""
        ...

    def end(self, work: Work, status: ProviderStatus) -> None:
        """Record the end of the work."""
        ...
