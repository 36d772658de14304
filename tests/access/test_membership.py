from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.access.membership_service import Remote, membership_service
from windlass.access.callers import Callers
from windlass.access.membership import BAD_S, GOOD_S, TIMEOUT_S, Membership
from windlass.access.secret import Secret
from windlass.core.caller import USER_SCOPES, Role
from windlass.core.errors import MembershipUnavailable, Unauthenticated
from windlass.store.database import Database

SECRET = "a secret of the tests, long enough to be one"
GOOD = {"status": 200, "body": {"caller_id": "ann", "caller_type": "user"}}


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Heard:
    def __init__(self) -> None:
        self.results: list[str] = []
        self.is_open = False

    def membership(self, result: str) -> None:
        self.results.append(result)

    def breaker(self, _name: str, is_open: bool) -> None:
        self.is_open = is_open


class Yard:
    """A service in a process of its own, and the verifier that asks it."""

    def __init__(self, db: Database, service: Remote, timeout_s: float = TIMEOUT_S) -> None:
        self.service = service
        self.clock = Clock()
        self.heard = Heard()
        self.client = httpx.AsyncClient(trust_env=False, timeout=60)
        callers = Callers(db, entropy=secrets.token_bytes)
        self.membership = Membership(
            service.url,
            Secret.of([SECRET]),
            callers,
            client=self.client,
            clock=self.clock,
            timeout_s=timeout_s,
            meters=self.heard,
        )

    async def outcome(self, key: str) -> str:
        try:
            return (await self.membership.verify(key)).caller_id
        except (Unauthenticated, MembershipUnavailable) as error:
            return error.code

    async def asked(self) -> int:
        return len(await self.service.asked())


@pytest.fixture
async def yard(db: Database) -> AsyncIterator[Yard]:
    async with membership_service() as service:
        made = Yard(db, service)
        yield made
        await made.membership.close()


@pytest.mark.covers("CIX-51", "CIX-53")
async def test_claims_become_the_caller(yard: Yard) -> None:
    claims = {"caller_id": "ann", "caller_type": "service", "tier": "pro", "scopes": ["admin"], "extra": [1]}
    await yard.service.order(answers={"k1": {"status": 200, "body": claims}})
    caller = await yard.membership.verify("k1")
    assert (caller.caller_id, caller.caller_type, caller.tier) == ("ann", "service", "pro")
    assert caller.role is Role.ADMIN
    assert caller.raw_claims["extra"] == [1]
    assert await yard.service.asked() == [{"key": "k1", "header": "k1"}]


@pytest.mark.covers("CIX-07", "CIX-51", "CIX-52")
@pytest.mark.parametrize("body", ["", "not json", "[1]", "null", '"text"'])
@pytest.mark.parametrize("status", [200, 201])
async def test_a_bare_answer_is_a_user_with_an_id_of_ours(yard: Yard, status: int, body: str) -> None:
    await yard.service.order(answers={"k1": {"status": status, "body": body}})
    caller = await yard.membership.verify("k1")
    assert caller.caller_id.startswith("caller-")
    assert caller.scopes == USER_SCOPES
    assert caller.role is Role.USER


@pytest.mark.covers("CIX-51", "CIX-53")
@pytest.mark.parametrize("status", [401, 409])
async def test_a_bad_key_is_refused(yard: Yard, status: int) -> None:
    await yard.service.order(unknown={"status": status})
    with pytest.raises(Unauthenticated):
        await yard.membership.verify("k1")


@pytest.mark.parametrize("status", [302, 400, 403, 404, 429, 500, 503])
async def test_any_other_answer_is_no_answer(yard: Yard, status: int) -> None:
    await yard.service.order(answers={"k1": {"status": status}})
    assert await yard.outcome("k1") == "membership_unavailable"
    # Nothing of it is kept: the next request asks again.
    await yard.service.order(answers={"k1": GOOD})
    assert await yard.outcome("k1") == "ann"


async def test_a_service_that_is_gone_refuses_nobody(yard: Yard) -> None:
    await yard.service.die()
    for _ in range(5):
        assert await yard.outcome("k1") == "membership_unavailable"


async def test_a_connection_that_is_cut_is_an_outage(yard: Yard) -> None:
    await yard.service.order(answers={"k1": {"cut": True}})
    assert await yard.outcome("k1") == "membership_unavailable"
    assert yard.membership.breaker.failures == 1


async def test_nobody_waits_longer_than_the_timeout(db: Database) -> None:
    async with membership_service() as service:
        yard = Yard(db, service, timeout_s=0.2)
        await service.order(answers={"k1": {"hang": True}})
        async with asyncio.timeout(60):
            assert await yard.outcome("k1") == "membership_unavailable"
        assert yard.heard.results == ["outage"]
        await yard.membership.close()


async def test_an_endless_answer_is_not_read(yard: Yard) -> None:
    await yard.service.order(answers={"k1": {"status": 200, "body": "x" * 200_000}})
    assert await yard.outcome("k1") == "membership_unavailable"


