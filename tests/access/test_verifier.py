"""What the port `Verifier` promises, asked of both who keep it: built-in keys, and a Membership service."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import httpx
import pytest

from tests.access.membership_service import membership_service
from tests.access.outage import cut_off
from windlass.access.callers import Callers
from windlass.access.keys import Keys
from windlass.access.membership import Membership
from windlass.access.secret import Secret
from windlass.access.verifier import Verifier
from windlass.core.caller import USER_SCOPES, stranger
from windlass.core.errors import Unauthenticated, Unavailable
from windlass.pure.key import make_key
from windlass.store.database import Database

SECRET = Secret.of(["a secret of the tests, long enough to be one"])


@dataclass
class Adapter:
    """A verifier, and the hands to change what it goes by."""

    verifier: Verifier
    # A key that is good, of this caller.
    make: Callable[[str], Awaitable[str]]
    revoke: Callable[[str], Awaitable[None]]
    break_down: Callable[[], Awaitable[None]]
    # How often its source was read.
    looks: Callable[[], Awaitable[int]]
    clock: list[float] = field(default_factory=lambda: [0.0])


def some_key() -> str:
    return make_key(secrets.token_bytes(9), secrets.token_bytes(32)).text


@pytest.fixture(params=["keys", "membership"])
async def adapter(request: pytest.FixtureRequest, dsn: str) -> AsyncIterator[Adapter]:
    db = await Database.open(dsn)
    made = _keys(db) if request.param == "keys" else _membership(db)
    async for one in made:
        yield one
    await db.close()


async def _keys(db: Database) -> AsyncIterator[Adapter]:
    now_s = [0.0]
    keys = Keys(db, SECRET, entropy=secrets.token_bytes, clock=lambda: now_s[0])
    ids: dict[str, str] = {}
    looks = 0

    async def make(caller: str) -> str:
        key = await keys.create(caller, name=caller, by="test")
        ids[key.text] = key.view.id
        return key.text

    async def revoke(key: str) -> None:
        await keys.revoke(ids[key], by="test")

    async def break_down() -> None:
        cut_off(db)

    async def looked() -> int:
        return looks

    run = db.run

    async def counted(operation: object) -> object:
        nonlocal looks
        looks += 1
        return await run(operation)  # type: ignore[arg-type]

    db.run = counted  # type: ignore[method-assign, assignment]
    yield Adapter(keys, make, revoke, break_down, looked, now_s)
    db.run = run  # type: ignore[method-assign]


async def _membership(db: Database) -> AsyncIterator[Adapter]:
    now_s = [0.0]
    async with membership_service() as service:
        client = httpx.AsyncClient(trust_env=False, timeout=60)
        callers = Callers(db, entropy=secrets.token_bytes)
        membership = Membership(service.url, SECRET, callers, client=client, clock=lambda: now_s[0])
        answers: dict[str, object] = {}

        async def make(caller: str) -> str:
            key = some_key()
            answers[key] = {"status": 200, "body": {"caller_id": caller}}
            await service.order(answers=answers)
            return key

        async def revoke(key: str) -> None:
            del answers[key]
            await service.order(answers=answers)
            # It cannot tell us; what was learnt lasts a minute.
            now_s[0] += 60.0

        async def looked() -> int:
            return len(await service.asked())

        yield Adapter(membership, make, revoke, service.die, looked, now_s)
        await membership.close()


async def test_a_good_key_is_its_callers(adapter: Adapter) -> None:
    ann, bob = await adapter.make("ann"), await adapter.make("bob")
    caller = await adapter.verifier.verify(ann)
    assert (caller.caller_id, caller.scopes) == ("ann", USER_SCOPES)
    assert (await adapter.verifier.verify(bob)).caller_id == "bob"


async def test_a_bad_key_is_refused_in_one_text_whatever_is_wrong(adapter: Adapter) -> None:
    good = await adapter.make("ann")
    revoked = await adapter.make("ann")
    await adapter.verifier.verify(revoked)
    await adapter.revoke(revoked)
    told = set()
    for bad in (some_key(), revoked, good[:-1] + ("A" if good[-1] != "A" else "B"), "", "two words", "ä", "x" * 5000):
        with pytest.raises(Unauthenticated) as refusal:
            await adapter.verifier.verify(bad)
        told.add(str(refusal.value))
    assert told == {str(stranger())}


async def test_what_cannot_be_a_key_costs_no_look(adapter: Adapter) -> None:
    before = await adapter.looks()
    for junk in ("", "two words", "ä", "x" * 5000, "\x00"):
        with pytest.raises(Unauthenticated):
            await adapter.verifier.verify(junk)
    assert await adapter.looks() == before


@pytest.mark.usefixtures("no_pauses")
async def test_not_to_know_is_unavailable_never_unauthenticated(adapter: Adapter) -> None:
    unknown, good = some_key(), await adapter.make("ann")
    await adapter.verifier.verify(good)
    await adapter.break_down()
    async with asyncio.timeout(60):
        with pytest.raises(Unavailable):
            await adapter.verifier.verify(unknown)
    assert (await adapter.verifier.verify(good)).caller_id == "ann"


@pytest.mark.parametrize(("is_good", "kept_s"), [(True, 60.0), (False, 10.0)])
async def test_an_answer_is_kept_for_a_while(adapter: Adapter, is_good: bool, kept_s: float) -> None:
    key = await adapter.make("ann") if is_good else some_key()

    async def ask() -> None:
        try:
            await adapter.verifier.verify(key)
        except Unauthenticated:
            assert not is_good

    await ask()
    once = await adapter.looks()
    adapter.clock[0] += kept_s - 0.1
    await ask()
    assert await adapter.looks() == once
    adapter.clock[0] += 0.2
    await ask()
    assert await adapter.looks() > once


async def test_requests_with_one_key_share_one_look(adapter: Adapter) -> None:
    key = await adapter.make("ann")
    before = await adapter.looks()
    await asyncio.gather(*(adapter.verifier.verify(key) for _ in range(50)))
    assert await adapter.looks() == before + 1


async def test_the_end_of_a_callers_rights_is_told(adapter: Adapter) -> None:
    forgotten = asyncio.Queue[str]()
    adapter.verifier.close_on(forgotten.put_nowait)
    key = await adapter.make("ann")
    await adapter.verifier.verify(key)
    await adapter.revoke(key)
    with pytest.raises(Unauthenticated):
        await adapter.verifier.verify(key)
    async with asyncio.timeout(60):
        assert await forgotten.get() == "ann"


async def test_the_key_is_neither_told_nor_kept(adapter: Adapter, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    good, bad = await adapter.make("ann"), some_key()
    seen = [repr(await adapter.verifier.verify(good))]
    with pytest.raises(Unauthenticated) as refusal:
        await adapter.verifier.verify(bad)
    seen += [str(refusal.value), caplog.text, repr(vars(adapter.verifier))]
    assert good not in "".join(seen)
    assert bad not in "".join(seen)
