"""Tracebacks name the operator's paths: admins see them, callers and webhooks only if the setting says so."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import windlass as wl
from tests.api.rig import Rig, rig
from windlass.app.service import serving
from windlass.core.states import JobState
from windlass.outbound.webhook_sender import document

FRAME = re.compile(r'File \\*"')


@wl.step(retry=wl.Retry(max_attempts=1))
def stumble() -> int:
    raise ValueError("the stone")


@wl.recipe
def walk():  # type: ignore[no-untyped-def]
    return stumble()


app = wl.App()
app.add([walk])


async def failed(api: Rig) -> str:
    async with serving(api.windlass, app):
        job_id = await api.submit("walk")
        await api.ended(job_id)
    return job_id


async def seen(api: Rig, client: Any, job_id: str) -> dict[str, str]:
    """What a client is shown of the job, by path."""
    paths = ("", "/events", "/steps", "/steps/0", "/graph", "/stream")
    found = {path: (await client.get(f"/jobs/{job_id}{path}")).text for path in paths}
    found["list"] = (await client.get("/jobs")).text
    return found


async def test_a_caller_sees_the_class_and_the_message_an_admin_the_traceback(api: Rig) -> None:
    job_id = await failed(api)
    mine = await seen(api, api.user, job_id)
    for path in ("", "/events", "/steps", "/steps/0"):
        assert "ValueError" in mine[path] and "the stone" in mine[path], path
    # In JSON the quote is escaped, in JSON within JSON the escape too.
    leaks = [path for path, text in mine.items() if FRAME.search(text) or "test_tracebacks" in text]
    assert leaks == [], mine[leaks[0]]
    admins = await seen(api, api.admin, job_id)
    assert "test_tracebacks.py" in admins["/steps/0"] and "test_tracebacks.py" in admins[""]
    # A stream is one for all who follow.
    assert "test_tracebacks.py" not in admins["/stream"]


async def test_with_the_setting_everybody_sees_it(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, expose_tracebacks=True) as api:
        job_id = await failed(api)
        mine = await seen(api, api.user, job_id)
        assert all("test_tracebacks.py" in mine[path] for path in ("", "/events", "/steps/0", "/stream"))


@pytest.mark.parametrize("is_exposed", [False, True])
def test_a_webhook_tells_the_class_and_the_message(is_exposed: bool) -> None:
    error = {"code": "failed", "message": "the stone", "kind": "ValueError", "detail": '  File "/srv/app.py", line 1\n'}
    row = {"state": JobState.FAILED, "job_id": "x", "recipe": "walk", "labels": None, "error": json.dumps(error)}
    row |= {"created_at": datetime.now(UTC), "finished_at": datetime.now(UTC)}
    told = json.loads(document(row, has_tracebacks=is_exposed))["data"]["error"]
    assert ("detail" in told) is is_exposed
    assert (told["kind"], told["message"]) == ("ValueError", "the stone")
