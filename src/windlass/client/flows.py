"""The calls of the client as flows, which send requests and interpret the answers. `exchange` defines a flow.

Every submission carries an idempotency key: the caller's key, or else a new key. Each retry sends the same key. So a
server that dies between the commit and the answer leaves one job, and the second try finds that job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from windlass.client.asking import asked, converted, decoded, encoded, get, send
from windlass.client.exchange import Ask, Flow, Give, Sources
from windlass.client.following import wait
from windlass.client.order import Order, body_of, check_order, headers_of
from windlass.client.problems import error_from
from windlass.client.views import Event, JobDecisions, JobView, KeyView, Reason, RecipeView, StepDocument, failure_of
from windlass.core.errors import BadInput, NotFound, WindlassError
from windlass.core.states import JobState
from windlass.pure.argument import check_many

BATCH_MAX = 1_000
# This is below the server's limit for a body, with room for the JSON around the jobs.
BATCH_MAX_BYTES = 900_000
PAGE = 200


@dataclass(frozen=True, slots=True)
class Made:
    """The job of a submission. `is_new` is False if an earlier submission with the same key made the job."""

    job_id: UUID
    is_new: bool


def submit(
    sources: Sources, recipe: str, order: Order, inputs: Mapping[str, Any], key: str | None
) -> Flow[dict[str, Any]]:
    """Submit a job and return its document."""
    check_order(order, key)
    key = key or sources.new_key()
    body, headers = body_of(recipe, order, inputs), {**headers_of(order), "idempotency-key": key}
    if not key.isascii() or not key.isprintable():
        # A header holds only ASCII, so a key with other characters goes into the body.
        body, headers = {**body, "idempotency_key": key}, headers_of(order)
    document: dict[str, Any] = yield from send(sources, "POST", "/jobs", body, headers=headers)
    return document


def submit_many(
    sources: Sources, recipe: str, order: Order, inputs: Sequence[Mapping[str, Any]], keys: Sequence[str] | None
) -> Flow[list[Made]]:
    """Submit a job per element, in requests of limited size. A refusal is raised after all other jobs are made."""
    check_order(order)
    check_many(inputs, keys)
    given = keys if keys is not None else [sources.new_key() for _ in inputs]
    requests = [{**body_of(recipe, order, one), "idempotency_key": key} for one, key in zip(inputs, given, strict=True)]
    made: list[Made] = []
    refused: WindlassError | None = None
    for batch in _batches(requests):
        body = yield from send(sources, "POST", "/jobs/batch", {"jobs": batch}, headers=headers_of(order))
        for item in body["items"]:
            if "code" in item:
                refused = refused or error_from(item, int(item.get("status", 400)))
            else:
                view = converted(item, Made)
                made.append(view)
    if refused is not None:
        raise refused
    return made


def _batches(requests: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for request in requests:
        own = len(encoded(request))
        if batch and (len(batch) == BATCH_MAX or size + own > BATCH_MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(request)
        size += own
    if batch:
        yield batch


def job(sources: Sources, job_id: UUID) -> Flow[JobView]:
    """Return one job."""
    return converted((yield from get(sources, f"/jobs/{job_id}")), JobView)


def page_of_jobs(sources: Sources, query: Sequence[tuple[str, str]]) -> Flow[tuple[list[JobView], str | None]]:
    """Return one page of jobs, the newest first, and the cursor of the next page."""
    body = yield from get(sources, "/jobs", query)
    return converted(body["items"], list[JobView]), body["next"]


def jobs(sources: Sources, query: Sequence[tuple[str, str]]) -> Flow[None]:
    """Give every job that matches the query, the newest first."""
    cursor: str | None = None
    while True:
        more = [("limit", str(PAGE))] if cursor is None else [("limit", str(PAGE)), ("cursor", cursor)]
        found, cursor = yield from page_of_jobs(sources, [*query, *more])
        for view in found:
            yield Give(view)
        if cursor is None:
            return


def filter_query(
    *,
    status: str | Sequence[str] | None = None,
    recipe: str | None = None,
    labels: Mapping[str, str] | None = None,
    failed_step: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    caller: str | None = None,
    deleted: bool = False,
) -> list[tuple[str, str]]:
    """Return the filter of a list as query parameters of the server."""
    statuses = [status] if isinstance(status, str) else list(status or ())
    single = {
        "recipe": recipe,
        "failed_step": failed_step,
        "since": _instant(since),
        "until": _instant(until),
        "caller": caller,
        "deleted": "true" if deleted else None,
    }
    return [
        *(("status", str(one)) for one in statuses),
        *(("label", f"{name}={value}") for name, value in (labels or {}).items()),
        *((name, value) for name, value in single.items() if value is not None),
    ]


def result(sources: Sources, job_id: UUID, timeout_s: float | None) -> Flow[Any]:
    """Wait for the job and return its output; raise JobFailed or JobCancelled if it has none."""
    view = yield from wait(sources, job_id, timeout_s)
    if view.status is not JobState.COMPLETED:
        raise failure_of(view)
    return (yield from output(sources, job_id))


def output(sources: Sources, job_id: UUID) -> Flow[Any]:
    """Return the output of a completed job."""
    return decoded((yield from asked(sources, Ask("GET", f"/jobs/{job_id}/output"))))


def step_output(sources: Sources, job_id: UUID, no: int) -> Flow[Any]:
    """Return the output of a step."""
    return decoded((yield from asked(sources, Ask("GET", f"/jobs/{job_id}/steps/{no}/output"))))


def events(sources: Sources, job_id: UUID, after: int = 0) -> Flow[None]:
    """Give the job's existing events in order."""
    while True:
        body = yield from get(sources, f"/jobs/{job_id}/events", [("after", str(after)), ("limit", str(PAGE))])
        found = converted(body["items"], list[Event])
        for event in found:
            after = event.seq
            yield Give(event)
        if not found or not body.get("next"):
            return


