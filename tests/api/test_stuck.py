"""`updated_at` and `stuck_for` in the documents of jobs."""

from __future__ import annotations

import pytest

from tests.api.rig import Rig

BACK = "UPDATE windlass.events SET at = at - interval '42 minutes' WHERE job_id = $1::text::uuid"


@pytest.mark.covers("CIX-49")
async def test_a_job_that_does_not_change_tells_for_how_long(api: Rig) -> None:
    job = await api.submit()
    fresh = (await api.user.get(f"/jobs/{job}")).json()
    assert (fresh["updated_at"], fresh["stuck_for"]) == (fresh["created_at"], None)
    await api.windlass.db.run(lambda connection: connection.execute(BACK, job))
    assert (await api.user.get(f"/jobs/{job}")).json()["stuck_for"] == 42 * 60
    [listed] = (await api.user.get("/jobs")).json()["items"]
    assert listed["stuck_for"] == 42 * 60
    paused = (await api.user.post(f"/jobs/{job}/pause")).json()
    assert paused["updated_at"] > paused["created_at"] and paused["stuck_for"] is None
