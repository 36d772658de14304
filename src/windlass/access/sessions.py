"""Sessions of the console: a browser signs in once, and from then on a cookie stands for the key.

    key or link token ── sign in ──▶ a row with the digest of the cookie ── each request ──▶ the key's caller

The cookie is a 256-bit number. The table holds its digest, so a copy of the database cannot sign in. A session has the
rights that its key has at that moment. Each request reads the key's row, so revoking a key, or its expiry, ends its
sessions in every process.

Windlass cannot look up the keys of a Membership service. Such a session keeps the key itself, sealed with a secret
derived from the cookie and the installation's secret: the row alone opens nothing. Each request asks the service, as a
request with the key does.

A session ends after IDLE_S without use, and after LIFE_S at the latest. A sign-out is announced to every process, so
that the session's open streams end too.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from windlass.access.audit import write_note
from windlass.access.secret import Secret
from windlass.access.verifier import Verifier
from windlass.core.bell import SessionEnded
from windlass.core.caller import CallerContext
from windlass.core.errors import BadSetting, DatabaseUnavailable, Unauthenticated
from windlass.pure.audit import AuditEvent
from windlass.store.database import Database
from windlass.store.statements import sql

IDLE_S = 12 * 3600.0
LIFE_S = 30 * 86400.0
# A used session is extended at most this often: a page sends many requests a minute.
PUT_OFF_S = 300.0
TOKEN_S = 600.0
SESSIONS_PER_CALLER_MAX = 100
LOOK_WITHIN_S = 5.0
TOKEN_PREFIX = "wll_"
_PREFIX = "wls_"
_BYTES = 32
_NONCE_BYTES = 12
_COOKIE = re.compile(r"wls_[A-Za-z0-9_-]{43}")
_TOKEN = re.compile(r"wll_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in caller. A request that changes anything must send `csrf` with the cookie."""

    caller: CallerContext
    csrf: str
    expires_at: datetime

    def is_sent_with(self, csrf: str) -> bool:
        """Tell whether this is the session's `csrf`."""
        return hmac.compare_digest(self.csrf.encode(), csrf.encode())


