"""The port `Verifier`: whoever can say who holds a credential. Keys of our own and a Membership service are two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from windlass.core.caller import CallerContext


class Verifier(Protocol):
    """Says who holds a credential.

    Promises: it never blocks for longer than its timeout; Unauthenticated only if the credential is known to be bad;
    anything that prevents knowing is Unavailable; the credential is neither logged, nor stored, nor part of any
    message; text that cannot be a credential costs no look anywhere.
    """

    async def verify(self, credential: str) -> CallerContext:
        """Who it is. Raises Unauthenticated, with the same text whatever is wrong with it."""
        ...

    def close_on(self, forget: Callable[[str], None]) -> None:
        """Call `forget` with the id of a caller whose rights ended, so that its open streams end too."""
        ...