async def test_bad_keys_never_open_the_breaker(yard: Yard) -> None:
    for number in range(20):
        assert await yard.outcome(f"bad{number}") == "unauthenticated"
    await yard.service.order(answers={"odd": {"status": 404}})
    for _ in range(5):
        assert await yard.outcome("odd") == "membership_unavailable"
    assert not yard.membership.breaker.is_open
    await yard.service.order(answers={"k1": GOOD})
    assert await yard.outcome("k1") == "ann"


@pytest.mark.covers("CIX-53", "CIX-58")
async def test_three_outages_open_the_breaker_and_one_question_closes_it(yard: Yard) -> None:
    await yard.service.order(unknown={"status": 503})
    for number in range(3):
        assert await yard.outcome(f"k{number}") == "membership_unavailable"
    assert yard.heard.is_open
    assert await yard.outcome("k9") == "membership_unavailable"
    assert await yard.asked() == 3
    await yard.service.order(answers={"k1": GOOD}, unknown={"status": 401})
    yard.clock.now_s += 30
    assert await yard.outcome("k1") == "ann"
    assert not yard.heard.is_open
    assert yard.heard.results == ["outage"] * 3 + ["open", "good"]


async def test_a_refusal_closes_the_breaker_too(yard: Yard) -> None:
    await yard.service.order(unknown={"status": 500})
    for number in range(3):
        await yard.outcome(f"k{number}")
    await yard.service.order(unknown={"status": 401})
    yard.clock.now_s += 30
    assert await yard.outcome("k9") == "unauthenticated"
    assert not yard.membership.breaker.is_open


async def test_known_keys_pass_while_the_breaker_is_open(yard: Yard) -> None:
    await yard.service.order(answers={"k1": GOOD})
    await yard.outcome("k1")
    await yard.service.die()
    for number in range(4):
        await yard.outcome(f"x{number}")
    assert yard.membership.breaker.is_open
    assert await yard.outcome("k1") == "ann"
    yard.clock.now_s += GOOD_S
    assert await yard.outcome("k1") == "membership_unavailable"


@pytest.mark.covers("CIX-53", "CIX-59")
async def test_a_good_answer_is_kept_for_a_minute_and_a_bad_one_for_ten_seconds(yard: Yard) -> None:
    await yard.service.order(answers={"k1": GOOD})
    assert (GOOD_S, BAD_S) == (60.0, 10.0)
    for key, kept_s in (("k1", GOOD_S), ("bad", BAD_S)):
        before = await yard.asked()
        await yard.outcome(key)
        yard.clock.now_s += kept_s - 0.1
        await yard.outcome(key)
        assert await yard.asked() == before + 1
        yard.clock.now_s += 0.2
        await yard.outcome(key)
        assert await yard.asked() == before + 2


async def test_many_requests_with_one_key_ask_once(yard: Yard) -> None:
    await yard.service.order(answers={"k1": GOOD, "k2": GOOD}, delay_s=0.2)
    found = await asyncio.gather(*(yard.outcome(f"k{number % 2 + 1}") for number in range(100)))
    assert set(found) == {"ann"}
    assert sorted(one["key"] for one in await yard.service.asked()) == ["k1", "k2"]


async def test_who_gives_up_does_not_take_the_answer_from_the_others(yard: Yard) -> None:
    await yard.service.order(answers={"k1": GOOD}, delay_s=0.2)
    first = asyncio.create_task(yard.membership.verify("k1"))
    second = asyncio.create_task(yard.membership.verify("k1"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).caller_id == "ann"
    assert await yard.asked() == 1


async def test_a_key_that_turns_bad_ends_its_callers_streams(yard: Yard) -> None:
    forgotten: list[str] = []
    yard.membership.close_on(forgotten.append)
    await yard.service.order(answers={"k1": GOOD})
    await yard.outcome("k1")
    await yard.service.order(answers={})
    yard.clock.now_s += GOOD_S
    assert await yard.outcome("k1") == "unauthenticated"
    assert forgotten == ["ann"]


@pytest.mark.parametrize("key", ["", "two words", "ä", "x" * 600, "a\nb", "\x00"])
async def test_what_cannot_be_a_key_is_not_asked_about(yard: Yard, key: str) -> None:
    assert await yard.outcome(key) == "unauthenticated"
    assert await yard.asked() == 0


@pytest.mark.parametrize("named", [True, ["ann"], "x" * 300, "a\x00b", "*"])
async def test_an_id_that_cannot_be_used_is_nobodys(yard: Yard, named: Any) -> None:
    await yard.service.order(answers={"k1": {"status": 200, "body": {"caller_id": named}}})
    assert await yard.outcome("k1") == "membership_unavailable"


@pytest.mark.covers("CIX-55")
async def test_the_key_is_in_no_message_and_no_log(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = "very-secret-key-of-ann"
    await yard.service.order(answers={key: {"cut": True}})
    told = []
    for _ in range(5):
        try:
            await yard.membership.verify(key)
        except MembershipUnavailable as error:
            told += [str(error), repr(error.__cause__), repr(error.__context__)]
    assert told
    assert key not in "".join(told) + caplog.text + repr(vars(yard.membership))
