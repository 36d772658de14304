"""Publishing a policy is a fence, versions are never changed, and a process that cannot judge denies."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncpg
import pytest

from windlass.core.bell import PolicyPublished
from windlass.core.errors import BadInput, BadPolicy, NotFound, PolicyChanged
from windlass.core.verdict import NO_POLICY
from windlass.engine import policies
from windlass.engine.policies import READ_EVERY_S, Current, Policies, PolicyText, is_changed
from windlass.engine.policy_watch import PolicyWatch
from windlass.engine.publish import publish, rollback
from windlass.policy.judge import judge
from windlass.policy.reader import read_question
from windlass.policy.signing import public_key_of, sign_policy, signature_check
from windlass.policy.texts import load_policy
from windlass.store.database import Database

ALLOW = """
default_decision: allow
tests: [{request: {topic: job.a}, expect: {decision: allow}}]
"""
DENY = """
default_decision: deny
tests: [{request: {topic: job.a}, expect: {decision: deny}}]
"""
TENANT = """
tier: tenant
selector: {tenant_id: acme}
rules: [{id: stop, decision: deny}]
tests: [{request: {topic: job.a, tenant: acme}, expect: {decision: deny, rule: stop}}]
"""
UNTESTED = "default_decision: allow\nrules: [{id: stop, match: {topics: [job.b]}, decision: deny}]\n"
CHECK = "SELECT windlass.policy_check($1)"
WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


class Seconds:
    """A clock that only the test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


async def one(db: Database, text: str, *values: Any) -> Any:
    return await db.run(lambda connection: connection.fetchval(text, *values))


async def a_waiter(db: Database) -> None:
    """Return once a session waits for the policy's lock."""
    while not await one(db, WAITS):
        await asyncio.sleep(0)


def decision(current: Current, topic: str = "job.a", **fields: Any) -> tuple[str, str]:
    verdict = judge(current.policy, read_question({"topic": topic, **fields})).verdict
    return str(verdict.decision), verdict.rule


async def test_before_the_first_publish_there_is_no_gate(db: Database, seconds: Seconds) -> None:
    assert await Policies(seconds).current(db) == Current()
    assert not Current().is_gated and Current().problem is None
    required = await Policies(seconds, is_required=True).current(db)
    assert required.is_gated and required.problem is not None
    assert decision(required) == ("deny", NO_POLICY)


async def test_a_published_policy_is_judged_by(db: Database, seconds: Seconds) -> None:
    published = await publish(db, {"main": DENY}, by="ann", note="closed")
    assert (published.head.no, published.floor, published.is_new, published.before) == (1, 1, True, 0)
    current = await Policies(seconds).current(db)
    assert (current.no, current.floor, current.error, current.is_gated) == (1, 1, None, True)
    assert decision(current)[0] == "deny"
    version = await policies.read(db)
    assert version.head == published.head and version.texts == (PolicyText("main", DENY),)
    assert (version.head.by, version.head.note, version.head.names) == ("ann", "closed", ("main",))
    assert version.head.hash == load_policy(version.texts).hash


