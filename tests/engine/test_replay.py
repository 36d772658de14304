"""Past jobs are judged again: what a publish would have changed, without changing anything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from tests.engine.test_policies import Seconds
from windlass.core.errors import BadInput, BadPolicy, NotFound
from windlass.engine import inquiry
from windlass.engine.policies import Policies
from windlass.engine.publish import publish
from windlass.engine.replay import NOT_JUDGED, PolicyReplay, replay
from windlass.policy.reader import read_policy
from windlass.policy.rules import Policy, compile_policy

MAIL, FILM = plan(task("a"), recipe="mail"), plan(task("a"), recipe="film")
MARK = "UPDATE windlass.jobs SET policy = $2, rule = $3 WHERE id = $1"
VERDICT = (
    "INSERT INTO windlass.verdicts (job_id, seq, edge, decision, rule, policy, reason, at)"
    " VALUES ($1, $2, $3, $4, $5, 1, '', windlass.clock())"
)


def policy(rules: str, default: str = "allow") -> Policy:
    return compile_policy(read_policy(f"default_decision: {default}\nrules: [{rules}]"))


async def allowed(rig: Rig, job: UUID, rule: str = "open") -> None:
    await rig.db.run(lambda connection: connection.execute(MARK, job, 1, rule))


async def ruled(rig: Rig, job: UUID, decision: str, *, seq: int = 1, edge: str = "submit", rule: str = "r") -> None:
    await rig.db.run(lambda connection: connection.execute(VERDICT, job, seq, edge, decision, rule))


def cells(found: PolicyReplay) -> list[tuple[str, str, int]]:
    return [(cell.before, cell.after, cell.count) for cell in found.matrix]


async def test_refused_jobs_that_would_pass_come_first(rig: Rig) -> None:
    for recipe, before in ((MAIL, "allow"), (MAIL, "deny"), (FILM, "deny"), (FILM, "allow"), (FILM, "throttle")):
        job = await rig.submit(recipe)
        await (allowed(rig, job) if before == "allow" else ruled(rig, job, before))
    found = await replay(rig.db, policy('{id: stop, match: {topics: ["job.mail"]}, decision: deny}'))
    assert cells(found) == [
        ("deny", "allow", 1),
        ("throttle", "allow", 1),
        ("allow", "allow", 1),
        ("allow", "deny", 1),
        ("deny", "deny", 1),
    ]
    assert [cell.loosening > 0 for cell in found.matrix] == [True, True, False, False, False]
    changed = [(one.recipe, one.before, one.verdict.decision.value) for one in found.changed]
    assert changed == [("film", "deny", "allow"), ("film", "throttle", "allow"), ("mail", "allow", "deny")]
    assert (found.changed[0].rule_before, found.changed[2].rule_before, found.changed[2].verdict.rule) == (
        "r", "open", "stop",
    )  # fmt: skip
    assert (found.jobs, found.unknown) == (5, 0)


async def test_the_same_policy_decides_the_same(rig: Rig) -> None:
    """Under the policy that judged the jobs, nothing has changed."""
    given = policy("{id: stop, match: {labels: {env: prod}}, decision: deny}")
    for labels in ({"env": "prod"}, {"env": "test"}, None):
        job = await rig.submit(MAIL, labels=labels)
        await (ruled(rig, job, "deny") if labels == {"env": "prod"} else allowed(rig, job))
    found = await replay(rig.db, given)
    assert found.changed == () and cells(found) == [("allow", "allow", 2), ("deny", "deny", 1)]


@pytest.mark.parametrize(
    ("rule", "is_denied"),
    [
        ("when: 'job.inputs.count > 5'", True),
        ("when: 'job.inputs.count > 50'", False),
        ("match: {labels: {env: prod}}", True),
        ("when: 'caller.id == \"ann\"'", True),
        ("when: 'job.priority > 3'", True),
        ("when: 'job.depth > 0'", False),
    ],
)
async def test_a_job_is_judged_by_what_its_rows_say(rig: Rig, rule: str, is_denied: bool) -> None:
    job = await rig.submit(MAIL, {"count": 7}, labels={"env": "prod"}, caller="ann", priority=4)
    await allowed(rig, job)
    found = await replay(rig.db, policy(f"{{id: r, {rule}, decision: deny}}"))
    assert [cell.after for cell in found.matrix] == ["deny" if is_denied else "allow"]


async def test_the_facts_about_the_caller_come_from_its_first_event(rig: Rig) -> None:
    job = await rig.submit(MAIL)
    facts = '{"caller": {"type": "service", "tier": "gold", "role": "service", "tenant": "acme", "scopes": ["x"]}}'
    put = "UPDATE windlass.events SET payload = $2 WHERE job_id = $1 AND seq = 1"
    await rig.db.run(lambda connection: connection.execute(put, job, facts))
    when = 'caller.tier == "gold" && caller.role == "service" && "x" in caller.scopes'
    rules = f"{{id: r, match: {{tenants: [acme]}}, when: '{when}', decision: deny}}"
    assert [cell.after for cell in (await replay(rig.db, policy(rules))).matrix] == ["deny"]


async def test_jobs_from_before_the_first_policy_were_let_pass(rig: Rig) -> None:
    await rig.submit(MAIL)
    found = await replay(rig.db, policy("", "allow"))
    assert cells(found) == [(NOT_JUDGED, "allow", 1)] and found.changed == ()
    found = await replay(rig.db, policy("", "deny"))
    assert [one.before for one in found.changed] == [NOT_JUDGED]


async def test_only_the_verdict_at_the_submit_counts(rig: Rig) -> None:
    job = await rig.submit(MAIL)
    await ruled(rig, job, "throttle", seq=1)
    await ruled(rig, job, "deny", seq=2, edge="claim")
    assert cells(await replay(rig.db, policy("", "deny"))) == [("throttle", "deny", 1)]


async def test_days_and_jobs_are_bounded(rig: Rig) -> None:
    await rig.submit(MAIL)
    rig.clock.advance(timedelta(days=3).total_seconds())
    jobs = [await rig.submit(MAIL) for _ in range(4)]
    assert (await replay(rig.db, policy(""), days=2)).jobs == 4
    assert (await replay(rig.db, policy(""), days=4)).jobs == 5
    found = await replay(rig.db, policy("", "deny"), limit=2)
    assert [one.job_id for one in found.changed] == jobs[:1:-1], "the newest jobs"
    rig.clock.advance(timedelta(days=6).total_seconds())
    assert (await replay(rig.db, policy(""), days=70)).jobs == 4


async def test_jobs_whose_rows_are_gone_are_unknown(rig: Rig) -> None:
    job = await rig.submit(MAIL, correlation_id="c")
    record = (
        "INSERT INTO windlass.audit (no, at, event, job_id, payload, hash)"
        " VALUES ($1, windlass.clock(), 'job_submitted', $2, '{}', '')"
    )
    for no, of in enumerate((job, rig.ids.new(), rig.ids.new()), 1):
        await rig.db.run(lambda connection, no=no, of=of: connection.execute(record, no, of))
    found = await replay(rig.db, policy(""))
    assert (found.jobs, found.unknown) == (1, 2)


async def replayed(rig: Rig, **given: Any) -> tuple[int | None, list[tuple[str, str, int]]]:
    no, found = await inquiry.replayed(rig.db, Policies(Seconds()), **given)
    return no, cells(found)


async def test_documents_are_replayed_as_a_publish_would_put_them_in_force(rig: Rig) -> None:
    allow, deny = "default_decision: allow", "default_decision: deny"
    tenant = "tier: workflow\nselector: {workflow_id: mail}\nrules: [{id: stop, decision: deny}]"
    job = await rig.submit(MAIL)
    await allowed(rig, job)
    with pytest.raises(NotFound):
        await replayed(rig)
    await publish(rig.db, {"main": allow}, by="ann", untested="a test")
    await publish(rig.db, {"main": deny}, by="ann", untested="a test")
    assert await replayed(rig) == (2, [("allow", "deny", 1)])
    assert await replayed(rig, no=1) == (1, [("allow", "allow", 1)])
    assert await replayed(rig, documents={"main": allow}) == (None, [("allow", "allow", 1)])
    assert await replayed(rig, documents={"main": allow, "mail": tenant}) == (None, [("allow", "deny", 1)])
    with pytest.raises(BadPolicy, match="tier global"):
        await replayed(rig, documents={"mail": tenant}, is_whole=True)
    with pytest.raises(BadInput):
        await replayed(rig, documents={"main": allow}, no=1)
    with pytest.raises(NotFound):
        await replayed(rig, no=9)
