"""What the parts of the fake provider know of one another."""

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
        """The answer to a request; None hangs up."""
        ...

    def news(self, work: Work, status: ProviderStatus) -> bytes | None:
        """What a webhook says at this point, None if it says nothing then."""
        ...


class Teller(Protocol):
    """What a sender of webhooks needs to know."""

    works: Works
    faults: Faults
    speeches: dict[str, Speech]

    def note(self, kind: str, work: Work | None = None, **more: Any) -> None:
        """Write a line of the journal."""
        ...

    def end(self, work: Work, status: ProviderStatus) -> None:
        """It has ended."""
        ...
