"""Whole programs: a handler that starts jobs itself and is completed by token, and a recipe that waits for people."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import windlass as wl
from windlass.access.callbacks import Callbacks
from windlass.access.secret import Secret
from windlass.app.service import serving
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadInput, Conflict
from windlass.core.outcome import Success
from windlass.core.states import JobState
from windlass.engine import callback, signals
from windlass.store.database import Database
from windlass.views import read

SECRET = "a secret of a test, which is long enough"
# How the handlers below reach the installation, as a service elsewhere would by HTTP.
_reached: dict[str, Database] = {}


@wl.step(parks=True, retry=wl.Retry(max_attempts=3, base_s=0, jitter=0))
async def conduct(parts: int, ctx: wl.Context) -> Any:
    """Start the parts and leave; an attempt that breaks off in the middle is made again."""
    for n in range(parts):
        if n == 2 and ctx.attempt == 1:
            raise ConnectionError("broken off in the middle")
        await ctx.spawn(part, {"n": n}, key=f"part {n}")
    await ctx.spawn(finale, {"token": ctx.token, "parts": parts}, key="finale")
    return wl.Parked("the parts", within_s=60)


@wl.step
async def play(n: int) -> int:
    return n * n


@wl.step(retry=wl.Retry(max_attempts=1000, base_s=0.01, factor=1, jitter=0))
async def report(token: str, parts: int) -> str:
    """Tell the conductor, twice, when all parts are done."""
    db = _reached["db"]
    done = [view for view in await read.jobs(db, recipe="part") if view.state is JobState.COMPLETED]
    if len(done) < parts:
        raise wl.Transient("not all parts are done")
    place = Callbacks(Secret.of((SECRET,))).read(token)
    for _ in range(2):
        completed = await callback.complete(db, place, Success(str(len(done))), spread=random.random)
    return str(completed.job_state)


@wl.recipe
def part(n: int):
    return play(n)


@wl.recipe
def finale(token: str, parts: int):
    return report(token, parts)


@wl.recipe
def concert(parts: int):
    return conduct(parts)


@wl.step(concurrency="print:{inputs.user}")
async def publish(text: dict) -> str:
    return f"{text['title']} by {text['by']}"


@wl.recipe
def article(user: str):
    draft = wl.wait_for("written", match={"user": user})
    approved = wl.wait_for("approved", match={"title": draft["title"]}, timeout="2d")
    return publish(draft).when(approved["ok"])


@pytest.fixture
async def windlass(dsn: str, tmp_path: Path) -> AsyncIterator[Windlass]:
    app = wl.App()
    app.add([concert, part, finale, article])
    settings = Settings(home=tmp_path, secret=(SECRET,))
    async with Windlass.connect(dsn, settings=settings) as connected, serving(connected, app):
        _reached["db"] = connected.db
        yield connected


@pytest.mark.covers("SCR-58", "SCR-59")
async def test_a_handler_drives_jobs_of_its_own_and_is_completed_by_token(windlass: Windlass) -> None:
    job = await windlass.submit(concert, parts=4)
    assert await job.result(timeout=60) == 4
    parts = await read.jobs(windlass.db, recipe="part")
    assert len(parts) == 4, "the second attempt found what the first had started"
    assert {view.parent_job for view in parts} == {job.job_id}
    [conductor] = await read.steps(windlass.db, job.job_id)
    assert conductor.attempt == 2


async def test_a_recipe_waits_for_people(windlass: Windlass) -> None:
    db = windlass.db
    job = await windlass.submit(article, user="ada")

    async def told(name: str, body: Any, id: str) -> str:
        return await signals.send(db, job.job_id, name, body, id=id, sender="ada")

    # The approval comes before the step that waits for it.
    assert await told("approved", {"title": "On Engines", "ok": True}, "2") == "kept"
    assert await told("written", {"title": "Other", "user": "bob"}, "0") == "kept"
    written = {"title": "On Engines", "user": "ada", "by": "Ada"}
    assert await told("written", written, "1") in ("delivered", "kept")
    assert await told("written", written, "1") == "already"
    with pytest.raises(Conflict):
        await told("written", {"title": "On Looms", "user": "ada"}, "1")
    assert await job.result(timeout=60) == "On Engines by Ada"


async def test_a_program_tells_its_job(windlass: Windlass) -> None:
    job = await windlass.submit(article, user="ada")
    written = {"title": "On Engines", "user": "ada", "by": "Ada"}
    assert await job.send_event("written", written) in ("delivered", "kept")
    assert await job.send_event("approved", id="early") == "kept", "it does not fit"
    assert await job.send_event("approved", id="early") == "already"
    with pytest.raises(BadInput, match="not JSON"):
        await job.send_event("approved", {"x": object()})
    assert await job.send_event("approved", {"title": "On Engines", "ok": True}, id="mine") in ("delivered", "kept")
    assert await job.result(timeout=60) == "On Engines by Ada"


async def test_many_wait_and_each_is_told_by_its_own(windlass: Windlass) -> None:
    jobs = [await windlass.submit(article, user=f"u{n}") for n in range(20)]

    async def drive(n: int) -> Any:
        db, job = windlass.db, jobs[n]
        body = {"title": f"T{n}", "user": f"u{n}", "by": f"u{n}"}
        sends = [
            signals.send(db, job.job_id, "written", body, id="w", sender="x"),
            signals.send(db, job.job_id, "approved", {"title": f"T{n}", "ok": n % 2 == 0}, id="a", sender="x"),
        ]
        await asyncio.gather(*sends)
        return await job.result(timeout=60)

    results = await asyncio.gather(*(drive(n) for n in range(20)))
    assert results == [f"T{n} by u{n}" if n % 2 == 0 else {"skipped": True} for n in range(20)]
