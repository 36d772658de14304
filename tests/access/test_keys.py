from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from windlass.access import keys as module
from windlass.access.keys import Keys, NewKey
from windlass.access.secret import Secret
from windlass.core.bell import KeyRevoked
from windlass.core.caller import USER_SCOPES, CallerContext, Scope
from windlass.core.errors import BadInput, DatabaseUnavailable, NotFound, Unauthenticated
from windlass.pure.key import make_key
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock

ONE = "one-secret-of-thirty-two-letters"
TWO = "two-secret-of-thirty-two-letters"


class Seconds:
    """A clock of the process's own, moved by the test."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Counting(Database):
    """Counts the operations."""

    operations = 0

    async def run(self, operation: Any) -> Any:
        Counting.operations += 1
        return await super().run(operation)


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
async def counted(dsn: str, clock: VirtualClock) -> AsyncIterator[Database]:
    database = await Counting.open(dsn, now=clock.now)
    Counting.operations = 0
    yield database
    await database.close()


@pytest.fixture
def keys(counted: Database, seconds: Seconds) -> Keys:
    return Keys(counted, Secret.of([ONE]), entropy=os.urandom, clock=seconds)


async def make(keys: Keys, caller: str = "ada", **given: Any) -> NewKey:
    return await keys.create(caller, name="laptop", by="root", **given)


async def test_a_key_that_was_made_is_good(keys: Keys) -> None:
    made = await make(keys, caller_type="service", tier="pro", scopes=[Scope.AUDIT_READ])
    found = await keys.verify(made.text)
    assert found == CallerContext("ada", "service", "pro", frozenset({"audit:read"}), {}, made.view.id)
    assert made.view.is_live
    assert made.view.scopes == ("audit:read",)


async def test_the_default_rights_are_a_users(keys: Keys) -> None:
    assert (await keys.verify((await make(keys)).text)).scopes == USER_SCOPES


async def test_junk_costs_no_look(keys: Keys) -> None:
    made = await make(keys)
    Counting.operations = 0
    for junk in ("", "x", made.text[:-1], made.text[:-1] + ("a" if made.text[-1] != "a" else "b"), "\ud800"):
        with pytest.raises(Unauthenticated):
            await keys.verify(junk)
    assert Counting.operations == 0


async def test_an_unknown_key_is_refused_and_looked_up_once_in_ten_seconds(keys: Keys, seconds: Seconds) -> None:
    unknown = make_key(os.urandom(9), os.urandom(32)).text
    Counting.operations = 0
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            await keys.verify(unknown)
    assert Counting.operations == 1
    seconds.now_s += 10.1
    with pytest.raises(Unauthenticated):
        await keys.verify(unknown)
    assert Counting.operations == 2


async def test_the_id_of_a_good_key_with_another_secret_is_refused(keys: Keys) -> None:
    id_bytes = os.urandom(9)
    pieces = iter([id_bytes, os.urandom(32)])
    keys._entropy = lambda _: next(pieces)
    made = await make(keys)
    await keys.verify(made.text)
    forged = make_key(id_bytes, os.urandom(32))
    assert forged.id == made.view.id
    with pytest.raises(Unauthenticated):
        await keys.verify(forged.text)
    assert (await keys.verify(made.text)).caller_id == "ada"


async def test_a_good_key_costs_one_look_a_minute(keys: Keys, seconds: Seconds) -> None:
    made = await make(keys)
    Counting.operations = 0
    for _ in range(50):
        await keys.verify(made.text)
    assert Counting.operations == 1
    seconds.now_s += 59.0
    await keys.verify(made.text)
    assert Counting.operations == 1
    seconds.now_s += 1.5
    await keys.verify(made.text)
    await keys.stop()
    assert Counting.operations == 3  # the look, and when it was used


async def test_requests_at_once_share_one_look(keys: Keys) -> None:
    made = await make(keys)
    Counting.operations = 0
    found = await asyncio.gather(*(keys.verify(made.text) for _ in range(64)))
    assert {context.caller_id for context in found} == {"ada"}
    assert Counting.operations == 1


async def test_a_request_that_is_given_up_does_not_take_the_others_with_it(keys: Keys) -> None:
    made = await make(keys)
    given_up, waiting = (asyncio.create_task(keys.verify(made.text)) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    assert (await waiting).caller_id == "ada"


async def test_a_revoked_key_is_refused_at_once_here_and_elsewhere(
    keys: Keys, db: Database, counted: Database, seconds: Seconds
) -> None:
    elsewhere = Keys(db, Secret.of([ONE]), entropy=os.urandom, clock=seconds)
    made, other = await make(keys), await make(keys, "bob")
    told: list[str] = []
    heard = asyncio.Event()
    elsewhere.close_on(told.append)
    elsewhere.close_on(lambda _: heard.set())
    for one in (keys, elsewhere):
        await one.verify(made.text)
        await one.verify(other.text)
    view = await keys.revoke(made.view.id, by="root")
    assert view.revoked_at is not None
    assert not view.is_live
    with pytest.raises(Unauthenticated):
        await keys.verify(made.text)
    await asyncio.wait_for(heard.wait(), 60)
    with pytest.raises(Unauthenticated):
        await elsewhere.verify(made.text)
    assert told == ["ada"]
    Counting.operations = 0
    assert (await keys.verify(other.text)).caller_id == "bob"
    assert Counting.operations == 0


async def test_a_bell_that_rings_while_a_key_is_read_is_not_lost(keys: Keys, counted: Database) -> None:
    """The row was read before the revocation, the bell was heard before the answer was remembered."""
    made = await make(keys)
    real = counted.run

    async def slow(operation: Any) -> Any:
        row = await real(operation)
        keys._on_bell(KeyRevoked(made.view.id, "ada"))
        return row

    counted.run = slow  # type: ignore[method-assign]
    await keys.verify(made.text)
    counted.run = real  # type: ignore[method-assign]
    await counted.run(lambda c: c.execute("UPDATE windlass.keys SET revoked_at = windlass.clock()"))
    with pytest.raises(Unauthenticated):
        await keys.verify(made.text)


async def test_bells_that_may_have_been_missed_empty_the_memory(keys: Keys, counted: Database) -> None:
    made = await make(keys)
    await keys.verify(made.text)
    await counted.run(lambda c: c.execute("UPDATE windlass.keys SET revoked_at = windlass.clock()"))
    await keys.verify(made.text)
    keys._on_bell(KeyRevoked())
    with pytest.raises(Unauthenticated):
        await keys.verify(made.text)


async def test_a_key_expires_by_the_databases_clock(keys: Keys, clock: VirtualClock, seconds: Seconds) -> None:
    made = await make(keys, expires_in_s=90)
    await keys.verify(made.text)
    for passed in (61, 28):
        clock.advance(passed)
        seconds.now_s += passed
        await keys.verify(made.text)
    # It is remembered for the second that is left of it, not for a minute.
    clock.advance(2)
    seconds.now_s += 2
    with pytest.raises(Unauthenticated):
        await keys.verify(made.text)
    [view] = await keys.listing()
    assert not view.is_live


async def test_keys_made_with_a_former_secret_stay_good(keys: Keys, counted: Database) -> None:
    made = await make(keys)
    after = Keys(counted, Secret.of([TWO, ONE]), entropy=os.urandom)
    assert (await after.verify(made.text)).caller_id == "ada"
    with pytest.raises(Unauthenticated):
        await Keys(counted, Secret.of([TWO]), entropy=os.urandom).verify(made.text)


async def test_when_a_key_was_used_is_written_once_a_minute(keys: Keys, seconds: Seconds, clock: VirtualClock) -> None:
    made, unused = await make(keys), await make(keys)
    for _ in range(5):
        await keys.verify(made.text)
    assert {view.last_used_at for view in await keys.listing()} == {None}
    seconds.now_s += 60.0
    clock.advance(60)
    await keys.verify(made.text)
    await keys.stop()
    used = {view.id: view.last_used_at for view in await keys.listing()}
    assert used == {made.view.id: clock.now(), unused.view.id: None}


async def test_listing_shows_the_oldest_first_and_can_be_narrowed(keys: Keys, clock: VirtualClock) -> None:
    made = []
    for caller in ("ada", "bob", "ada"):
        made.append((await make(keys, caller)).view)
        clock.advance(1)
    assert await keys.listing() == made
    assert await keys.listing(caller="ada") == [made[0], made[2]]
    assert await keys.listing(caller="eve") == []


async def test_an_unknown_key_cannot_be_revoked(keys: Keys) -> None:
    for key_id in ("nobody", "a\x00"):
        with pytest.raises(NotFound):
            await keys.revoke(key_id, by="root")


async def test_revoking_twice_is_noted_once(keys: Keys, counted: Database) -> None:
    made = await make(keys)
    first = await keys.revoke(made.view.id, by="root", request_id="r-1")
    assert await keys.revoke(made.view.id, by="eve") == first
    rows = await counted.run(lambda c: c.fetch("SELECT event, caller, payload FROM windlass.audit_notes ORDER BY id"))
    assert [(row["event"], row["caller"]) for row in rows] == [("key_created", "root"), ("key_revoked", "root")]
    assert '"request_id":"r-1"' in rows[1]["payload"]
    assert f'"key":"{made.view.id}"' in rows[0]["payload"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"caller": ""},
        {"caller": "a\x00"},
        {"name": "\ud800"},
        {"tier": " "},
        {"caller_type": "robot"},
        {"scopes": []},
        {"scopes": ["jobs:read", "everything"]},
        {"expires_in_s": 0},
        {"expires_in_s": float("nan")},
        {"expires_in_s": 1e12},
    ],
)
async def test_a_key_that_nobody_can_mean_is_refused(keys: Keys, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        await keys.create(**{"caller": "ada", "name": "n", "by": "root", **wrong})
    assert await keys.listing() == []


async def test_a_create_whose_answer_was_lost_makes_one_key_and_one_note(keys: Keys, counted: Database) -> None:
    real = counted.attempt
    tries = 0

    async def cut_off(operation: Any) -> Any:
        nonlocal tries
        tries += 1
        answer = await real(operation)
        if tries == 1:
            raise asyncpg.ConnectionDoesNotExistError("cut off after the commit")
        return answer

    async def at_once(_: float) -> None:
        return None

    counted.attempt = cut_off  # type: ignore[method-assign]
    counted._pause = at_once  # type: ignore[method-assign]
    made = await make(keys)
    assert tries == 2
    assert (await keys.verify(made.text)).caller_id == "ada"
    assert len(await keys.listing()) == 1
    assert await counted.run(lambda c: c.fetchval("SELECT count(*) FROM windlass.audit_notes")) == 1


async def test_a_database_that_is_away_is_not_a_bad_key(
    keys: Keys, counted: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await make(keys)
    monkeypatch.setattr(module, "VERIFY_WITHIN_S", 0.05)

    async def away(_: Any) -> Any:
        await asyncio.Event().wait()

    real, counted.run = counted.run, away  # type: ignore[method-assign]
    with pytest.raises(DatabaseUnavailable):
        await keys.verify(made.text)
    counted.run = real  # type: ignore[method-assign]
    assert (await keys.verify(made.text)).caller_id == "ada"


async def test_a_flood_of_bad_keys_pushes_out_no_good_one(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, seconds: Seconds
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 5)
    made = await make(keys)
    await keys.verify(made.text)
    for _ in range(12):
        with pytest.raises(Unauthenticated):
            await keys.verify(make_key(os.urandom(9), os.urandom(32)).text)
    assert len(keys._bad) == 5
    Counting.operations = 0
    await keys.verify(made.text)
    assert Counting.operations == 0


async def test_a_key_is_nowhere_but_in_its_answer(
    keys: Keys, counted: Database, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    made = await make(keys)
    await keys.verify(made.text)
    await keys.revoke(made.view.id, by="root")
    with pytest.raises(Unauthenticated) as refused:
        await keys.verify(made.text)
    shown = [repr(made), str(made.view), repr(keys), str(refused.value), repr(refused.value), caplog.text]
    shown += [repr(vars(keys)), repr(refused.value.args)]
    shown += await counted.run(lambda c: _dump(c))
    secret_part = made.text.split("_")[2]
    assert not [text for text in shown if made.text in text or secret_part in text]
    assert secret_part.encode().hex() not in "".join(shown)


async def _dump(connection: asyncpg.Connection) -> list[str]:
    tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'windlass'")
    return [str(await connection.fetch(f"SELECT t::text FROM windlass.{row['tablename']} AS t")) for row in tables]
