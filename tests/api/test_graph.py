"""A job from the inside: graph, steps, events, reasons."""

from __future__ import annotations

import pytest

from tests.api.rig import Rig
from windlass.core.queue import MAIN_PROCESSING
from windlass.engine import claim, workers


@pytest.mark.covers("SCR-25", "SCR-27", "SCR-28", "SCR-29", "SCR-30", "SCR-48")
async def test_a_graph_before_and_after(api: Rig) -> None:
    job_id = await api.submit("fan", inputs={"many": 4})
    before = (await api.user.get(f"/jobs/{job_id}/graph")).json()
    assert before["ready"] == ["count"]
    assert before["incoming"] == {"count": 0, "double": 1, "total": 1, "boast": 1}
    assert {"source": "double", "target": "total"} in before["edges"]
    assert (before["completed_operations"], before["results"]) == (0, None)
    async with api.working():
        await api.ended(job_id)
    after = (await api.user.get(f"/jobs/{job_id}/graph?results=true")).json()
    assert (after["status"], after["workflow_status"], after["ready"]) == ("COMPLETED", None, [])
    nodes = {node["step"]: node for node in after["nodes"]}
    assert nodes["double"]["fan"] == {"total": 4, "made": 4, "by_status": {"COMPLETED": 4}}
    assert nodes["count"]["complete"] and nodes["count"]["seconds"] is not None
    assert nodes["boast"]["status"] == "SKIPPED"
    assert (after["pending_operations"], after["completed_operations"]) == (0, 8)
    results = after["results"]["steps"]
    assert results["double"] == {"outputs": [0, 2, 4, 6]}
    assert (results["total"], results["boast"]) == ({"outputs": 12}, {"skipped": True})


@pytest.mark.covers("SCR-29")
async def test_a_graph_shows_which_step_runs(api: Rig) -> None:
    job_id, worker = await api.submit("fan", inputs={"many": 4}), api.parts.ids.new()
    await workers.enlist(api.parts.db, worker, host="h", pid=1, queues=[MAIN_PROCESSING], concurrency=1)
    await claim.claim(api.parts.db, worker=worker, queues=[MAIN_PROCESSING], limit=1)
    graph = (await api.user.get(f"/jobs/{job_id}/graph")).json()
    assert [node["step"] for node in graph["nodes"] if node["running"] and node["started_at"]] == ["count"]
    assert [node["step"] for node in graph["nodes"] if node["complete"] or node["failed"]] == []
    assert (graph["workflow_status"], graph["ready"]) == ("RUNNING", [])


async def test_steps_come_in_pages_and_by_name(api: Rig) -> None:
    job_id = await api.run("fan", inputs={"many": 5})
    seen: list[int] = []
    after = -1
    while True:
        page = (await api.user.get(f"/jobs/{job_id}/steps?limit=4&after={after}")).json()
        seen += [step["no"] for step in page["items"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == list(range(9))
    children = (await api.user.get(f"/jobs/{job_id}/steps?step=double")).json()["items"]
    assert [step["index"] for step in children] == [None, 0, 1, 2, 3, 4]
    assert (await api.user.get(f"/jobs/{job_id}/steps?status=skipped")).json()["items"][0]["step"] == "boast"
    assert (await api.user.get(children[3]["links"]["output"])).json() == 4
    assert (await api.user.get(f"/jobs/{job_id}/steps?step=none")).status_code == 404
    for query in ("limit=501", "after=-2", "status=NONE", "after=99999999999"):
        assert (await api.user.get(f"/jobs/{job_id}/steps?{query}")).status_code == 422


async def test_events_are_gapless_and_go_on_after_a_number(api: Rig) -> None:
    job_id = await api.run()
    events = (await api.user.get(f"/jobs/{job_id}/events")).json()
    numbers = [event["seq"] for event in events["items"]]
    assert numbers == list(range(1, len(numbers) + 1)) and events["next"] is None
    assert (events["items"][0]["type"], events["items"][-1]["type"]) == ("job.submitted", "job.completed")
    page = (await api.user.get(f"/jobs/{job_id}/events?after=1&limit=1")).json()
    assert ([event["seq"] for event in page["items"]], page["next"]) == ([2], 2)


async def test_why_a_job_stands_still(api: Rig) -> None:
    job_id = await api.submit("fan")
    reasons = (await api.user.get(f"/jobs/{job_id}/why")).json()
    assert [reason["step"] for reason in reasons["items"]] == ["count", "double", "total", "boast"]
    assert "no worker" in reasons["items"][0]["because"]
    assert reasons["is_more"] is False
    one = (await api.user.get(f"/jobs/{job_id}/why?step=total")).json()["items"]
    assert [reason["because"] for reason in one] == ["needs double"]
    assert (await api.user.get(f"/jobs/{job_id}/why?step=none")).status_code == 404


async def test_a_failed_step_is_named(api: Rig) -> None:
    job_id = await api.run("failing", inputs={"reason": "out of film"})
    job = (await api.user.get(f"/jobs/{job_id}")).json()
    assert (job["status"], job["failed_step"]) == ("FAILED", "break_down")
    assert "out of film" in job["error"]["message"]
    node = (await api.user.get(f"/jobs/{job_id}/graph")).json()["nodes"][0]
    assert node["failed"] and node["error"]


async def test_why_stops_at_its_limit(api: Rig, monkeypatch: object) -> None:
    from windlass.views import explain

    monkeypatch.setattr(explain, "REASONS_MAX", 2)  # type: ignore[attr-defined]
    job_id = await api.submit("fan")
    reasons = (await api.user.get(f"/jobs/{job_id}/why")).json()
    assert (len(reasons["items"]), reasons["is_more"]) == (2, True)


async def test_results_of_a_wide_fan_out_come_in_order_and_end_at_a_size(api: Rig, monkeypatch: object) -> None:
    from windlass.views import job_graph

    job_id = await api.run("fan", inputs={"many": 250})
    results = (await api.user.get(f"/jobs/{job_id}/graph?results=true")).json()["results"]["steps"]
    assert results["double"]["outputs"] == [2 * n for n in range(250)]
    monkeypatch.setattr(job_graph, "RESULTS_BYTES_MAX", 300)  # type: ignore[attr-defined]
    answer = await api.user.get(f"/jobs/{job_id}/graph?results=true")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert (await api.user.get(f"/jobs/{job_id}/graph")).status_code == 200
