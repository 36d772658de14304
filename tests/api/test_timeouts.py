"""A job whose step used up its time, as callers see it over HTTP."""

from __future__ import annotations

import asyncio

import windlass as wl
from tests.api.rig import Rig
from windlass.app.service import serving


@wl.step(timeout="100ms", retry=wl.Retry(max_attempts=2, base_s=0.01))
async def dawdle() -> None:
    await asyncio.Event().wait()


@wl.recipe
def slow():  # type: ignore[no-untyped-def]
    return dawdle()


app = wl.App()
app.add([slow])


async def test_a_step_that_outran_its_limit_makes_the_job_timeout(api: Rig) -> None:
    await api.windlass.register(*app.recipes.values())
    job = await api.submit("slow")
    async with serving(api.windlass, app):
        await api.ended(job)
    document = (await api.user.get(f"/jobs/{job}")).json()
    assert (document["status"], document["failed_step"]) == ("TIMEOUT", "dawdle")
    assert document["error"]["code"] == "attempt_timeout"
    assert [row["attempt"] for row in (await api.user.get(f"/jobs/{job}/steps")).json()["items"]] == [2]
    for query in ("status=TIMEOUT", "failed_step=dawdle"):
        assert [one["job_id"] for one in (await api.user.get(f"/jobs?{query}")).json()["items"]] == [job], query
    [kind] = (await api.user.get("/dead-letters")).json()["items"]
    assert (kind["code"], kind["count"]) == ("attempt_timeout", 1)
    again = await api.user.post(f"/dead-letters/{kind['fingerprint']}/redrive", json={"dry_run": False})
    assert (again.status_code, [one["job_id"] for one in again.json()["done"]]) == (200, [job]), again.text
    assert (await api.user.get("/dead-letters")).json()["items"] == []
