"""Built-in keys: created, listed, revoked, and verified on every request.

The table holds an HMAC of each key, never the key. A verified key is remembered for a minute, a bad key for ten
seconds, so a busy caller costs one query a minute. A revocation rings a bell in every process, and each process forgets
the key at once. If the bell is lost, the key works for at most that minute.

The memory is keyed by the digest of the whole key, not by its public id: knowing the id alone finds nothing. Good and
bad keys are remembered apart, so a flood of bad keys cannot push out good keys.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from windlass.access.audit import write_note
from windlass.access.secret import Secret
from windlass.core.bell import KeyRevoked
from windlass.core.caller import CALLER_TYPES, USER_SCOPES, CallerContext, Scope, check_name, stranger
from windlass.core.errors import BadInput, Broken, DatabaseUnavailable, NotFound, Unavailable
from windlass.pure.audit import AuditEvent
from windlass.pure.key import ID_BYTES, SECRET_BYTES, KeyText, make_key, parse_key
from windlass.store.database import Database
from windlass.store.statements import bound, sql

GOOD_FOR_S = 60.0
BAD_FOR_S = 10.0
REMEMBERED_MAX = 10_000
VERIFY_WITHIN_S = 5.0
USED_EVERY_S = 60.0
EXPIRES_IN_MAX_S = 10 * 365 * 86400.0

log = logging.getLogger("windlass.access")


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key without its secret, as listings show it."""

    id: str
    caller: str
    caller_type: str
    tier: str | None
    scopes: tuple[str, ...]
    roles: tuple[str, ...]
    name: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    is_live: bool


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just created. `text` exists only here."""

    key: KeyText
    view: KeyView

    @property
    def text(self) -> str:
        """The key in full, to be shown once."""
        return self.key.text


class Keys:
    """Verifies built-in keys; keeps the promises of `Verifier` (`access/verifier.py`)."""

    name = "keys"

    def __init__(
        self,
        db: Database,
        secret: Secret,
        *,
        entropy: Callable[[int], bytes],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._secret = secret
        self._entropy = entropy
        self._clock = clock
        self._good: dict[bytes, tuple[CallerContext, float]] = {}
        self._bad: dict[bytes, float] = {}
        self._flights: dict[bytes, asyncio.Task[CallerContext | None]] = {}
        self._forget: list[Callable[[str], None]] = []
        self._is_listening = False
        self._bells = 0
        self._used: set[str] = set()
        self._used_s = clock()
        self._noting: asyncio.Task[None] | None = None

    def close_on(self, forget: Callable[[str], None]) -> None:
        """Call `forget` with the caller's id after one of its keys was revoked."""
        self._forget.append(forget)

    async def start(self) -> None:
        """Listen for revocations. Without this call, the first `verify` starts to listen."""
        if not self._is_listening:
            self._is_listening = True
            await self._db.listen(KeyRevoked, self._on_bell)

    async def stop(self) -> None:
        """Write when keys were last used."""
        if self._noting is not None:
            await asyncio.gather(self._noting, return_exceptions=True)
        await self._note_used()

    def alive(self) -> float | None:
        """Return None: it has no task that could hang."""
        return None

    def ready(self) -> bool:
        """Tell whether it listens for revocations."""
        return self._is_listening

    async def create(
        self,
        caller: str,
        *,
        name: str,
        by: str,
        caller_type: str = "user",
        tier: str | None = None,
        scopes: Collection[str] = USER_SCOPES,
        roles: Collection[str] = (),
        expires_in_s: float | None = None,
        request_id: str | None = None,
    ) -> NewKey:
        """Create a key for this caller. Only the answer holds its text."""
        _check(caller, name, caller_type, tier, scopes, expires_in_s)
        for role in roles:
            check_name("a role", role)
        key = make_key(self._entropy(ID_BYTES), self._entropy(SECRET_BYTES))
        digest = self._secret.digest("key", key.text.encode())
        put = bound(
            "key_create",
            id=key.id,
            digest=digest,
            caller=caller,
            caller_type=caller_type,
            tier=tier,
            scopes=sorted(scopes),
            roles=sorted(roles),
            name=name,
            created_by=by,
            expires_in_s=expires_in_s,
        )

        async def operation(connection: asyncpg.Connection) -> asyncpg.Record:
            async with connection.transaction():
                row = await connection.fetchrow(*put)
                if row is None:
                    row = await connection.fetchrow(sql("key_look"), key.id)
                    if not hmac.compare_digest(row["digest"], digest):
                        raise Broken(f"two keys have the id {key.id}")
                    return row
                await write_note(
                    connection,
                    AuditEvent.KEY_CREATED,
                    by,
                    request_id=request_id,
                    key=key.id,
                    of=caller,
                    scopes=sorted(scopes),
                    name=name,
                )
            return row

        return NewKey(key, _view(await self._db.run(operation)))

    async def listing(self, *, caller: str | None = None) -> list[KeyView]:
        """Return every key, or a caller's keys, live or not, the oldest first."""

        async def operation(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            if caller is None:
                return list(await connection.fetch(sql("key_list")))
            return list(await connection.fetch(sql("key_list_caller"), caller))

        return sorted(map(_view, await self._db.run(operation)), key=lambda view: (view.created_at, view.id))

    async def revoke(self, key_id: str, *, by: str, request_id: str | None = None) -> KeyView:
        """End a key's life at once, in every process. Revoking it again changes nothing."""

        async def operation(connection: asyncpg.Connection) -> asyncpg.Record | None:
            async with connection.transaction():
                row = await connection.fetchrow(sql("key_revoke"), key_id)
                if row is None:
                    return await connection.fetchrow(sql("key_look"), key_id)
                # The bell tells every process, and names the caller, whose streams then end.
                connection.ring(KeyRevoked(key_id, row["caller"]))
                await write_note(
                    connection, AuditEvent.KEY_REVOKED, by, request_id=request_id, key=key_id, of=row["caller"]
                )
            return row

        row = None if "\x00" in key_id else await self._db.run(operation)
        if row is None:
            raise NotFound("there is no such key", remedy="`windlass keys list` shows the known ones by id")
        # In this process the revocation takes effect with the answer, before the bell arrives.
        self._drop(key_id)
        return _view(row)

    async def verify(self, credential: str) -> CallerContext:
        """Return the holder of this key."""
        digest = self._secret.digest("key", credential.encode(errors="surrogatepass"))
        now_s = self._clock()
        known = self._good.get(digest)
        if known is not None and known[1] > now_s:
            context = known[0]
        elif (key := parse_key(credential)) is None or self._bad.get(digest, 0.0) > now_s:
            raise stranger()
        else:
            context = await self._look_once(key, digest)
        self._note_use(context.key_id or "")
        return context

    async def _look_once(self, key: KeyText, digest: bytes) -> CallerContext:
        """Look the key up; requests that bring the same key meanwhile share the query."""
        flight = self._flights.get(digest)
        if flight is None:
            flight = self._flights[digest] = asyncio.create_task(self._look(key, digest), name="windlass-key")
            flight.add_done_callback(lambda done: self._landed(digest, done))
        found = await asyncio.shield(flight)
        if found is None:
            raise stranger()
        return found

    def _landed(self, digest: bytes, flight: asyncio.Task[CallerContext | None]) -> None:
        self._flights.pop(digest, None)
        if not flight.cancelled():
            # Reading the exception keeps asyncio from reporting it when every waiting request has gone.
            flight.exception()

    async def _look(self, key: KeyText, digest: bytes) -> CallerContext | None:
        try:
            async with asyncio.timeout(VERIFY_WITHIN_S):
                await self.start()
                bells = self._bells
                row = await self._db.run(lambda connection: connection.fetchrow(sql("key_look"), key.id))
        except TimeoutError:
            raise DatabaseUnavailable(
                "PostgreSQL did not answer in time whether the key is valid", remedy="Try again"
            ) from None
        now_s = self._clock()
        if row is None or not row["is_live"] or not self._is_same(row["digest"], key, digest):
            _remember(self._bad, digest, now_s + BAD_FOR_S)
            return None
        context = CallerContext(
            row["caller"],
            row["caller_type"],
            row["tier"],
            frozenset(row["scopes"]),
            {},
            key_id=key.id,
            roles=frozenset(row["roles"]),
        )
        # A bell that rang meanwhile may have revoked this key. Then the row serves this request only.
        if bells == self._bells:
            left_s = row["left_s"]
            good_for_s = GOOD_FOR_S if left_s is None else min(GOOD_FOR_S, left_s)
            _remember(self._good, digest, (context, now_s + good_for_s))
        return context

    def _is_same(self, stored: bytes, key: KeyText, digest: bytes) -> bool:
        if hmac.compare_digest(stored, digest):
            return True
        former = self._secret.digests("key", key.text.encode())[1:]
        return any(hmac.compare_digest(stored, one) for one in former)

    def _on_bell(self, bell: KeyRevoked) -> None:
        self._bells += 1
        if not bell.key_id:
            # The connection was lost: any key may have been revoked meanwhile.
            self._good.clear()
            return
        self._drop(bell.key_id)
        for forget in self._forget:
            forget(bell.caller)

    def _drop(self, key_id: str) -> None:
        self._bells += 1
        for digest in [digest for digest, (context, _) in self._good.items() if context.key_id == key_id]:
            del self._good[digest]

    def _note_use(self, key_id: str) -> None:
        self._used.add(key_id)
        now_s = self._clock()
        if now_s - self._used_s >= USED_EVERY_S:
            self._used_s = now_s
            self._noting = asyncio.create_task(self._note_used(), name="windlass-keys-used")

    async def _note_used(self) -> None:
        used, self._used = sorted(self._used), set()
        if not used:
            return
        try:
            await self._db.run(lambda connection: connection.execute(sql("key_used"), used))
        except Unavailable as error:
            log.warning("the times of the last use of keys could not be written: %s", error)


def _remember(known: dict[bytes, Any], digest: bytes, what: Any) -> None:
    known.pop(digest, None)
    while len(known) >= REMEMBERED_MAX:
        del known[next(iter(known))]
    known[digest] = what


def _check(
    caller: str, name: str, caller_type: str, tier: str | None, scopes: Collection[str], expires_in_s: float | None
) -> None:
    check_name("the caller", caller)
    check_name("the key's name", name)
    if tier is not None:
        check_name("the tier", tier)
    if caller_type not in CALLER_TYPES:
        raise BadInput(f"a caller's type is one of {', '.join(CALLER_TYPES)}")
    unknown = sorted(set(scopes) - set(Scope))
    if unknown or not scopes:
        raise BadInput(f"a key has scopes of {', '.join(Scope)}" + (f", not {', '.join(unknown)}" if unknown else ""))
    if expires_in_s is not None and not 0 < expires_in_s <= EXPIRES_IN_MAX_S:
        raise BadInput("a key lives for more than 0 s and at most ten years")


def _view(row: asyncpg.Record) -> KeyView:
    return KeyView(
        row["id"],
        row["caller"],
        row["caller_type"],
        row["tier"],
        tuple(row["scopes"]),
        tuple(row["roles"]),
        row["name"],
        row["created_at"],
        row["created_by"],
        row["expires_at"],
        row["revoked_at"],
        row["last_used_at"],
        row["is_live"],
    )
