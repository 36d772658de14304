"""Policies over HTTP: published, rolled back, read, and asked about requests."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from tests.api.hostile.test_hostile import problem
from tests.api.rig import Rig
from windlass import AsyncClient
from windlass.core.caller import Scope
from windlass.core.errors import BadPolicy, NotFound, PolicyChanged
from windlass.policy.reader import read_question

ALLOW = "default_decision: allow\ntests: [{request: {topic: job.a}, expect: {decision: allow}}]\n"
PEOPLE = """
default_decision: allow
rules:
  - id: prod
    match: {topics: ["job.mail.*"], labels: {env: prod}}
    decision: require_approval
    constraints: {budgets: {max_retries: 1}}
    remediations: [{id: test, title: Use the test system, add_labels: {env: test}}]
  - {id: watched, mode: shadow, match: {topics: [job.a]}, decision: deny}
  - {id: busy, match: {topics: [job.b]}, velocity: {max_requests: 5, window_seconds: 60, key: tenant}, decision: deny}
tests:
  - {request: {topic: job.mail.x, labels: {env: prod}}, expect: {decision: require_approval, rule: prod}}
  - {request: {topic: job.a}, expect: {decision: allow, would: [watched]}}
  - {request: {topic: job.b}, counts: {busy: 5}, expect: {decision: deny, rule: busy}}
