"""Every call of the client as a flow: what is asked for, and what the answer means. See `exchange`.

Every submission carries an idempotency key, one of its own if the caller gave none, and the same one each time it is
sent: a server that dies between the commit and the answer leaves one job, and the second try finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

from windlass.client.asking import asked, converted, decoded, encoded, get, send
from windlass.client.exchange import Ask, Flow, Give, Means
from windlass.client.following import wait
from windlass.client.problems import error_from
from windlass.client.views import Event, JobView, KeyView, Reason, RecipeView, StepDocument, failure_of
from windlass.core.errors import BadInput, NotFound, WindlassError
from windlass.core.states import JobState
from windlass.pure.argument import check_inputs_mapping, check_labels, check_many, check_priority, check_text, wrong
from windlass.pure.audit import GENESIS

BATCH_MAX = 1_000
# Below the server's own limit for a body, with room for what is around the jobs.
BATCH_MAX_BYTES = 900_000
PAGE = 200

Time = float | str | timedelta


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is common to the jobs of one call."""

    recipe: str
    labels: Mapping[str, str] | None = None
    priority: int = 0
    deadline: Time | None = None
    ttl: Time | None = None
    webhook: tuple[str, str] | None = None
    version: int | None = None
    budget: Decimal | float | str | None = None

    def check(self) -> None:
        """Refuse arguments that are of another type than they must be."""
        check_text("recipe", self.recipe)
        check_priority(self.priority)
        if self.labels is not None:
            check_labels(self.labels)
        webhook: object = self.webhook
        if webhook is not None and not (isinstance(webhook, tuple | list) and len(webhook) == 2):
            raise wrong("webhook", "a URL and a secret", webhook)

    def body(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The request for one job; what is as usual is left out."""
        check_inputs_mapping(inputs)
        known: dict[str, Any] = {
            "labels": dict(self.labels) if self.labels else None,
            "priority": self.priority or None,
            "deadline": _time(self.deadline),
            "ttl": _time(self.ttl),
            "version": self.version,
            "budget": None if self.budget is None else str(self.budget),
            "webhook": None if self.webhook is None else {"url": self.webhook[0], "secret": self.webhook[1]},
        }
        rest = {name: value for name, value in known.items() if value is not None}
        return {"recipe": self.recipe, "inputs": dict(inputs), **rest}


def joined(inputs: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a call: those given by name, and those in a mapping."""
    if inputs is not None:
        check_inputs_mapping(inputs)
    return {**(inputs or {}), **more}


@dataclass(frozen=True, slots=True)
class Made:
    """The job of a submission; not new when an earlier one with the same key made it."""

    job_id: UUID
    is_new: bool


def submit(means: Means, wanted: Wanted, inputs: Mapping[str, Any], key: str | None) -> Flow[Made]:
    """Make a job."""
    wanted.check()
    if key is not None:
        check_text("key", key)
    key = key or means.new_key()
    body, headers = wanted.body(inputs), {"idempotency-key": key}
    if not key.isascii() or not key.isprintable():
        # A header holds ASCII only; the body takes any text.
        body, headers = {**body, "idempotency_key": key}, {}
    answer = yield from send(means, "POST", "/jobs", body, headers=headers)
    view = converted(answer, JobView)
    return Made(view.id, view.is_new)


def submit_many(
    means: Means, wanted: Wanted, inputs: Sequence[Mapping[str, Any]], keys: Sequence[str] | None
) -> Flow[list[Made]]:
    """Make a job per element, as many to a request as fit; a refusal is raised after all others are made."""
    wanted.check()
    check_many(inputs, keys)
    given = keys if keys is not None else [means.new_key() for _ in inputs]
    requests = [{**wanted.body(one), "idempotency_key": key} for one, key in zip(inputs, given, strict=True)]
    made: list[Made] = []
    refused: WindlassError | None = None
    for batch in _batches(requests):
        body = yield from send(means, "POST", "/jobs/batch", {"jobs": batch})
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


def job(means: Means, job_id: UUID) -> Flow[JobView]:
    """One job."""
    return converted((yield from get(means, f"/jobs/{job_id}")), JobView)


def page_of_jobs(means: Means, query: Sequence[tuple[str, str]]) -> Flow[tuple[list[JobView], str | None]]:
    """One page of jobs, the newest first, and where the next one begins."""
    body = yield from get(means, "/jobs", query)
    return converted(body["items"], list[JobView]), body["next"]


def jobs(means: Means, query: Sequence[tuple[str, str]]) -> Flow[None]:
    """Gives every job that fits, the newest first."""
    cursor: str | None = None
    while True:
        more = [("limit", str(PAGE))] if cursor is None else [("limit", str(PAGE)), ("cursor", cursor)]
        found, cursor = yield from page_of_jobs(means, [*query, *more])
        for view in found:
            yield Give(view)
        if cursor is None:
            return


def filter_query(
    *,
    state: str | Sequence[str] | None = None,
    recipe: str | None = None,
    labels: Mapping[str, str] | None = None,
    failed_step: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    caller: str | None = None,
    deleted: bool = False,
) -> list[tuple[str, str]]:
    """The conditions of a list as the server reads them."""
    states = [state] if isinstance(state, str) else list(state or ())
    single = {
        "recipe": recipe,
        "failed_step": failed_step,
        "since": _instant(since),
        "until": _instant(until),
        "caller": caller,
        "deleted": "true" if deleted else None,
    }
    return [
        *(("status", str(one)) for one in states),
        *(("label", f"{name}={value}") for name, value in (labels or {}).items()),
        *((name, value) for name, value in single.items() if value is not None),
    ]


def result(means: Means, job_id: UUID, timeout_s: float | None) -> Flow[Any]:
    """Wait for the recipe's return value; raises JobFailed or JobCancelled when there is none."""
    view = yield from wait(means, job_id, timeout_s)
    if view.state is not JobState.COMPLETED:
        raise failure_of(view)
    return (yield from output(means, job_id))


def output(means: Means, job_id: UUID) -> Flow[Any]:
    """The output of a job that has completed."""
    return decoded((yield from asked(means, Ask("GET", f"/jobs/{job_id}/output"))))


def step_output(means: Means, job_id: UUID, no: int) -> Flow[Any]:
    """What a step returned."""
    return decoded((yield from asked(means, Ask("GET", f"/jobs/{job_id}/steps/{no}/output"))))


def events(means: Means, job_id: UUID, after: int = 0) -> Flow[None]:
    """Gives the events that there are, in order."""
    while True:
        body = yield from get(means, f"/jobs/{job_id}/events", [("after", str(after)), ("limit", str(PAGE))])
        found = converted(body["items"], list[Event])
        for event in found:
            after = event.seq
            yield Give(event)
        if not found or not body.get("next"):
            return


def steps(means: Means, job_id: UUID) -> Flow[None]:
    """Gives the job's steps, children of fan-outs among them."""
    after: str | None = None
    while True:
        query = [("limit", str(PAGE)), *([("after", after)] if after is not None else [])]
        body = yield from get(means, f"/jobs/{job_id}/steps", query)
        for step in converted(body["items"], list[StepDocument]):
            yield Give(step)
        after = None if body.get("next") is None else str(body["next"])
        if after is None:
            return


def why(means: Means, job_id: UUID, step: str | None) -> Flow[list[Reason]]:
    """What each unfinished step waits for."""
    body = yield from get(means, f"/jobs/{job_id}/why", [] if step is None else [("step", step)])
    return converted(body["items"], list[Reason])


def control(means: Means, job_id: UUID, action: str, body: Any = None) -> Flow[JobView]:
    """Cancel, pause or resume; done already, it changes nothing."""
    return converted((yield from send(means, "POST", f"/jobs/{job_id}/{action}", body)), JobView)


def delete(means: Means, job_id: UUID) -> Flow[None]:
    """Hide a finished job. If the first try's answer was lost, the second finds no job, which is what was asked for."""
    path = f"/jobs/{job_id}"
    flow = asked(means, Ask("DELETE", path))
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


def document(means: Means, path: str, query: Sequence[tuple[str, str]] = ()) -> Flow[Any]:
    """A document as it came."""
    return (yield from get(means, path, query))


def post(means: Means, path: str) -> Flow[Any]:
    """A document that comes back for a request without a body; sent twice, it does no more than once."""
    return (yield from send(means, "POST", path))


def create_key(means: Means, wish: Mapping[str, Any]) -> Flow[tuple[str, KeyView]]:
    """Make a key: its text, which nobody can tell again, and what is kept of it.

    Not sent again when the answer is lost: the first key may exist, and nobody would know its text.
    """
    body = yield from send(means, "POST", "/keys", wish, is_safe=False)
    return str(body["key"]), converted(body, KeyView)


def keys(means: Means, caller: str | None) -> Flow[list[KeyView]]:
    """The keys that there are."""
    body = yield from get(means, "/keys", [] if caller is None else [("caller", caller)])
    return converted(body["items"], list[KeyView])


def revoke_key(means: Means, key_id: str) -> Flow[None]:
    """End a key's life."""
    yield from asked(means, Ask("DELETE", f"/keys/{quote(key_id, safe='')}"))


def verify_audit(means: Means, head: str | None) -> Flow[dict[str, Any]]:
    """Whether the audit's chain is whole, over as many requests as it takes."""
    after, records = 0, 0
    while True:
        body = yield from get(means, "/audit/verify", [("after", str(after))])
        records += body["checked"]
        if not body["is_good"] or body["next"] is None:
            break
        after = body["next"]
    told = {"is_whole": body["is_good"], "records": records, "head": body["head"] or GENESIS.hex()}
    if body["is_good"] and head is not None and not (yield from _has_hash(means, head.lower())):
        reason = "the head that was noted is not in the chain: records were removed, or it was written anew"
        return {**told, "is_whole": False, "broken_at": records + 1, "because": reason}
    return {**told, "broken_at": body["flaw_no"], "because": body["flaw"]}


def _has_hash(means: Means, wanted: str) -> Flow[bool]:
    after = 0
    while True:
        body = yield from get(means, "/audit", [("after", str(after)), ("limit", str(PAGE))])
        if any(record["hash"] == wanted for record in body["items"]):
            return True
        if body["next"] is None:
            return False
        after = body["next"]


def recipes(means: Means) -> Flow[list[RecipeView]]:
    """Every recipe with its newest version."""
    return converted((yield from get(means, "/recipes"))["items"], list[RecipeView])


def recipe(means: Means, name: str, version: int | None) -> Flow[dict[str, Any]]:
    """One recipe: its description, nodes, edges, schema of inputs and output."""
    query = [] if version is None else [("version", str(version))]
    body: dict[str, Any] = yield from get(means, f"/recipes/{quote(name, safe='')}", query)
    return body


def pages(means: Means, path: str, query: Sequence[tuple[str, str]], most: int | None = None) -> Flow[None]:
    """Gives the items of a list that has `items` and `next`, up to so many."""
    after: str | None = None
    given = 0
    while True:
        size = PAGE if most is None else min(PAGE, most - given)
        more = [("limit", str(size)), *([("after", after)] if after is not None else [])]
        body = yield from get(means, path, [*query, *more])
        for item in body["items"]:
            yield Give(item)
        given += len(body["items"])
        after = None if body.get("next") is None else str(body["next"])
        if after is None or (most is not None and given >= most):
            return


def _time(value: Time | None) -> float | str | None:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _instant(value: datetime | str | None) -> str | None:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise BadInput(
            f"{value} has no time zone", remedy="Use datetime.now(UTC), or text such as 2026-01-31T12:00:00Z"
        )
    return value.isoformat()
