"""Who a key's holder is when Membership does not say: an id of ours, kept as long as the key is.

The id has nothing to do with the key: it cannot be guessed from one, and says nothing about it. Two processes that meet
a key for the first time at the same moment agree on the id, as the row's key is the digest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import asyncpg

from windlass.core.errors import MembershipUnavailable
from windlass.store.database import Database
from windlass.store.outage import outage_of
from windlass.store.statements import sql

PREFIX = "caller-"
ID_LENGTH_MAX = 255
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LENGTH = 12
# Known ids in memory, so that a caller costs one look per process.
_KNOWN_MAX = 10_000


class Callers:
    """Gives every holder of a good key an id."""

    def __init__(self, db: Database, *, entropy: Callable[[int], bytes]) -> None:
        self._db = db
        self._entropy = entropy
        self._known: dict[bytes, str] = {}

    async def id_of(self, digests: Sequence[bytes], claims: Mapping[str, Any]) -> str:
        """The id that the claims name, else the one of the key's digest. The digests are of one key under every
        accepted secret, the newest first.
        """
        named = named_id(claims)
        if named is not None:
            return named
        found = self._known.get(digests[0])
        if found is None:
            try:
                found = await self._db.attempt(lambda connection: self._alias(connection, digests))
            except Exception as error:
                if (outage := outage_of(error)) is not None:
                    raise outage.error() from error
                raise
            while len(self._known) >= _KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[digests[0]] = found
        return found

    async def _alias(self, connection: asyncpg.Connection, digests: Sequence[bytes]) -> str:
        found = await connection.fetchval(sql("caller_find"), list(digests))
        if found is None:
            await connection.execute(sql("caller_put"), digests[0], self._new_id())
            found = await connection.fetchval(sql("caller_find"), list(digests))
        caller: str = found
        return caller

    def _new_id(self) -> str:
        # The bias towards some letters is small, and the id is no secret.
        return PREFIX + "".join(_LETTERS[byte % len(_LETTERS)] for byte in self._entropy(_LENGTH))


def named_id(claims: Mapping[str, Any]) -> str | None:
    """The caller's id in the claims, if there is one. One that could not be stored, or is a word of ours, is a fault of
    the Membership service: nobody is taken for somebody else because of it.
    """
    named = claims.get("caller_id")
    if named is None or named == "":
        return None
    text = str(named) if isinstance(named, int) and not isinstance(named, bool) else named
    if not isinstance(text, str) or len(text) > ID_LENGTH_MAX or not text.isprintable() or text in ("*", "local"):
        raise MembershipUnavailable(
            "the Membership service named a caller by an id that cannot be used",
            remedy=f"A caller's id is printable text of at most {ID_LENGTH_MAX} characters",
        )
    return text
