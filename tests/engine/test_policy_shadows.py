"""What shadow rules would have decided is counted and shown, within bounds, and away from the jobs."""

from __future__ import annotations

import pytest

from tests.engine.test_policies import Seconds
from windlass.core.errors import DatabaseUnavailable
from windlass.core.verdict import NO_POLICY, Decision
from windlass.engine import shadows
from windlass.engine.policies import Current, Policies
from windlass.engine.policy_watch import PolicyWatch
from windlass.engine.publish import publish
from windlass.engine.shadows import EXAMPLES_OF_RULE_MAX, KEPT_MAX, OTHERS, RULES_MAX, Shadows
from windlass.policy.question import Question
from windlass.policy.reader import read_policy, read_question
from windlass.policy.rules import compile_policy
from windlass.store.database import Database

TEXT = """
default_decision: allow
rules: [{id: watched, mode: shadow, match: {topics: [job.mail.*]}, decision: deny, reason: not yet}]
tests:
  - {request: {topic: job.mail.x}, expect: {decision: allow, would: [watched]}}
  - {request: {topic: job.a}, expect: {decision: allow, would: []}}
"""


def mail(**more: str) -> Question:
    return read_question({"topic": "job.mail.x", "tenant": "acme", "caller": {"id": "ann"}, **more})


async def test_a_judge_notes_what_shadow_rules_would_have_decided(db: Database) -> None:
    await publish(db, {"main": TEXT}, by="ann")
    process = Policies(Seconds())
    current = await process.current(db)
    for _ in range(7):
        assert current.judge(mail(job_id="j1")).verdict.decision is Decision.ALLOW
    current.judge(read_question({"topic": "job.a"}))
    assert await shadows.counts(db) == [] and await shadows.examples(db) == [], "nothing was written yet"
    assert await process.shadows.flush(db) == 7
    assert await process.shadows.flush(db) == 0
    [count] = await shadows.counts(db)
    assert (count.policy, count.rule, count.decision, count.count) == (1, "watched", "deny", 7)
    assert count.minute.second == 0
    found = await shadows.examples(db)
    assert len(found) == EXAMPLES_OF_RULE_MAX
    told = found[0]
    assert (told.rule, told.reason, told.edge, told.topic) == ("watched", "not yet", "submit", "job.mail.x")
    assert (told.tenant, told.caller, told.job_id, told.at is not None) == ("acme", "ann", "j1", True)


async def test_counts_of_a_minute_add_up_and_examples_are_bounded(db: Database) -> None:
    policy = compile_policy(read_policy(TEXT))
    for no in range(1, 31):
        noted = Shadows()
        current = Current(no % 2 + 1, 1, policy, shadows=noted)
        for _ in range(EXAMPLES_OF_RULE_MAX):
            current.judge(mail(job_id=f"j{no}"))
        await noted.flush(db)
    found = await shadows.counts(db)
    # The minute may change while the test runs.
    assert sum(one.count for one in found) == 30 * EXAMPLES_OF_RULE_MAX
    kept = await shadows.examples(db)
    assert len(kept) == KEPT_MAX and kept[0].job_id == "j30"
    assert len(await shadows.examples(db, 3)) == 3


async def test_many_rules_are_counted_together(db: Database) -> None:
    noted = Shadows()
    policy = compile_policy(read_policy(TEXT))
    for no in range(RULES_MAX + 10):
        Current(no + 1, 1, policy, shadows=noted).judge(mail())
    assert await noted.flush(db) == RULES_MAX + 10
    found = await shadows.counts(db)
    assert sum(one.count for one in found if one.rule == OTHERS) == 10
    assert len(await shadows.examples(db)) == KEPT_MAX


async def test_what_cannot_be_written_is_kept(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = Shadows()
    current = Current(1, 1, compile_policy(read_policy(TEXT)), shadows=noted)
    current.judge(mail())
    with monkeypatch.context() as patch:

        async def away(_: object) -> None:
            raise DatabaseUnavailable("away")

        patch.setattr(db, "run", away)
        with pytest.raises(DatabaseUnavailable):
            await noted.flush(db)
    current.judge(mail())
    assert await noted.flush(db) == 2
    assert [one.count for one in await shadows.counts(db)] == [2]


async def test_a_process_that_stops_writes_its_last_counts(db: Database) -> None:
    await publish(db, {"main": TEXT}, by="ann")
    process = Policies(Seconds())
    watch = PolicyWatch(db, process)
    await watch.start()
    (await process.current(db)).judge(mail())
    await watch.stop()
    assert [one.count for one in await shadows.counts(db)] == [1]


async def test_a_policy_that_cannot_be_used_denies_and_notes_nothing() -> None:
    verdict = Current(3, 3, None, "rules[0]: no", shadows=Shadows()).judge(mail()).verdict
    assert (verdict.decision, verdict.rule) == (Decision.DENY, NO_POLICY)
    assert "rules" not in verdict.reason, "the caller learns nothing of the documents"
