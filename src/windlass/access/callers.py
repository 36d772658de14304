"""Caller ids for keys whose holder the Membership service does not name.

The id is random: it cannot be derived from the key, and reveals nothing about it. It is stored as long as the key. Two
processes that first see a key at the same moment agree on the id, because the row's primary key is the digest.

When Membership names the holder later, the name adopts the id. The adoption is noted in the audit, and the engine moves
the jobs of the id to the name (`engine/loops/adopter.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import asyncpg

from windlass.access.audit import write_note
from windlass.core.errors import MembershipUnavailable
from windlass.pure.audit import AuditEvent
from windlass.store.database import Database
from windlass.store.outage import outage_of
from windlass.store.statements import sql

PREFIX = "caller-"
ID_LENGTH_MAX = 255
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LENGTH = 12
# A process keeps known ids in memory, so a caller costs it one query.
_KNOWN_MAX = 10_000


class Callers:
    """Gives every holder of a valid key an id."""

    def __init__(self, db: Database, *, entropy: Callable[[int], bytes]) -> None:
        self._db = db
        self._entropy = entropy
        self._known: dict[bytes, str] = {}
        # Keys of named callers that were already checked for an id to adopt.
        self._named: dict[bytes, str] = {}

    async def id_of(self, digests: Sequence[bytes], claims: Mapping[str, Any]) -> str:
        """Return the id in the claims, else the id stored for the key's digest.

        `digests` are the digests of one key under every accepted secret, the newest first.
        """
        named = named_id(claims)
        if named is not None:
            if self._named.get(digests[0]) != named:
                await self._adopt(digests, named)
            return named
        found = self._known.get(digests[0])
        if found is None:
            try:
                found = await self._db.attempt(lambda connection: self._alias(connection, digests))
            except Exception as error:
                if (outage := outage_of(error)) is not None:
                    raise outage.error() from error
                raise
            _keep(self._known, digests[0], found)
        return found

    async def _adopt(self, digests: Sequence[bytes], named: str) -> None:
        """Give the jobs of this key's id to the name, if the key has an id."""

        async def operation(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                for row in await connection.fetch(sql("caller_adopt"), list(digests), named):
                    await write_note(connection, AuditEvent.CALLER_ADOPTED, named, adopted=row["caller"])

        try:
            await self._db.attempt(operation)
        except Exception as error:
            # A named caller is known without the database. The next request with its key tries again.
            if outage_of(error) is None:
                raise
            return
        self._known.pop(digests[0], None)
        _keep(self._named, digests[0], named)

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


def _keep(known: dict[bytes, str], digest: bytes, caller: str) -> None:
    while len(known) >= _KNOWN_MAX:
        del known[next(iter(known))]
    known[digest] = caller


def named_id(claims: Mapping[str, Any]) -> str | None:
    """Return the caller's id in the claims, if there is one.

    An id that cannot be stored, or that Windlass reserves, is a fault of the Membership service. It raises
    MembershipUnavailable, so one caller is never taken for another.
    """
    named = claims.get("caller_id")
    if named is None or named == "":
        return None
    text = str(named) if isinstance(named, int) and not isinstance(named, bool) else named
    if not isinstance(text, str) or len(text) > ID_LENGTH_MAX or not text.isprintable() or text in ("*", "local"):
        raise MembershipUnavailable(
            "the Membership service returned a caller id that cannot be used",
            remedy=f"A caller's id is printable text of at most {ID_LENGTH_MAX} characters",
        )
    return text
