"""Answers requests about jobs from the local database. Each request has one function."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from windlass.cli.local.call import LocalRequest
from windlass.core.errors import BadRequest, WaitTimeout
from windlass.core.states import JobState
from windlass.documents.again import dead_letter_values, rerun_values
from windlass.documents.decision import decisions_values
from windlass.documents.job import bulk_values, job_values, listed_values
from windlass.documents.step import event_values, graph_values, reasons_values, step_values
from windlass.documents.undo import undo_values
from windlass.documents.values import encoded
from windlass.engine import control, redrive, rerun, signals, undo
from windlass.engine.bulk import BULK_MAX
from windlass.pure.cursor import decode_page, encode_page
from windlass.pure.frame import frame
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.artifact import Ref
from windlass.store.plans import plan_of
from windlass.views import dead_letters, explain, job_graph, listing, read
from windlass.views.decisions import decisions as decisions_of
from windlass.views.output_text import output_text
from windlass.views.undo import undo_view

EVENTS_PAGE = 500
# How often a stream polls for new events. A bell announces the end of a job at once.
FOLLOW_S = 0.2
_PAGE = "jobs"


async def submit(call: LocalRequest) -> Any:
    """Submit a job; its options have the same names as in the SDK."""
    wish: dict[str, Any] = {name: value for name, value in call.body.items() if name != "idempotency_key"}
    if "webhook" in wish:
        wish["webhook"] = (wish["webhook"]["url"], wish["webhook"]["secret"])
    job = await call.windlass.submit(wish.pop("recipe"), key=call.key, **wish)
    return {**job_values(await read.job(call.db, job.job_id)), "is_new": job.is_new}


async def jobs(call: LocalRequest) -> Any:
    """Return a page of jobs, the newest first."""
    labels = dict(pair.split("=", 1) for pair in call.all("label"))
    wanted = listing.JobFilter(
        None,
        states=tuple(JobState(name) for name in call.all("status")),
        recipe=call.one("recipe"),
        labels=labels,
        since=call.time("since"),
        until=call.time("until"),
    )
    cursor = call.one("cursor")
    before = None if cursor is None else _before(cursor, wanted.digest())
    page = await listing.page(call.db, wanted, before=before, limit=call.number("limit", listing.PAGE_MAX))
    following = None if page.next is None else encode_page(_PAGE, wanted.digest(), str(page.next))
    return {"items": [listed_values(job, page.doing.get(job.id)) for job in page.jobs], "next": following}


def _before(cursor: str, digest: str) -> UUID:
    try:
        return UUID(decode_page(cursor, _PAGE, digest))
    except ValueError:
        raise BadRequest("the cursor cannot be read", remedy="Send `next` of the last page unchanged") from None


async def job(call: LocalRequest) -> Any:
    """Return one job."""
    return job_values(await call.job())


async def job_input(call: LocalRequest) -> Any:
    """Return the job's inputs."""
    return (await call.job()).input


async def output(call: LocalRequest) -> Any:
    """Return the job's output as JSON text."""
    view = await call.job()
    read.check_output(view)
    plan = await plan_of(call.db, view.plan)
    text = await output_text(call.db, call.windlass.artifacts, shared_evaluator(), view, plan)
    return await text.part(0, text.size)


async def step_output(call: LocalRequest) -> Any:
    """Return a step's output as JSON text; for a fan-out, the list of its children's outputs."""
    await call.job()
    artifacts = call.windlass.artifacts
    held = await job_graph.output_ref(call.db, artifacts, call.job_id, int(call.names["no"]))
    if isinstance(held, bytes):
        return held
    return await artifacts.get(held) if isinstance(held, Ref) else await held.part(0, held.size)


async def graph(call: LocalRequest) -> Any:
    """Return the job's graph."""
    view = await call.job()
    return graph_values(view, await job_graph.graph(call.db, view))


async def steps(call: LocalRequest) -> Any:
    """Return a page of the job's steps."""
    view = await call.job()
    limit = call.number("limit", job_graph.STEPS_PAGE_MAX)
    plan, found, is_more = await job_graph.steps_page(call.db, view, after=call.number("after", -1), limit=limit)
    return {"items": [step_values(view.id, plan, one) for one in found], "next": found[-1].no if is_more else None}


async def events(call: LocalRequest) -> Any:
    """Return a page of the job's events."""
    await call.job()
    limit = call.number("limit", EVENTS_PAGE)
    found = await read.events(call.db, call.job_id, after=call.number("after", 0), limit=limit)
    items = [event_values(call.job_id, event) for event in found]
    return {"items": items, "next": found[-1].seq if len(found) == limit else None}


async def stream(call: LocalRequest) -> AsyncIterator[bytes]:
    """Return a stream of the job's events as they happen, until the job ends."""
    view = await call.job()
    seen = int(call.headers.get("last-event-id") or 0)
    return _frames(call, view.id, seen)


