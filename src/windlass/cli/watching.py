"""Watches a job: yields a snapshot after each change, and its events with the names of their steps."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from windlass.cli.picture import boxes_of_job
from windlass.cli.snapshot import Snapshot
from windlass.client.async_client import AsyncClient
from windlass.core.errors import NotFound, Unavailable

# The shortest time between two snapshots, and the longest time while no event arrives.
REDRAW_S = 0.3
SILENCE_S = 5.0


async def snapshot(client: AsyncClient, job_id: UUID) -> Snapshot:
    """Return the job and its graph as they are now."""
    handle = client.job(job_id)
    view, graph = await handle.view(), await handle.graph()
    # This clock serves only the durations on the screen; no decision depends on it.
    now = datetime.now(UTC)
    return Snapshot(view, boxes_of_job(graph["nodes"], now), now)


async def snapshots(client: AsyncClient, job_id: UUID) -> AsyncGenerator[Snapshot, None]:
    """Yield a snapshot after each change; the last snapshot shows the end of the job."""
    changed = asyncio.Event()
    listener = asyncio.create_task(_listen(client, job_id, changed))
    try:
        while True:
            changed.clear()
            began_s = time.monotonic()
            found = await snapshot(client, job_id)
            yield found
            if found.is_over:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SILENCE_S):
                    await changed.wait()
            error = listener.exception() if listener.done() else None
            if error is not None and not isinstance(error, Unavailable):
                raise error
            await asyncio.sleep(max(0.0, REDRAW_S - (time.monotonic() - began_s)))
    finally:
        listener.cancel()
        await asyncio.wait([listener])


async def _listen(client: AsyncClient, job_id: UUID, changed: asyncio.Event) -> None:
    try:
        async for _ in client.job(job_id).stream():
            changed.set()
    finally:
        changed.set()


async def events(client: AsyncClient, job_id: UUID, *, follow: bool) -> AsyncIterator[tuple[dict[str, Any], str]]:
    """Yield all events in order, each with its step's name; `follow` also yields future events until the job ends."""
    names: dict[int, str] = {}
    seen = 0
    async for event in _listed(client, job_id, seen):
        seen = event["seq"]
        yield event, await _name(client, job_id, names, event["no"])
    if not follow:
        return
    # A stream omits large payloads, so it only signals when to read further in the list.
    async for told in client.job(job_id).stream(after=seen):
        if told.seq <= seen:
            continue
        async for event in _listed(client, job_id, seen):
            seen = event["seq"]
            yield event, await _name(client, job_id, names, event["no"])


async def _listed(client: AsyncClient, job_id: UUID, after: int) -> AsyncIterator[dict[str, Any]]:
    async for event in client.items(f"/jobs/{job_id}/events", after=after):
        yield event


async def _name(client: AsyncClient, job_id: UUID, names: dict[int, str], no: int | None) -> str:
    if no is None:
        return ""
    if no not in names:
        names |= {one["no"]: step_name(one) async for one in client.items(f"/jobs/{job_id}/steps")}
    return names.get(no, f"#{no}")


def step_name(step: dict[str, Any]) -> str:
    """Return a step's name for people; a child of a fan-out has its number, as `render[2]`."""
    return str(step["step"] if step["index"] is None else f"{step['step']}[{step['index']}]")


async def step_output(client: AsyncClient, job_id: UUID, step: str) -> Any:
    """Return the step's output; for a fan-out, the list of its children's outputs."""
    known: list[str] = []
    async for one in client.items(f"/jobs/{job_id}/steps"):
        if step_name(one) == step:
            return await client.call("GET", f"/jobs/{job_id}/steps/{one['no']}/output")
        if one["index"] is None:
            known.append(one["step"])
    raise NotFound(f"job {job_id} has no step {step}", remedy=f"Its steps are {', '.join(known)}")
