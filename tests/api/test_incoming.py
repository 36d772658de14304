"""Webhooks of providers over HTTP: who is believed, what is done once, what is kept."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.hostile.test_hostile import problem
from tests.api.outside import (
    SECRETS,
    VARIABLE,
    HookAdapter,
    ending,
    handed_over,
    park,
    parked,
    providers_file,
    signed,
    step,
)
from tests.api.rig import Rig, rig
from windlass.core.bell import PollDue
from windlass.core.states import StepState
from windlass.engine import external
from windlass.pure.signature import SignatureProfile, sign

OLD = b"old secret that is going away!!!"


@pytest.fixture
async def api(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setenv(VARIABLE, SECRETS)
    async with rig(dsn, tmp_path, providers=providers_file(tmp_path)) as made:
        yield made


async def tell(
    api: Rig, said: Any, id: str, *, secret: bytes | None = None, at_s: float | None = None
) -> httpx.Response:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    given = {} if secret is None else {"secret": secret}
    headers = signed(body, time.time(), id, **given)
    return await api.stranger.post("/webhooks/hooks?key=wl-x&app=y", content=body, headers=headers)


def done(external_id: str, output: Any = "a picture", **more: Any) -> dict[str, Any]:
    return {"id": external_id, "status": "SUCCEEDED", "output": output, **more}


async def status_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["status"])


@pytest.mark.covers("SCR-57", "SCR-61")
async def test_a_webhook_ends_the_step_once(api: Rig) -> None:
    one = await parked(api, "ext-1")
    assert await status_of(await tell(api, {"id": "ext-1", "status": "RUNNING", "pct": 40}, "m0")) == "noted"
    assert (await step(api, one.job_id)).progress["pct"] == 40
    assert await status_of(await tell(api, done("ext-1"), "m1")) == "applied"
    assert await status_of(await tell(api, done("ext-1"), "m1")) == "replayed"
    assert await status_of(await tell(api, done("ext-1", "another"), "m2")) == "late"
    view = await step(api, one.job_id)
    assert (view.state, view.output) == (StepState.COMPLETED, "a picture")
    events = (await ending(api, one.job_id))["step.completed"]
    assert [event.source for event in events] == ["webhook"]


async def test_a_failure_is_the_steps_own(api: Rig) -> None:
    one = await parked(api, "ext-1")
    assert await status_of(await tell(api, {"id": "ext-1", "status": "FAILED", "fault": "no paint"}, "m1")) == "applied"
    view = await step(api, one.job_id)
    assert (view.state, view.error["code"]) == (StepState.FAILED, "out_of_paint")


async def test_unknown_ends_nothing(api: Rig) -> None:
    one = await parked(api, "ext-1")
    await tell(api, {"id": "ext-1", "status": "UNKNOWN"}, "m1")
    assert (await step(api, one.job_id)).state is StepState.PARKED


async def test_a_replay_with_another_body_changes_nothing(api: Rig) -> None:
    one = await parked(api, "ext-1")
    await parked(api, "ext-2")
    assert await status_of(await tell(api, {"id": "ext-2", "status": "RUNNING"}, "m1")) == "noted"
    assert await status_of(await tell(api, done("ext-1"), "m1")) == "replayed"
    assert (await step(api, one.job_id)).state is StepState.PARKED


@pytest.mark.covers("SCR-61")
async def test_who_is_not_believed(api: Rig) -> None:
    one = await parked(api, "ext-1")
    body = json.dumps(done("ext-1")).encode()
    now = time.time()
    good = signed(body, now, "m1")
    wrong: list[tuple[bytes, dict[str, str]]] = [
        (body, {}),
        (body + b" ", good),
        (body, good | {"webhook-id": "m2"}),
        (body, good | {"webhook-timestamp": str(int(now) + 1)}),
        (body, good | {"webhook-signature": "v1,"}),
        (body, signed(body, now, "m1", b"x" * 32)),
        (body, signed(body, now - 302, "m1")),
        (body, signed(body, now + 302, "m1")),
        (body, sign(SignatureProfile.GITHUB, b"x" * 32, body, now_s=now)),
        (b"", good),
    ]
    told = []
    before = HookAdapter.read
    for content, headers in wrong:
        answer = await api.stranger.post("/webhooks/hooks", content=content, headers=headers)
        said = problem(answer, 401)
        assert said["code"] == "bad_signature"
        told.append((said["detail"], said["hint"]))
    assert len(set(told)) == 1
    assert HookAdapter.read == before, "what is not believed is not read"
    assert (await step(api, one.job_id)).state is StepState.PARKED
    # A key does not help, and is not asked for.
    answer = await api.admin.post("/webhooks/hooks", content=body, headers={"webhook-id": "m1"})
    assert problem(answer, 401)["code"] == "bad_signature"
    events = (await api.admin.get("/webhooks/hooks/events")).json()["items"]
    assert events == [], "what is not believed is not kept"
    assert await status_of(await tell(api, done("ext-1"), "m1", secret=OLD)) == "applied", "an older secret is good too"


async def test_a_provider_that_is_not_there_gets_404(api: Rig) -> None:
    for name in ("nobody", "mute", "HOOKS", "%00", "hooks%2F", "x" * 300, "%2e%2e", "%ff", "hooks "):
        for body in (b"{}", b"x" * 5_000_000):
            answer = await api.stranger.post(f"/webhooks/{name}", content=body, headers=signed(body, time.time(), "m1"))
            problem(answer, 404)
    problem(await api.stranger.get("/webhooks/hooks"), 405)


async def test_a_body_over_the_limit_is_refused(api: Rig) -> None:
    answer = await tell(api, b"x" * (api.parts.settings.body_max_bytes + 1), "m1")
    assert problem(answer, 413)["code"] == "too_large"


UNREADABLE = [
    b"", b"not json", b"null", b"[]", b"{}", b'{"id": 1}', b'{"id": "x"}', b'{"id": "x", "status": "HAPPY"}',
    b'{"id": ["x"], "status": "SUCCEEDED"}', b'{"id": null, "status": "SUCCEEDED"}', b"[" * 100_000, b"\xff\xfe",
    b'{"id": "' + b"x" * 5_000 + b'", "status": "SUCCEEDED"}', b'{"id": "a\\u0000b", "status": "SUCCEEDED"}',
]  # fmt: skip


async def test_what_is_signed_and_cannot_be_read_is_kept(api: Rig) -> None:
    for number, body in enumerate(UNREADABLE):
        assert await status_of(await tell(api, body, f"m{number}")) == "kept", body
        assert await status_of(await tell(api, body, f"m{number}")) == "replayed", body
        [event, *_] = (await api.admin.get("/webhooks/hooks/events", params={"status": "WAITING"})).json()["items"]
        assert (event["id"], event["external_id"], event["job_id"]) == (f"m{number}", None, None)
        again = await api.admin.post(f"/webhooks/hooks/events/m{number}/apply")
        assert again.status_code in (200, 422), again.text


async def test_a_webhook_before_its_submit_is_recorded_is_not_lost(api: Rig) -> None:
    one = await handed_over(api)
    assert await status_of(await tell(api, done("ext-1"), "m1")) == "kept"
    assert await park(api, one, "ext-1")
    await api.windlass.loops().run_until_idle()
    view = await step(api, one.job_id)
    assert (view.state, view.output) == (StepState.COMPLETED, "a picture")
    assert len((await ending(api, one.job_id))["step.completed"]) == 1


async def test_an_event_that_was_kept_can_be_applied_again(api: Rig) -> None:
    one = await handed_over(api)
    large = "x" * 300_000
    assert await status_of(await tell(api, done("ext-1", large), "m/1 ?")) == "kept"
    assert await park(api, one, "ext-1")
    problem(await api.user.post("/webhooks/hooks/events/m%2F1%20%3F/apply"), 403)
    problem(await api.admin.post("/webhooks/hooks/events/m2/apply"), 404)
    assert await status_of(await api.admin.post("/webhooks/hooks/events/m%2F1%20%3F/apply")) == "applied"
    assert await status_of(await api.admin.post("/webhooks/hooks/events/m%2F1%20%3F/apply")) == "late"
    view = await step(api, one.job_id)
    assert view.state is StepState.COMPLETED
    assert list(view.output) == ["$artifact"]
    [note] = [
        record
        for record in await audit_notes(api)
        if record["event"] == "provider_event_applied" and record["payload"]["event"] == "m/1 ?"
    ][:1]
    assert note["payload"]["provider"] == "hooks"


async def audit_notes(api: Rig) -> list[dict[str, Any]]:
    async with api.parts.db.connection() as connection:
        rows = await connection.fetch("SELECT event, payload FROM windlass.audit_notes ORDER BY id")
    return [{"event": row["event"], "payload": json.loads(row["payload"])} for row in rows]


async def test_a_large_output_goes_to_the_artifact_store(api: Rig) -> None:
    one = await parked(api, "ext-1")
    large = "x" * 300_000
    assert await status_of(await tell(api, done("ext-1", large), "m1")) == "applied"
    assert list((await step(api, one.job_id)).output) == ["$artifact"]
    answer = await api.user.get(f"/jobs/{one.job_id}/steps/0/output")
    assert answer.json() == large


async def test_an_output_cannot_name_what_is_stored_elsewhere(api: Rig) -> None:
    for name in ("../../../../../../etc/passwd", "a" * 64, "/etc/passwd"):
        one = await parked(api, f"ext-{name}")
        forged = {"$artifact": {"sha256": name, "size": 20}}
        spelled = json.dumps(done(f"ext-{name}", forged)).replace("$", "\\u0024").encode()
        assert await status_of(await tell(api, spelled, f"m-{name}")) == "applied"
        assert (await step(api, one.job_id)).output != forged
        answer = await api.user.get(f"/jobs/{one.job_id}/steps/0/output", headers={"Range": "bytes=0-1000"})
        assert answer.json() == forged, "it is a value as any other"


async def test_many_at_once_share_commits_and_each_has_its_effect(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ones = [await parked(api, f"ext-{number}") for number in range(40)]
    sizes: list[int] = []
    answer = external.answer

    async def counted(db: Any, answers: Any, **more: Any) -> Any:
        sizes.append(len(answers))
        return await answer(db, answers, **more)

    monkeypatch.setattr(external, "answer", counted)
    # Each three times at once: the same message, and another one with the same news.
    told = await asyncio.gather(
        *(
            tell(api, done(f"ext-{number}", number), f"{kind}{number}")
            for number in range(40)
            for kind in ("m", "m", "n")
        )
    )
    counts: dict[str, int] = {}
    for one in told:
        counts[await status_of(one)] = counts.get(await status_of(one), 0) + 1
    assert counts == {"applied": 40, "replayed": 40, "late": 40}
    assert max(sizes) > 1
    for number, one in enumerate(ones):
        view = await step(api, one.job_id)
        assert (view.state, view.output) == (StepState.COMPLETED, number)
        assert len((await ending(api, one.job_id))["step.completed"]) == 1


async def test_one_that_breaks_does_not_take_its_neighbours_with_it(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        await parked(api, f"ext-{number}")
    answer = external.answer

    async def picky(db: Any, answers: Any, **more: Any) -> Any:
        if any(one.external_id == "ext-3" for one in answers):
            raise RuntimeError("not this one")
        return await answer(db, answers, **more)

    monkeypatch.setattr(external, "answer", picky)
    told = await asyncio.gather(*(tell(api, done(f"ext-{number}"), f"m{number}") for number in range(6)))
    assert [one.status_code for one in told] == [200, 200, 200, 500, 200, 200]
    monkeypatch.undo()
    assert await status_of(await tell(api, done("ext-3"), "m3")) == "applied", "it was not stored, so it is no replay"


async def test_a_webhook_that_says_only_that_there_is_news_has_the_provider_asked_now(api: Rig) -> None:
    one = await parked(api, "ext-1")
    bells: list[PollDue] = []
    await api.parts.db.listen(PollDue, bells.append)
    bells.clear()  # the look at the start
    assert await external.due(api.parts.db, 10, 60.0, provider="hooks") == []
    body = json.dumps({"id": "ext-1", "status": "RUNNING"}).encode()
    for expected in ("noted", "replayed"):
        headers = signed(body, time.time(), "m1")
        answer = await api.stranger.post("/webhooks/hooks?look=yes", content=body, headers=headers)
        assert await status_of(answer) == expected
        [work] = await external.due(api.parts.db, 10, 60.0, provider="hooks")
        assert (work.key.job_id, work.external_id) == (one.job_id, "ext-1")
    async with asyncio.timeout(60):
        while not bells:
            await asyncio.sleep(0.01)
    [kept] = await kept_headers(api)
    assert kept[":query"] == "look=yes"
    assert await status_of(await api.admin.post("/webhooks/hooks/events/m1/apply")) == "noted"


async def kept_headers(api: Rig) -> list[dict[str, str]]:
    async with api.parts.db.connection() as connection:
        rows = await connection.fetch("SELECT headers FROM windlass.provider_events ORDER BY at")
    return [json.loads(row["headers"]) for row in rows]


async def test_no_credential_is_kept_with_an_event(api: Rig) -> None:
    body = json.dumps(done("ext-1")).encode()
    headers = signed(body, time.time(), "m1") | {"Cookie": "c", "Authorization": "Bearer x", "X-API-Key": "k"}
    assert await status_of(await api.stranger.post("/webhooks/hooks", content=body, headers=headers)) == "kept"
    [kept] = await kept_headers(api)
    assert "webhook-signature" in kept
    assert not {"cookie", "authorization", "x-api-key"} & kept.keys()


async def test_previews_and_costs_come_with_webhooks(api: Rig) -> None:
    one = await parked(api, "ext-1")
    assert await status_of(await tell(api, {"id": "ext-1", "status": "RUNNING", "preview": "small"}, "m0")) == "noted"
    assert (await api.user.get(f"/jobs/{one.job_id}")).json()["status"] == "PREVIEW"
    assert await status_of(await tell(api, {"id": "ext-1", "status": "RUNNING", "pct": 50.0}, "m1")) == "noted"
    assert (await api.user.get(f"/jobs/{one.job_id}")).json()["status"] == "PROCESSING"
    assert await status_of(await tell(api, done("ext-1", cost="0.25"), "m2")) == "applied"
    costs = (await api.user.get(f"/jobs/{one.job_id}/costs")).json()
    assert (costs["total"], costs["items"][0]["step"], costs["items"][0]["provider"]) == ("0.25", "render", "hooks")


async def test_webhooks_are_counted_by_what_became_of_them(api: Rig) -> None:
    await parked(api, "ext-1")
    await tell(api, done("ext-1"), "m1")
    await tell(api, done("ext-1"), "m1")
    await tell(api, done("ext-1"), "m1", secret=b"x" * 32)
    text = (await api.admin.get("/metrics")).text
    for result in ("applied", "replayed", "bad_signature"):
        assert f'windlass_provider_webhooks_total{{provider="hooks",result="{result}"}} 1.0' in text
