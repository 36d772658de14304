"""Every event of a job has an idempotency key."""

from __future__ import annotations

import pytest

import windlass as wl
from tests.api.rig import Rig
from windlass.app.service import serving


@wl.step(retry=wl.Retry(max_attempts=2, base_s=0.01))
def stumble(ctx: wl.Context) -> int:
    ctx.progress(50, "half")
    if ctx.attempt == 1:
        raise ValueError("once")
    return ctx.attempt


@wl.recipe
def told():  # type: ignore[no-untyped-def]
    return stumble().after(wl.wait_for("go"))


app = wl.App()
app.add([told])


@pytest.mark.covers("SCR-34")
async def test_every_event_has_a_key_that_stays_the_same(api: Rig) -> None:
    await api.windlass.register(*app.recipes.values())
    job = await api.submit("told")
    async with serving(api.windlass, app):
        sent = await api.user.post(f"/jobs/{job}/events", json={"name": "go"}, headers={"Idempotency-Key": "signed-7"})
        assert sent.status_code in (200, 202), sent.text
        await api.ended(job)
    events = (await api.user.get(f"/jobs/{job}/events")).json()["items"]
    keys = [event["idempotency_key"] for event in events]
    assert all(keys) and len(set(keys)) == len(keys) > 8
    by_type = {event["type"]: event["idempotency_key"] for event in events}
    assert by_type["job.submitted"] == f"{job}:1:job.submitted"
    last = events[-2]
    assert (last["type"], last["attempt"]) == ("step.completed", 2)
    assert last["idempotency_key"] == f"{job}:{last['seq']}:step.completed:{last['no']}:2"
    # A sender's own key is kept.
    assert [event["type"] for event in events if event["idempotency_key"] == "signed-7"] == ["step.completed"]
    again = (await api.user.get(f"/jobs/{job}/events?order=desc")).json()["items"]
    assert [event["idempotency_key"] for event in reversed(again)] == keys