async def _frames(call: LocalRequest, job_id: UUID, seen: int) -> AsyncIterator[bytes]:
    while True:
        # The state is read before the events, so that the events of an ended job include its end.
        view = await read.job(call.db, job_id)
        while page := await read.events(call.db, job_id, after=seen, limit=EVENTS_PAGE):
            for event in page:
                seen = event.seq
                name = "job" if event.type.startswith("job.") else "step"
                yield frame(name, str(seen), encoded(event_values(job_id, event)))
        if view.is_finished:
            yield frame("end", str(seen), encoded(job_values(view)))
            return
        with suppress(WaitTimeout):
            await call.windlass.job(job_id).wait(FOLLOW_S)


async def why(call: LocalRequest) -> Any:
    """Explain what each unfinished step waits for."""
    await call.job()
    found = await explain.why(call.db, call.job_id, call.one("step"), limit=explain.REASONS_MAX + 1)
    return reasons_values(found)


async def decisions(call: LocalRequest) -> Any:
    """Return what the policy decided about the job."""
    await call.job()
    return decisions_values(await decisions_of(call.db, call.job_id))


async def cancel(call: LocalRequest) -> Any:
    """Cancel the job."""
    await call.job()
    body = call.body or {}
    reason, is_undone = body.get("reason", ""), body.get("undo", True)
    return await _changed(call, await control.cancel(call.db, call.job_id, reason=reason, undo=is_undone))


async def undo_plan(call: LocalRequest) -> Any:
    """Return the undo of the job: what would run, runs or ran."""
    job = await call.job()
    return undo_values(job, await undo_view(call.db, job.id))


async def start_undo(call: LocalRequest) -> Any:
    """Undo the job, or let its undo go."""
    await call.job()
    found = await undo.start(call.db, call.job_id)
    return {"job_id": call.job_id, "undo_job_id": found.undo_job, "is_new": found.is_new}


async def pause(call: LocalRequest) -> Any:
    """Pause the job, so that no further steps start."""
    await call.job()
    return await _changed(call, await control.pause(call.db, call.job_id))


async def resume(call: LocalRequest) -> Any:
    """Resume a paused job."""
    await call.job()
    return await _changed(call, await control.resume(call.db, call.job_id))


async def _changed(call: LocalRequest, changed: bool) -> Any:
    return {**job_values(await read.job(call.db, call.job_id)), "changed": changed}


async def delete(call: LocalRequest) -> None:
    """Hide a finished job."""
    await call.job()
    await control.delete(call.db, call.job_id)


async def send_event(call: LocalRequest) -> Any:
    """Send an event to the job."""
    await call.job()
    wish = call.body
    sender = call.windlass.settings.caller
    status = await signals.send(call.db, call.job_id, wish["name"], wish["body"], id=wish["id"], sender=sender)
    return {"status": status, "id": wish["id"]}


async def run_again(call: LocalRequest) -> Any:
    """Retry or rerun the job, or preview which steps would run."""
    await call.job()
    asked: dict[str, Any] = call.body or {}
    is_retry = call.names["action"] == "retry"
    wish = rerun.Wish("retry") if is_retry else rerun.Wish("rerun", asked.get("from_step"), asked.get("inputs"))
    if asked.get("dry_run"):
        return rerun_values(await rerun.preview(call.db, call.job_id, wish))
    new_id = call.windlass.ids.new()
    made = await rerun.make(call.db, call.job_id, wish, new_id, source="caller", key=call.key)
    return {**job_values(await read.job(call.db, made)), "is_new": made == new_id}


async def list_dead_letters(call: LocalRequest) -> Any:
    """List the dead letters by kind of failure."""
    found = await dead_letters.look(call.db, None)
    items = [dead_letter_values(kind) for kind in found.kinds]
    return {"items": items, "looked_at": found.looked_at, "is_capped": found.is_capped}


async def deal(call: LocalRequest) -> Any:
    """Redrive or discard a kind of dead letters."""
    wish, action = call.body, call.names["action"]
    dry_run, source = wish["dry_run"], call.windlass.settings.caller
    found = await dead_letters.of_kind(
        call.db, None, call.names["fingerprint"], None if dry_run else wish.get("expect")
    )
    if action == "discard":
        done = await redrive.discard(call.db, found, dry_run=dry_run, reason=wish["reason"], source=source)
        return bulk_values(action, dry_run, done)
    done = await redrive.redrive(
        call.db,
        found,
        "first" if wish["start"] == "first" else "failed",
        new_id=call.windlass.ids.new,
        limit=BULK_MAX,
        dry_run=dry_run,
        source=source,
        request_id=None,
    )
    return bulk_values(action, dry_run, done)


async def webhook(call: LocalRequest) -> Any:
    """Return the delivery of the job's webhook."""
    from windlass.documents.webhook import webhook_values
    from windlass.outbound import webhook_sender

    await call.job()
    return webhook_values(await webhook_sender.webhook_of(call.db, call.job_id))


async def redeliver(call: LocalRequest) -> Any:
    """Send the job's webhook again."""
    from windlass.outbound import webhook_sender

    await webhook(call)
    await call.db.run(lambda connection: webhook_sender.redeliver(connection, call.job_id))
    return await webhook(call)
