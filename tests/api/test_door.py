"""A policy denies a job over HTTP: the answer names the job that is kept, and the rule."""

from __future__ import annotations

import pytest

from tests.api.rig import Rig
from windlass.engine import publish
from windlass.engine.door import policies_of

DENY = """
version: "1"
default_decision: allow
rules:
- {id: no-hello, match: {topics: [job.hello]}, decision: deny, reason: greetings are not allowed}
"""


async def put(api: Rig, text: str) -> None:
    await publish.publish(api.windlass.db, {"main": text}, by="op", untested="a test")
    policies_of(api.windlass.db).expire()


@pytest.mark.covers("COR-11", "COR-61")
async def test_a_denied_submit_is_403_with_the_job(api: Rig) -> None:
    await put(api, DENY)
    wish = {"recipe": "hello", "inputs": {"name": "Ada"}, "idempotency_key": "k"}
    answer = await api.user.post("/jobs", json=wish)
    assert answer.status_code == 403, answer.text
    told = answer.json()
    assert (told["code"], told["rule"], told["status"]) == ("safety_denied", "no-hello", 403)
    assert "greetings are not allowed" in told["detail"]
    job = (await api.user.get(f"/jobs/{told['job_id']}")).json()
    assert (job["status"], job["error"]["code"]) == ("DENIED", "safety_denied")
    again = await api.user.post("/jobs", json=wish)
    assert (again.status_code, again.json()["job_id"]) == (403, told["job_id"])


async def test_each_job_of_a_batch_has_its_own_answer(api: Rig) -> None:
    await put(api, DENY)
    wishes = [{"recipe": "hello", "inputs": {"name": "Ada"}}, {"recipe": "large", "inputs": {"size": 1}}]
    answer = await api.user.post("/jobs/batch", json={"jobs": wishes})
    assert answer.status_code == 202, answer.text
    told = answer.json()
    assert (told["accepted"], told["refused"]) == (1, 1)
    assert told["items"][0]["code"] == "safety_denied" and told["items"][0]["rule"] == "no-hello"
    assert told["items"][1]["is_new"] is True


async def test_the_facts_about_the_caller_come_from_its_key(api: Rig) -> None:
    rule = "{id: users, match: {topics: [job.hello]}, when: 'caller.role == \"user\"', decision: deny}"
    await put(api, f'version: "1"\ndefault_decision: allow\nrules:\n- {rule}\n')
    wish = {"recipe": "hello", "inputs": {"name": "Ada"}, "labels": {"role": "admin", "caller.role": "admin"}}
    assert (await api.user.post("/jobs", json=wish)).status_code == 403
