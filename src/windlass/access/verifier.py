"""The port `Verifier`: identifies the holder of a credential. Built-in keys and a Membership service implement it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from windlass.core.caller import CallerContext


class Verifier(Protocol):
    """Identifies the holder of a credential.

    An implementation promises:

    - It never blocks for longer than its timeout.
    - It raises Unauthenticated only if the credential is known to be bad; any other obstacle is Unavailable.
    - It neither logs nor stores the credential, and no message contains it.
    - Text that cannot be a credential costs no query and no request.
    """

    async def verify(self, credential: str) -> CallerContext:
        """Return the holder. Raises Unauthenticated, with the same text for every fault of the credential."""
        ...

    def close_on(self, forget: Callable[[str], None]) -> None:
        """Call `forget` with the id of a caller whose rights ended, so that its open streams end too."""
        ...
