"""Sessions as rows: how long they last, what is kept of them, and what a commit without an answer leaves."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
import pytest

from windlass.access.keys import Keys
from windlass.access.secret import Secret
from windlass.access.sessions import IDLE_S, LIFE_S, PUT_OFF_S, TOKEN_S, Sessions
from windlass.core.caller import CallerContext
from windlass.core.errors import BadSetting, Unauthenticated
from windlass.engine.loops.pruner import Pruner
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock

SECRET = Secret.of(["a secret of the tests, long enough to be one"])
T = TypeVar("T")


class Stand:
    """Keys and sessions on one database."""

    def __init__(self, db: Database, secret: Secret = SECRET) -> None:
        self.db = db
        self.keys = Keys(db, secret, entropy=secrets.token_bytes)
        self.sessions = Sessions(db, secret, self.keys)

    async def caller(self, name: str = "ann", **more: Any) -> tuple[CallerContext, str]:
        key = await self.keys.create(name, name=name, by="test", **more)
        return await self.keys.verify(key.text), key.text

    async def cookie(self) -> str:
        caller, key = await self.caller()
        return await self.sessions.begin_by_key(caller, key)

    async def is_good(self, cookie: str) -> bool:
        try:
            await self.sessions.look(cookie)
        except Unauthenticated as error:
            assert cookie not in str(error)
            return False
        return True

    async def begins(self, token: str) -> bool:
        try:
            await self.sessions.begin_by_token(token)
        except Unauthenticated:
            return False
        return True


async def test_a_session_that_is_not_used_ends(timed_db: Database, clock: VirtualClock) -> None:
    stand = Stand(timed_db)
    cookie = await stand.cookie()
    clock.advance(IDLE_S - 1)
    used = await stand.cookie()
    assert await stand.is_good(cookie)
    clock.advance(IDLE_S + 1)
    assert not await stand.is_good(used)


async def test_a_session_that_is_used_lasts_but_not_for_ever(timed_db: Database, clock: VirtualClock) -> None:
    stand = Stand(timed_db)
    cookie, began = await stand.cookie(), clock.now()
    while await stand.is_good(cookie):
        told = (await stand.sessions.look(cookie)).expires_at
        assert (told - clock.now()).total_seconds() <= IDLE_S
        clock.advance(IDLE_S / 2)
    assert (clock.now() - began).total_seconds() == pytest.approx(LIFE_S, abs=IDLE_S)


async def test_a_session_is_put_off_once_in_a_while_only(timed_db: Database, clock: VirtualClock) -> None:
    stand = Stand(timed_db)
    cookie = await stand.cookie()
    first = (await stand.sessions.look(cookie)).expires_at
    clock.advance(PUT_OFF_S - 1)
    assert (await stand.sessions.look(cookie)).expires_at == first
    clock.advance(2)
    later = (await stand.sessions.look(cookie)).expires_at
    assert (later - clock.now()).total_seconds() == IDLE_S
    async with timed_db.connection() as connection:
        used = await connection.fetchval("SELECT last_used_at FROM windlass.keys")
    assert used == clock.now(), "the key is used too, whoever looks at the list of keys must see"


async def test_a_key_that_runs_out_takes_its_session_along(timed_db: Database, clock: VirtualClock) -> None:
    stand = Stand(timed_db)
    caller, key = await stand.caller(expires_in_s=60.0)
    cookie = await stand.sessions.begin_by_key(caller, key)
    assert await stand.is_good(cookie)
    clock.advance(61)
    assert not await stand.is_good(cookie)


async def test_a_revoked_key_ends_sessions_and_links_at_once(db: Database) -> None:
    stand = Stand(db)
    caller, key = await stand.caller()
    cookie = await stand.sessions.begin_by_key(caller, key)
    token, _ = await stand.sessions.make_token(caller)
    assert caller.key_id is not None
    # By another process, whose bell this one has not heard yet.
    await Stand(db).keys.revoke(caller.key_id, by="test")
    assert not await stand.is_good(cookie)
    assert not await stand.begins(token)


async def test_a_link_is_good_for_ten_minutes(timed_db: Database, clock: VirtualClock) -> None:
    stand = Stand(timed_db)
    caller, _ = await stand.caller()
    token, until = await stand.sessions.make_token(caller)
    late, _ = await stand.sessions.make_token(caller)
    assert (until - clock.now()).total_seconds() == TOKEN_S
    clock.advance(TOKEN_S - 1)
    assert await stand.begins(token)
    clock.advance(1)
    assert not await stand.begins(late)


async def test_a_link_takes_a_key_of_ours(db: Database) -> None:
    with pytest.raises(BadSetting):
        await Stand(db).sessions.make_token(CallerContext("ann"))


async def test_what_is_over_is_removed_by_the_pruner(timed_db: Database, clock: VirtualClock) -> None:
    stand = Stand(timed_db)
    caller, key = await stand.caller()
    await stand.sessions.begin_by_key(caller, key)
    await stand.sessions.make_token(caller)
    clock.advance(TOKEN_S + 1)
    assert await rows_after_pruning(timed_db) == (1, 0)
    clock.advance(IDLE_S)
    kept = await stand.sessions.begin_by_key(caller, key)
    assert await rows_after_pruning(timed_db) == (1, 0)
    assert await stand.is_good(kept)


async def rows_after_pruning(db: Database) -> tuple[int, int]:
    await Pruner(db).run_once()
    async with db.connection() as connection:
        sessions = await connection.fetchval("SELECT count(*) FROM windlass.console_sessions")
        return sessions, await connection.fetchval("SELECT count(*) FROM windlass.console_tokens")


async def test_a_session_outlives_a_change_of_the_secret(db: Database) -> None:
    stand = Stand(db)
    cookie = await stand.cookie()
    caller, _ = await stand.caller()
    token, _ = await stand.sessions.make_token(caller)
    texts = ["another secret of the tests, also long", "a secret of the tests, long enough to be one"]
    both = Stand(db, Secret.of(texts))
    assert stand.sessions.names[0] in both.sessions.names, "the browser has the cookie under its former name"
    assert await both.is_good(cookie)
    assert await both.begins(token)
    assert not await Stand(db, Secret.of(texts[:1])).is_good(cookie)


async def test_the_tables_hold_nothing_that_signs_in(db: Database) -> None:
    stand = Stand(db)
    caller, key = await stand.caller()
    cookie = await stand.sessions.begin_by_key(caller, key)
    token, _ = await stand.sessions.make_token(caller)
    outside = await stand.sessions.begin_by_key(CallerContext("bob"), "a key of another service")
    csrf = (await stand.sessions.look(cookie)).csrf
    async with db.connection() as connection:
        found = await connection.fetch("SELECT digest, sealed FROM windlass.console_sessions")
        found += await connection.fetch("SELECT digest, NULL::bytea AS sealed FROM windlass.console_tokens")
    kept = [bytes(value) for row in found for value in row.values() if value is not None]
    assert len(kept) == 4
    for secret in (cookie, token, outside, csrf, key, "a key of another service"):
        assert not any(secret.encode() in one or secret[4:].encode() in one for one in kept)


async def test_what_is_sealed_opens_with_its_own_cookie_only(db: Database) -> None:
    stand = Stand(db)
    mine, theirs = [await stand.sessions.begin_by_key(CallerContext(name), f"key of {name}") for name in ("a", "b")]
    sessions = stand.sessions
    async with db.connection() as connection:
        # An attacker who can write the table moves another caller's key to their own session.
        await connection.execute(
            "UPDATE windlass.console_sessions s SET sealed = t.sealed FROM windlass.console_sessions t"
            " WHERE t.digest = $1 AND s.digest = $2",
            sessions._digest(theirs),
            sessions._digest(mine),
        )
    assert not await stand.is_good(mine)


class Forgetful(Database):
    """A database whose first commit of an operation comes to pass and whose answer does not."""

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        found = await super().attempt(operation)
        if not self.lost:
            self.lost.append(True)
            raise ConnectionResetError("the answer was lost")
        return found

    lost: list[bool]


async def test_a_commit_whose_answer_is_lost_still_signs_in(dsn: str) -> None:
    db = await Forgetful.open(dsn)
    assert isinstance(db, Forgetful)
    try:
        db.lost = [True]
        stand = Stand(db)
        caller, key = await stand.caller()
        token, _ = await stand.sessions.make_token(caller)
        db.lost = []
        by_link = await stand.sessions.begin_by_token(token)
        assert db.lost and await stand.is_good(by_link)
        db.lost = []
        by_key = await stand.sessions.begin_by_key(caller, key)
        assert db.lost and await stand.is_good(by_key)
        db.lost = []
        await stand.sessions.end(by_key)
        assert not await stand.is_good(by_key) and await stand.is_good(by_link)
        async with db.connection() as connection:
            assert await connection.fetchval("SELECT count(*) FROM windlass.console_sessions") == 1
            notes = await connection.fetch(
                "SELECT event FROM windlass.audit_notes WHERE event LIKE 'console%' ORDER BY id"
            )
        assert [row["event"] for row in notes] == ["console_signed_in", "console_signed_in", "console_signed_out"]
    finally:
        await db.close()
