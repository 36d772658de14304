"""Stream tickets: a browser's EventSource cannot send a header, and a key must not appear in a URL.

A ticket opens one stream, once, within a minute of its creation. It is a 256-bit number. The table holds its digest, so
a copy of the database opens no stream.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.access.secret import Secret
from windlass.core.caller import CallerContext
from windlass.core.errors import Unauthenticated
from windlass.store.database import Database
from windlass.store.statements import sql

TICKET_S = 60.0
PREFIX = "wlt_"
_BYTES = 32
_FORM = re.compile(r"wlt_[A-Za-z0-9_-]{43}")


class Tickets:
    """Creates and spends tickets. `entropy` returns that many random bytes."""

    def __init__(self, db: Database, secret: Secret, *, entropy: Callable[[int], bytes]) -> None:
        self._db = db
        self._secret = secret
        self._entropy = entropy

    async def make(self, caller: CallerContext, job_id: UUID | None = None) -> tuple[str, datetime]:
        """Create a ticket for the caller; return it and its expiry. With a job it opens only that job's stream."""
        text = PREFIX + base64.urlsafe_b64encode(self._entropy(_BYTES)).rstrip(b"=").decode()
        digest = self._secret.digest("ticket", text.encode())
        context = msgspec.json.encode(_as_json(caller)).decode()

        async def operation(connection: asyncpg.Connection) -> datetime:
            until: datetime = await connection.fetchval(sql("ticket_put"), digest, context, job_id, TICKET_S)
            return until

        return text, await self._db.run(operation)

    async def spend(self, text: str, job_id: UUID | None) -> CallerContext:
        """Spend a ticket, and return the caller that it was made for. A ticket for another job is refused and not
        spent.
        """
        if not _FORM.fullmatch(text):
            raise _refused()
        digests = self._secret.digests("ticket", text.encode())

        async def operation(connection: asyncpg.Connection) -> str | None:
            context: str | None = await connection.fetchval(sql("ticket_spend"), digests, job_id)
            return context

        context = await self._db.run(operation)
        if context is None:
            raise _refused()
        return _from_json(msgspec.json.decode(context))


def _refused() -> Unauthenticated:
    return Unauthenticated(
        "the ticket is not valid", remedy="A ticket opens one stream, once, within 60 s; ask for another"
    )


def _as_json(caller: CallerContext) -> dict[str, Any]:
    return {
        "caller_id": caller.caller_id,
        "caller_type": caller.caller_type,
        "tier": caller.tier,
        "scopes": sorted(caller.scopes),
        "raw_claims": dict(caller.raw_claims),
        "key_id": caller.key_id,
        "roles": sorted(caller.roles),
        "is_named": caller.is_named,
    }


def _from_json(context: dict[str, Any]) -> CallerContext:
    sets = {name: frozenset(context.get(name, ())) for name in ("scopes", "roles")}
    return CallerContext(**{**context, **sets})