async def test_a_publish_waits_for_the_commits_that_judge(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    async with db.connection() as connection, connection.transaction():
        assert await connection.fetchval(CHECK, 1) == 1
        publishing = asyncio.create_task(publish(db, {"main": DENY}, by="ann"))
        await a_waiter(db)
        assert (await policies.read_now(db)).no == 1
        # The commit goes on by the policy that it was judged by, because the publish has not returned.
        assert await connection.fetchval("SELECT no FROM windlass.policy_now") == 1
    assert (await publishing).head.no == 2


async def test_a_commit_waits_for_a_publish_and_is_refused_then(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    async with db.connection() as connection:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(6015006)")
            checking = asyncio.create_task(one(db, CHECK, 1))
            claiming = asyncio.create_task(one(db, "SELECT windlass.policy_floor()"))
            await a_waiter(db)
            await connection.execute("UPDATE windlass.policy_now SET no = 2, floor = 2")
        with pytest.raises(asyncpg.PostgresError) as refused:
            await checking
        assert await claiming == 2, "the floor is read after the lock, and not with the statement's own snapshot"
    assert is_changed(refused.value)


async def test_a_commit_by_an_older_policy_is_refused(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    assert await one(db, CHECK, 1) == 1
    await publish(db, {"main": DENY}, by="ann")
    with pytest.raises(asyncpg.PostgresError) as refused:
        await one(db, CHECK, 1)
    assert is_changed(refused.value) and not is_changed(ValueError())
    assert await one(db, CHECK, 2) == 2


async def test_verdicts_about_earlier_jobs_hold_after_a_publish_for_new_jobs_only(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    published = await publish(db, {"main": DENY}, by="ann", new_only=True)
    assert (published.head.no, published.floor) == (2, 1)
    assert await one(db, CHECK, 2) == 1
    assert await one(db, "SELECT windlass.policy_floor()") == 1


async def test_two_publishers_at_once_each_get_a_version_and_neither_is_lost(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    async with db.connection() as connection, connection.transaction():
        await connection.fetchval(CHECK, 1)
        both = [
            asyncio.create_task(publish(db, {"acme": TENANT}, by="ann")),
            asyncio.create_task(publish(db, {"other": TENANT.replace("acme", "other")}, by="bob")),
        ]
        while await one(db, WAITS) < 2:
            await asyncio.sleep(0)
    assert sorted([(await each).head.no for each in both]) == [2, 3]
    assert (await policies.read(db)).head.names == ("acme", "main", "other")


async def test_documents_are_replaced_by_name(db: Database, seconds: Seconds) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    await publish(db, {"acme": TENANT}, by="ann")
    current = await Policies(seconds).current(db)
    assert decision(current, tenant="acme") == ("deny", "stop") and decision(current)[0] == "allow"
    await publish(db, {"main": ALLOW}, by="ann", is_whole=True)
    assert (await policies.read(db)).head.names == ("main",)
    assert (await policies.read(db, 2)).head.names == ("acme", "main")
    assert [(head.no, head.names) for head in await policies.list(db, limit=2)] == [
        (3, ("main",)),
        (2, ("acme", "main")),
    ]
    assert [head.no for head in await policies.list(db, before=2)] == [1]


async def test_documents_that_mean_the_same_are_no_new_version(db: Database) -> None:
    first = await publish(db, {"main": ALLOW}, by="ann")
    again = await publish(db, {"main": f"# a comment{ALLOW}"}, by="bob")
    assert (again.head, again.is_new) == (first.head, False)
    renamed = await publish(db, {"other": ALLOW}, by="bob", is_whole=True)
    assert (renamed.head.no, renamed.is_new) == (2, True)


async def test_a_policy_that_fails_its_tests_is_not_published(db: Database) -> None:
    wrong = ALLOW.replace("{decision: allow}", "{decision: deny}")
    with pytest.raises(BadPolicy, match=r"main: job\.a: expected deny, found allow"):
        await publish(db, {"main": wrong}, by="ann")
    with pytest.raises(BadPolicy, match="no test"):
        await publish(db, {"main": UNTESTED}, by="ann")
    assert (await policies.read_now(db)).no == 0
    await publish(db, {"main": UNTESTED}, by="ann", untested="an emergency")
    # The tests run as the documents will be in force: this one tightens what the other one's tests expect.
    with pytest.raises(BadPolicy, match="main: "):
        await publish(db, {"main": ALLOW, "acme": TENANT.replace("acme", "default")}, by="ann")


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ({"main": "rules: [{id: x, decison: deny}]"}, "main: "),
        ({"acme": TENANT}, "tier global"),
        ({"a b": ALLOW}, "not a document's name"),
        ({"main": ALLOW + "# \x00"}, "cannot be stored"),
        ({}, "no document"),
        ({f"d{no}": ALLOW for no in range(101)}, "at most 100"),
    ],
)
async def test_a_policy_that_cannot_be_used_is_not_published(
    db: Database, documents: dict[str, str], reason: str
) -> None:
    with pytest.raises(BadPolicy, match=reason):
        await publish(db, documents, by="ann")
    assert (await policies.read_now(db)).no == 0


async def test_a_note_is_text(db: Database) -> None:
    with pytest.raises(BadInput):
        await publish(db, {"main": ALLOW}, by="ann", note=" ")


async def test_a_publisher_may_name_the_version_that_it_saw(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann", expected_no=0)
    with pytest.raises(PolicyChanged):
        await publish(db, {"main": DENY}, by="bob", expected_no=0)
    assert (await publish(db, {"main": DENY}, by="bob", expected_no=1)).head.no == 2


async def test_a_rollback_publishes_an_older_content_again(db: Database, seconds: Seconds) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    await publish(db, {"main": DENY}, by="ann")
    back = await rollback(db, 1, by="bob", note="too strict")
    assert (back.head.no, back.head.rollback_of, back.floor, back.is_new) == (3, 1, 3, True)
    assert (await policies.read(db, 3)).texts == (await policies.read(db, 1)).texts
    assert decision(await Policies(seconds).current(db))[0] == "allow"
    assert not (await rollback(db, 1, by="bob")).is_new
    with pytest.raises(NotFound):
        await rollback(db, 9, by="bob")


async def test_publishes_and_rollbacks_are_noted_in_their_commit(db: Database) -> None:
    await publish(db, {"main": UNTESTED}, by="ann", untested="an emergency", about={"key": "k1"})
    await publish(db, {"main": DENY}, by="ann", new_only=True)
    await rollback(db, 1, by="bob")
    rows = await db.run(
        lambda connection: connection.fetch("SELECT event, caller, payload FROM windlass.audit_notes ORDER BY id")
    )
    payloads = [json.loads(row["payload"]) for row in rows]
    assert [(row["event"], row["caller"]) for row in rows] == [
        ("policy_published", "ann"),
        ("policy_published", "ann"),
        ("policy_rolled_back", "bob"),
    ]
    assert (payloads[0]["untested"], payloads[0]["key"], payloads[0]["policy"]) == ("an emergency", "k1", 1)
    assert payloads[1]["new_only"] and payloads[2]["rollback_of"] == 1


async def test_a_signature_that_does_not_verify_is_refused(db: Database, seconds: Seconds) -> None:
    key, other = "A" * 43 + "=", "B" * 42 + "A="
    check = signature_check((public_key_of(key),))
    assert check is not None and signature_check(()) is None
    digest = load_policy((PolicyText("main", DENY),)).hash
    signed = sign_policy(digest, key)
    for wrong in (None, "", sign_policy("another hash", key), sign_policy(digest, other)):
        with pytest.raises(BadPolicy, match="sign"):
            await publish(db, {"main": DENY}, by="ann", signature=wrong, check=check)
    assert (await policies.read_now(db)).no == 0
    await publish(db, {"main": DENY}, by="ann", signature=signed, check=check)
    assert (await Policies(seconds, check=check).current(db)).error is None
    # A version that reached the table without a signature, or with the hash of other texts, is not judged by.
    await publish(db, {"main": ALLOW}, by="ann")
    assert decision(await Policies(seconds, check=check).current(db)) == ("deny", NO_POLICY)
    back = await rollback(db, 1, by="ann", check=check)
    assert (back.head.signature, (await Policies(seconds, check=check).current(db)).error) == (signed, None)
    await one(db, "UPDATE windlass.policies SET documents = (SELECT documents FROM windlass.policies WHERE no = 2)")
    assert decision(await Policies(seconds, check=check).current(db)) == ("deny", NO_POLICY)


async def test_a_signature_that_is_added_is_stored(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    signed = await publish(db, {"main": ALLOW}, by="ann", signature="c2ln")
    assert (signed.head.no, signed.head.signature) == (2, "c2ln")


async def test_a_process_that_cannot_compile_the_policy_denies_and_says_why(db: Database, seconds: Seconds) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    await one(db, 'UPDATE windlass.policies SET documents = \'[{"name": "main", "text": "later: 1"}]\'')
    read: list[tuple[int, bool]] = []
    process = Policies(seconds, on_load=lambda no, is_good: read.append((no, is_good)))
    current = await process.current(db)
    assert current.is_gated and current.problem is not None and "later" in current.problem
    assert decision(current) == ("deny", NO_POLICY)
    await publish(db, {"main": DENY}, by="ann", is_whole=True)
    process.expire()
    assert (await process.current(db)).problem is None
    assert read == [(1, False), (2, True)]


async def test_the_copy_is_read_again_after_a_while_and_after_a_bell(db: Database, seconds: Seconds) -> None:
    process = Policies(seconds)
    await process.current(db)
    await publish(db, {"main": ALLOW}, by="ann")
    assert (await process.current(db)).no == 0
    seconds.now_s += READ_EVERY_S
    first = await process.current(db)
    seconds.now_s += READ_EVERY_S
    second = await process.current(db)
    assert first.no == 1 and second.policy is first.policy, "an unchanged version is compiled once"
    await publish(db, {"main": DENY}, by="ann", new_only=True)
    process.expire()
    third = await process.current(db)
    assert (third.no, third.floor) == (2, 1)


async def test_callers_at_once_share_one_read(db: Database, seconds: Seconds) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    read: list[int] = []
    process = Policies(seconds, on_load=lambda no, _: read.append(no))
    found = await asyncio.gather(*(process.current(db) for _ in range(9)))
    assert len(read) == 1 and all(each == found[0] for each in found)


async def test_a_bell_brings_the_new_policy_into_every_process(dsn: str, db: Database, seconds: Seconds) -> None:
    other = await Database.open(dsn)
    watched = asyncio.Event()
    process = Policies(seconds, on_load=lambda no, _: watched.set() if no == 2 else None)
    watch = PolicyWatch(other, process)
    try:
        await publish(db, {"main": ALLOW}, by="ann")
        await watch.start()
        assert watch.ready() and watch.is_running and watch.alive() is not None
        heard: list[PolicyPublished] = []
        await db.listen(PolicyPublished, heard.append)
        await publish(db, {"main": DENY}, by="ann")
        await watched.wait()
        assert process.known is not None and decision(process.known)[0] == "deny"
    finally:
        await watch.stop()
        await other.close()


async def test_a_process_without_a_required_policy_is_not_ready(db: Database, seconds: Seconds) -> None:
    watch = PolicyWatch(db, Policies(seconds, is_required=True))
    assert not watch.ready() and watch.problem == "the policy was not read yet"
    await watch.start()
    try:
        assert not watch.ready() and watch.problem is not None and "policy_required" in watch.problem
    finally:
        await watch.stop()
    assert watch.alive() is None


async def test_a_release_that_judges_nothing_may_not_start_after_the_first_publish(db: Database) -> None:
    await publish(db, {"main": ALLOW}, by="ann")
    assert await one(db, "SELECT oldest_schema >= 18 FROM windlass.installation")


async def test_the_first_policy_concerns_the_open_jobs_too(db: Database) -> None:
    with pytest.raises(BadInput, match="open jobs"):
        await publish(db, {"main": DENY}, by="ann", new_only=True)
    assert (await policies.read_now(db)).no == 0
