"""The undo of a job over HTTP: looked at, allowed, and kept from other callers."""

from __future__ import annotations

import pytest

from tests.api.rig import Rig
from windlass.core.plan import Node, Plan, Undo, UndoMode
from windlass.core.retry import Retry
from windlass.engine import recipes

ONCE = Retry(max_attempts=1)
ASKS = Plan(
    "asks",
    (
        Node("a", run="greet", with_={"name": "ada"}, undo=Undo("greet")),
        Node("b", run="break_down", needs=("a",), with_={"reason": "no"}, retry=ONCE),
    ),
    undo=UndoMode.ASK,
)


@pytest.mark.covers("COR-41")
async def test_a_person_looks_at_an_undo_and_allows_it(api: Rig) -> None:
    await recipes.register(api.parts.db, ASKS)
    job_id = await api.run("asks")
    job = (await api.user.get(f"/jobs/{job_id}")).json()
    assert (job["status"], job["effects"]) == ("FAILED", "standing")
    plan = (await api.user.get(f"/jobs/{job_id}/undo")).json()
    [step] = plan["steps"]
    assert (plan["undo"], plan["effects"], plan["undo_job_id"]) == ("ask", "standing", job["undo_job_id"])
    assert (step["step"], step["run"], step["status"]) == ("a", "greet", "HELD")
    started = await api.user.post(f"/jobs/{job_id}/undo")
    assert (started.status_code, started.json()["is_new"]) == (202, True)
    assert started.json()["undo_job_id"] == job["undo_job_id"]
    assert (await api.user.post(f"/jobs/{job_id}/undo")).json()["is_new"] is False
    async with api.working():
        await api.ended(job["undo_job_id"])
    plan = (await api.user.get(f"/jobs/{job_id}/undo")).json()
    assert (plan["effects"], [step["status"] for step in plan["steps"]]) == ("undone", ["COMPLETED"])


async def test_an_undo_of_nothing_is_refused(api: Rig) -> None:
    job_id = await api.run("failing")
    refused = await api.user.post(f"/jobs/{job_id}/undo")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
    assert (await api.user.get(f"/jobs/{job_id}/undo")).json()["steps"] == []