def steps(sources: Sources, job_id: UUID) -> Flow[None]:
    """Give the job's steps, including the children of fan-outs."""
    after: str | None = None
    while True:
        query = [("limit", str(PAGE)), *([("after", after)] if after is not None else [])]
        body = yield from get(sources, f"/jobs/{job_id}/steps", query)
        for step in converted(body["items"], list[StepDocument]):
            yield Give(step)
        after = None if body.get("next") is None else str(body["next"])
        if after is None:
            return


def why(sources: Sources, job_id: UUID, step: str | None) -> Flow[list[Reason]]:
    """Return the reason why each unfinished step waits."""
    body = yield from get(sources, f"/jobs/{job_id}/why", [] if step is None else [("step", step)])
    return converted(body["items"], list[Reason])


def decisions(sources: Sources, job_id: UUID) -> Flow[JobDecisions]:
    """Return what the policy decided about a job."""
    return converted((yield from get(sources, f"/jobs/{job_id}/decisions")), JobDecisions)


def control(sources: Sources, job_id: UUID, action: str, body: Any = None) -> Flow[JobView]:
    """Cancel, pause or resume a job. Repeating the action changes nothing."""
    return converted((yield from send(sources, "POST", f"/jobs/{job_id}/{action}", body)), JobView)


def undo(sources: Sources, job_id: UUID) -> Flow[UUID]:
    """Start the undo of a job, and return the id of the undo job. Repeating it changes nothing."""
    return UUID((yield from send(sources, "POST", f"/jobs/{job_id}/undo", None))["undo_job_id"])


def undo_plan(sources: Sources, job_id: UUID) -> Flow[dict[str, Any]]:
    """Return the undo of a job."""
    document: dict[str, Any] = yield from get(sources, f"/jobs/{job_id}/undo")
    return document


def delete(sources: Sources, job_id: UUID) -> Flow[None]:
    """Hide a finished job. If the first answer is lost, the second try finds no job, which counts as success."""
    path = f"/jobs/{job_id}"
    flow = asked(sources, Ask("DELETE", path))
    tries = 0
    got: Any = None
    try:
        while True:
            wish = flow.send(got)
            tries += isinstance(wish, Ask)
            got = yield wish
    except StopIteration:
        return
    except NotFound:
        if tries < 2:
            raise


def call(
    sources: Sources,
    method: str,
    path: str,
    body: Any = None,
    query: Sequence[tuple[str, str]] = (),
    *,
    is_safe: bool = True,
) -> Flow[Any]:
    """Send a request and return the document of its answer, or None if the answer is empty."""
    if method == "GET":
        return (yield from get(sources, path, query))
    return (yield from send(sources, method, path, body, is_safe=is_safe))


def create_key(sources: Sources, wish: Mapping[str, Any]) -> Flow[tuple[str, KeyView]]:
    """Create a key, and return its text and its stored fields. The server does not store the text.

    The client does not send this again after a lost answer: the first key may exist, and its text would be lost.
    """
    body = yield from send(sources, "POST", "/keys", wish, is_safe=False)
    return str(body["key"]), converted(body, KeyView)


def keys(sources: Sources, caller: str | None) -> Flow[list[KeyView]]:
    """Return the keys, of one caller or of all."""
    body = yield from get(sources, "/keys", [] if caller is None else [("caller", caller)])
    return converted(body["items"], list[KeyView])


def revoke_key(sources: Sources, key_id: str) -> Flow[None]:
    """Revoke a key."""
    yield from asked(sources, Ask("DELETE", f"/keys/{quote(key_id, safe='')}"))


def verify_audit(sources: Sources, head: str | None) -> Flow[dict[str, Any]]:
    """Verify the chain of the audit, in as many requests as it takes."""
    after, checked = 0, 0
    newest: str | None = None
    while True:
        query = [("after", str(after)), *([("head", head)] if head is not None else [])]
        told: dict[str, Any] = yield from get(sources, "/audit/verify", query)
        checked, newest = checked + told["checked"], told["head"] or newest
        if not told["is_good"] or told["next"] is None:
            return {**told, "checked": checked, "head": newest}
        after = told["next"]


def recipes(sources: Sources) -> Flow[list[RecipeView]]:
    """Return every recipe with its newest version."""
    return converted((yield from get(sources, "/recipes"))["items"], list[RecipeView])


def recipe(sources: Sources, name: str, version: int | None) -> Flow[dict[str, Any]]:
    """Return one recipe: its description, nodes, edges, schema of inputs and output."""
    query = [] if version is None else [("version", str(version))]
    body: dict[str, Any] = yield from get(sources, f"/recipes/{quote(name, safe='')}", query)
    return body


def pages(
    sources: Sources, path: str, query: Sequence[tuple[str, str]], after: int | None = None, most: int | None = None
) -> Flow[None]:
    """Give the documents of a list that has `items` and `next`, at most `most` of them."""
    given = 0
    while True:
        size = PAGE if most is None else min(PAGE, most - given)
        more = [("limit", str(size)), *([("after", str(after))] if after is not None else [])]
        body = yield from get(sources, path, [*query, *more])
        for item in body["items"]:
            yield Give(item)
        given += len(body["items"])
        after = body.get("next")
        if after is None or (most is not None and given >= most):
            return


def _instant(value: datetime | str | None) -> str | None:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise BadInput(
            f"{value} has no time zone", remedy="Use datetime.now(UTC), or text such as 2026-01-31T12:00:00Z"
        )
    return value.isoformat()