"""
MAIL = {"topic": "job.mail.x", "labels": {"env": "prod"}, "job_id": "j1"}


def wish(text: str, **more: Any) -> dict[str, Any]:
    return {"documents": [{"name": "main", "text": text}], **more}


async def test_nothing_is_in_force_at_first(api: Rig) -> None:
    assert (await api.admin.get("/policy")).json() == {
        "version": 0, "floor": 0, "is_gated": False, "problem": None, "in_force": None,
    }  # fmt: skip
    assert (await api.admin.get("/policy/snapshots")).json() == {"items": [], "next": None}
    answer = (await api.admin.post("/policy/evaluate", json={"request": MAIL})).json()
    assert (answer["decision"], answer["rule_id"], answer["version"]) == ("deny", "windlass:no_policy", 0)


async def test_a_policy_is_published_read_and_rolled_back(api: Rig) -> None:
    first = await api.admin.post("/policy/publish", json=wish(ALLOW, note="the first day"))
    assert first.status_code == 200, first.text
    told = first.json()
    assert (told["version"], told["is_new"], told["before"], told["floor"]) == (1, True, 0, 1)
    assert (told["published_by"], told["note"], told["documents"]) == ("admin", "the first day", ["main"])
    again = (await api.admin.post("/policy/publish", json=wish(ALLOW))).json()
    assert (again["version"], again["is_new"]) == (1, False)
    await api.admin.post("/policy/publish", json=wish(PEOPLE, expected=1))
    assert (await api.admin.get("/policy")).json()["version"] == 2, "the process knows it at once"
    back = (await api.admin.post("/policy/rollback", json={"version": 1})).json()
    assert (back["version"], back["rollback_of"], back["hash"]) == (3, 1, told["hash"])
    shown = (await api.admin.get("/policy/snapshots/2")).json()
    assert shown["texts"] == [{"name": "main", "text": PEOPLE}]
    page = (await api.admin.get("/policy/snapshots", params={"limit": 2})).json()
    assert ([one["version"] for one in page["items"]], page["next"]) == ([3, 2], 2)
    rest = (await api.admin.get("/policy/snapshots", params={"before": 2})).json()
    assert ([one["version"] for one in rest["items"]], rest["next"]) == ([1], None)


async def test_a_publish_names_its_key_and_its_request_in_the_audit(api: Rig) -> None:
    key = await api.key("clerk", scopes=frozenset({Scope.POLICY_WRITE}))
    async with api.client(key) as clerk:
        answer = await clerk.post("/policy/publish", json=wish(ALLOW), headers={"X-Request-ID": "r-1"})
        assert answer.status_code == 200, answer.text
    row = await api.parts.db.run(
        lambda connection: connection.fetchrow(
            "SELECT caller, payload FROM windlass.audit_notes WHERE event = 'policy_published'"
        )
    )
    payload = json.loads(row["payload"])
    assert (row["caller"], payload["key"], payload["request_id"]) == ("clerk", key.split("_")[1], "r-1")


async def test_what_cannot_be_published_is_refused(api: Rig) -> None:
    await api.admin.post("/policy/publish", json=wish(ALLOW))
    assert problem(await api.admin.post("/policy/publish", json=wish("tier: no")), 422)["code"] == "bad_policy"
    failing = ALLOW.replace("{decision: allow}", "{decision: deny}")
    refused = problem(await api.admin.post("/policy/publish", json=wish(failing)), 422)
    assert "expected deny, found allow" in refused["detail"]
    changed = problem(await api.admin.post("/policy/publish", json=wish(PEOPLE, expected=7)), 409)
    assert changed["code"] == "policy_changed"
    twice = {"documents": [{"name": "a", "text": ALLOW}, {"name": "a", "text": PEOPLE}]}
    problem(await api.admin.post("/policy/publish", json=twice), 422)
    problem(await api.admin.post("/policy/rollback", json={"version": 9}), 404)
    problem(await api.admin.get("/policy/snapshots/9"), 404)
    assert (await api.admin.get("/policy")).json()["version"] == 1


async def test_a_request_is_judged_and_explained(api: Rig) -> None:
    await api.admin.post("/policy/publish", json=wish(PEOPLE))
    for how in ("evaluate", "simulate"):
        answer = (await api.admin.post(f"/policy/{how}", json={"request": MAIL})).json()
        assert (answer["decision"], answer["rule_id"], answer["version"]) == ("require_approval", "prod", 1)
        assert answer["approval_ref"] == "j1"
        assert answer["constraints"] == {"budgets": {"max_retries": 1}}
        assert answer["enforced"] == {"max_retries": "engine"}
        assert [one["id"] for one in answer["remediations"]] == ["test"]
        assert answer["snapshot"] == (await api.admin.get("/policy")).json()["in_force"]["hash"]
    shadow = (await api.admin.post("/policy/simulate", json={"request": {"topic": "job.a"}})).json()
    assert (shadow["decision"], [one["rule_id"] for one in shadow["would"]]) == ("allow", ["watched"])
    told = (await api.admin.post("/policy/explain", json={"request": {"topic": "job.b"}})).json()
    fates = {one["rule"]: (one["fate"], one["condition"]) for one in told["documents"][0]["rules"]}
    assert fates == {"prod": ("fails", "topics"), "watched": ("fails", "topics"), "busy": ("counts", "velocity")}
    assert (told["decision"], told["approval_ref"]) == ("allow", None)
    output = {"edge": "output", "topic": "job.a", "content": {"findings": []}}
    assert (await api.admin.post("/policy/simulate", json={"request": output})).json()["decision"] == "allow"


async def test_a_simulation_counts_velocity_and_is_not_counted(api: Rig) -> None:
    busy = """
        default_decision: allow
        rules:
          - id: busy
            match: {topics: [job.hello]}
            velocity: {max_requests: 2, window_seconds: 3600, key: tenant}
            decision: deny
    """
    await api.admin.post("/policy/publish", json=wish(textwrap.dedent(busy), untested="a test"))

    async def decisions() -> list[str]:
        asked = {"request": {"recipe": "hello", "topic": "job.hello"}}
        answers = [await api.admin.post(f"/policy/{how}", json=asked) for how in ("evaluate", "simulate", "explain")]
        return [answer.json()["decision"] for answer in answers]

    await api.submit()
    for _ in range(3):
        assert await decisions() == ["allow", "allow", "allow"]
    await api.submit()
    assert await decisions() == ["allow", "deny", "deny"]
    refused = await api.user.post("/jobs", json={"recipe": "hello"})
    assert refused.status_code == 403, "the simulation told the truth"


async def test_an_earlier_version_may_be_asked(api: Rig) -> None:
    await api.admin.post("/policy/publish", json=wish(PEOPLE))
    await api.admin.post("/policy/publish", json=wish(ALLOW))
    answers = [
        (await api.admin.post("/policy/evaluate", json={"request": MAIL, "version": no})).json() for no in (1, 2)
    ]
    assert [(one["decision"], one["version"]) for one in answers] == [("require_approval", 1), ("allow", 2)]
    problem(await api.admin.post("/policy/evaluate", json={"request": MAIL, "version": 3}), 404)


@pytest.mark.parametrize("request_", [{"topc": "job.a"}, {"topic": 7}, {"labels": {"a": 1}}, {"edge": "never"}])
async def test_a_request_that_cannot_be_read_is_refused(api: Rig, request_: dict[str, Any]) -> None:
    refused = problem(await api.admin.post("/policy/explain", json={"request": request_}), 422)
    assert refused["code"] == "bad_policy"


async def test_past_jobs_are_judged_again(api: Rig) -> None:
    job = await api.submit()
    await api.admin.post("/policy/publish", json=wish(ALLOW))
    deny = {"documents": [{"name": "main", "text": "default_decision: deny"}]}
    told = (await api.admin.post("/policy/replay", json=deny)).json()
    assert told["matrix"] == [{"before": "not_judged", "after": "deny", "count": 1, "is_looser": False}]
    assert [(one["job_id"], one["rule_id"]) for one in told["changed"]] == [(job, "windlass:default")]
    assert (told["jobs"], told["unknown"], told["version"]) == (1, 0, None)
    told = (await api.admin.post("/policy/replay", json={})).json()
    assert (told["version"], told["changed"]) == (1, [])
    problem(await api.admin.post("/policy/replay", json={"version": 9}), 404)
    problem(await api.admin.post("/policy/replay", json={**deny, "version": 1}), 422)
    problem(await api.admin.post("/policy/replay", json={"days": 8}), 422)


async def test_shadow_rules_are_shown_with_counts_and_examples(api: Rig) -> None:
    assert (await api.admin.get("/policy/shadow")).json() == {"minutes": [], "examples": []}
    await api.admin.post("/policy/publish", json=wish(PEOPLE))
    current = await api.parts.policies.current(api.parts.db)
    current.judge(read_question({"topic": "job.a", "tenant": "acme", "job_id": "j1"}))
    await api.parts.policies.shadows.flush(api.parts.db)
    told = (await api.admin.get("/policy/shadow", params={"minutes": 5})).json()
    assert [(one["rule_id"], one["decision"], one["count"]) for one in told["minutes"]] == [("watched", "deny", 1)]
    [example] = told["examples"]
    assert (example["topic"], example["tenant"], example["job_id"], example["version"]) == ("job.a", "acme", "j1", 1)
    problem(await api.admin.get("/policy/shadow", params={"minutes": 0}), 422)


async def test_a_process_that_cannot_use_the_policy_is_not_ready(api: Rig) -> None:
    await api.admin.post("/policy/publish", json=wish(ALLOW))
    ready = await api.stranger.get("/readyz")
    assert ready.json()["parts"]["policy"] == "ok", ready.text
    broken = 'UPDATE windlass.policies SET documents = \'[{"name": "main", "text": "secret_key: 1"}]\''
    await api.parts.db.run(lambda connection: connection.execute(broken))
    await api.parts.db.run(lambda connection: connection.execute("UPDATE windlass.policies SET no = 2"))
    await api.parts.db.run(lambda connection: connection.execute("UPDATE windlass.policy_now SET no = 2"))
    api.parts.policies.expire()
    state = (await api.admin.get("/policy")).json()
    assert state["problem"].startswith("version 2 cannot be used") and "secret_key" in state["problem"]
    not_ready = await api.stranger.get("/readyz")
    assert not_ready.status_code == 503
    assert not_ready.json()["parts"]["policy"] == "version 2 cannot be used, so every job is denied"


async def test_a_client_publishes_and_asks(api: Rig) -> None:
    async with AsyncClient(api.url, api_key=api.admin_key) as client:
        published = await client.publish_policy({"main": PEOPLE}, note="the first day", expected=0)
        assert (published.version, published.is_new, published.note) == (1, True, "the first day")
        assert not (await client.publish_policy({"main": PEOPLE})).is_new
        with pytest.raises(PolicyChanged):
            await client.publish_policy({"main": ALLOW}, expected=7)
        with pytest.raises(BadPolicy):
            await client.publish_policy({"main": "tier: no"})
        await client.publish_policy({"other": ALLOW}, only=True)
        assert (await client.rollback_policy(1, note="back")).rollback_of == 1
        assert [one.version for one in await client.policy_versions()] == [3, 2, 1]
        assert len(await client.policy_versions(limit=1)) == 1
        assert [one.name for one in (await client.policy_version(2)).texts] == ["other"]
        with pytest.raises(NotFound):
            await client.policy_version(9)
        assert (await client.policy())["version"] == 3
        assert (await client.evaluate_policy(MAIL))["rule_id"] == "prod"
        assert (await client.simulate_policy(MAIL, version=2))["decision"] == "allow"
        assert (await client.explain_policy(MAIL))["documents"][0]["rules"][0]["fate"] == "decides"
        assert (await client.replay_policy({"main": ALLOW}, limit=10))["jobs"] == 0
        assert (await client.policy_shadow())["minutes"] == []