class Sessions:
    """Creates and looks up sessions. `entropy` returns that many random bytes."""

    name = "sessions"

    def __init__(
        self, db: Database, secret: Secret, verifier: Verifier, *, entropy: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._db = db
        self._secret = secret
        self._verifier = verifier
        self._entropy = entropy
        self._forget: list[Callable[[str], None]] = []
        self._is_listening = False
        # Browsers separate cookies by host, not by port: two installations on one machine must not overwrite each
        # other's cookies. The name derives from the secret, so all processes of one installation share it.
        self.names = tuple(f"windlass_session_{one.hex()[:8]}" for one in secret.digests("console", b""))

    def close_on(self, forget: Callable[[str], None]) -> None:
        """Call `forget` with the caller's id after one of its sessions was ended."""
        self._forget.append(forget)

    async def start(self) -> None:
        """Listen for ended sessions."""
        if not self._is_listening:
            self._is_listening = True
            await self._db.listen(SessionEnded, self._on_bell)

    async def stop(self) -> None:
        """Do nothing: bells arrive until the bus ends."""

    def alive(self) -> float | None:
        """Return None: it has no task that could hang."""
        return None

    def ready(self) -> bool:
        """Tell whether it listens for ended sessions."""
        return self._is_listening

    async def make_token(self, caller: CallerContext) -> tuple[str, datetime]:
        """Create a link token that signs this caller in once; return it and its expiry. The caller needs a built-in
        key.
        """
        if caller.key_id is None:
            raise BadSetting("a link takes a key of this installation", remedy="Sign in with a key of the service")
        text = TOKEN_PREFIX + self._text(_BYTES)
        digest = self._secret.digest("console-token", text.encode())

        async def operation(connection: asyncpg.Connection) -> datetime:
            until: datetime = await connection.fetchval(sql("console_token_put"), digest, caller.key_id, TOKEN_S)
            return until

        return text, await self._db.run(operation)

    async def begin_by_token(self, token: str, *, request_id: str | None = None) -> str:
        """Begin a session with a link token, and return its cookie. The token cannot be used again."""
        if not _TOKEN.fullmatch(token):
            raise no_entry()
        tokens = self._secret.digests("console-token", token.encode())
        cookie = _PREFIX + self._text(_BYTES)
        digest = self._digest(cookie)

        async def operation(connection: asyncpg.Connection) -> bool:
            async with connection.transaction():
                row = await connection.fetchrow(sql("console_session_by_token"), tokens, digest, IDLE_S)
                if row is not None:
                    await self._begun(connection, row, "link", request_id)
                    return True
            # The transaction may have committed although its answer was lost: then the session exists.
            return await connection.fetchrow(sql("console_session_look"), [digest], IDLE_S, LIFE_S, 0.0) is not None

        if not await self._db.run(operation):
            raise no_entry()
        return cookie

    async def begin_by_key(self, caller: CallerContext, key: str, *, request_id: str | None = None) -> str:
        """Begin a session for the caller of this verified key, and return its cookie."""
        cookie = _PREFIX + self._text(_BYTES)
        sealed = None if caller.key_id is not None else self._seal(cookie, key)
        values = (self._digest(cookie), caller.caller_id, caller.key_id, sealed, IDLE_S)

        async def operation(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                row = await connection.fetchrow(sql("console_session_put"), *values)
                if row is not None:
                    await self._begun(connection, row, "key", request_id)

        await self._db.run(operation)
        return cookie

    async def look(self, cookie: str) -> Session:
        """Return the session of this cookie; raises Unauthenticated without a live session."""
        if not _COOKIE.fullmatch(cookie):
            raise no_session()
        digests = self._digests(cookie)
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                row = await self._db.run(
                    lambda connection: connection.fetchrow(
                        sql("console_session_look"), digests, IDLE_S, LIFE_S, PUT_OFF_S
                    )
                )
        except TimeoutError:
            raise DatabaseUnavailable(
                "PostgreSQL did not answer in time whether the session is valid", remedy="Try again"
            ) from None
        if row is None:
            raise no_session()
        caller = await self._caller(cookie, row)
        expires_at = row["expires_at"]
        if row["is_due"]:
            expires_at = await self._put_off(row["digest"]) or expires_at
        return Session(caller, self._csrf(cookie), expires_at)

    async def end(self, cookie: str, *, request_id: str | None = None) -> None:
        """Sign out. Ending a session again changes nothing."""
        if not _COOKIE.fullmatch(cookie):
            return
        digests = self._digests(cookie)

        async def operation(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                row = await connection.fetchrow(sql("console_session_end"), digests)
                if row is not None:
                    # The bell ends the streams that the session opened, in every process.
                    connection.ring(SessionEnded(row["caller"]))
                    await write_note(
                        connection,
                        AuditEvent.CONSOLE_SIGNED_OUT,
                        row["caller"],
                        request_id=request_id,
                        key=row["key_id"],
                    )

        await self._db.run(operation)

    async def _begun(
        self, connection: asyncpg.Connection, row: asyncpg.Record, by: str, request_id: str | None
    ) -> None:
        await connection.execute(sql("console_session_trim"), row["caller"], SESSIONS_PER_CALLER_MAX)
        await write_note(
            connection, AuditEvent.CONSOLE_SIGNED_IN, row["caller"], request_id=request_id, key=row["key_id"], by=by
        )

    async def _caller(self, cookie: str, row: asyncpg.Record) -> CallerContext:
        if row["key_id"] is None:
            key = self._open(cookie, row["sealed"])
            if key is None:
                raise no_session()
            return await self._verifier.verify(key)
        return CallerContext(
            row["caller"],
            row["caller_type"],
            row["tier"],
            frozenset(row["scopes"]),
            {},
            key_id=row["key_id"],
            roles=frozenset(row["roles"] or ()),
        )

    async def _put_off(self, digest: bytes) -> datetime | None:
        async def operation(connection: asyncpg.Connection) -> datetime | None:
            until: datetime | None = await connection.fetchval(sql("console_session_seen"), digest, IDLE_S, LIFE_S)
            return until

        return await self._db.run(operation)

    def _on_bell(self, bell: SessionEnded) -> None:
        # After a reconnect the bell names no caller. The streams then end at their limit of ten minutes.
        for forget in self._forget if bell.caller else ():
            forget(bell.caller)

    def _text(self, count: int) -> str:
        return base64.urlsafe_b64encode(self._entropy(count)).rstrip(b"=").decode()

    def _digest(self, cookie: str) -> bytes:
        return self._secret.digest("console-session", cookie.encode())

    def _digests(self, cookie: str) -> list[bytes]:
        return self._secret.digests("console-session", cookie.encode())

    def _csrf(self, cookie: str) -> str:
        """Derive the CSRF token from the cookie. No script can read the cookie, so only the signed-in page knows the
        token.
        """
        digest = self._secret.digest("console-csrf", cookie.encode())
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def _seal(self, cookie: str, key: str) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = self._entropy(_NONCE_BYTES)
        return nonce + AESGCM(self._secret.digest("console-seal", cookie.encode())).encrypt(nonce, key.encode(), None)

    def _open(self, cookie: str, sealed: bytes) -> str | None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        for secret in self._secret.digests("console-seal", cookie.encode()):
            try:
                return AESGCM(secret).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None).decode()
            except InvalidTag:
                continue
        return None


def no_session() -> Unauthenticated:
    """Return one refusal for an unknown, ended or expired cookie: the text does not tell which."""
    return Unauthenticated("not signed in, or the session has ended", remedy="Sign in with a key or by a link")


def no_entry() -> Unauthenticated:
    """Return one refusal for a bad key and a bad link: the text does not tell what is wrong."""
    return Unauthenticated(
        "the key or the link is not valid, or no longer valid",
        remedy="A link signs in once, within ten minutes of being made; a key until it is revoked",
    )
