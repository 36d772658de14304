# Made from async_client.py by scripts/unasync.py: edit that file, then run the script.
"""The asynchronous client: `with Client() as client: job = client.submit("hello")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar
from uuid import UUID

from windlass.client import again, flows, following, outside
from windlass.client.again import Rerun
from windlass.client.asking import converted
from windlass.client.deciding import Deciding
from windlass.client.exchange import Flow, Give, Got, Sources, Wish
from windlass.client.flows import Made
from windlass.client.order import Order
from windlass.client.place import find
from windlass.client.submitting import Submitting
from windlass.client.sync_policing import Policing
from windlass.client.views import (
    BudgetView,
    BulkView,
    CompletedView,
    CostsView,
    DeadLetterView,
    Event,
    JobDecisions,
    JobView,
    KeyView,
    ProviderView,
    Reason,
    RecipeView,
    RerunView,
    StepDocument,
)
from windlass.core.states import JobState
from windlass.pure.argument import job_id_of

T = TypeVar("T")


class Performer(Protocol):
    """Performs the requests of one flow. It is entered before the first request and left after the last request."""

    def __enter__(self) -> Performer: ...

    def __exit__(self, *error: object) -> None: ...

    def perform(self, wish: Wish) -> Got:
        """Perform one request of the flow and return its result, as `exchange` describes."""
        ...


class Backend(Protocol):
    """Answers requests: a server over HTTP, or the database of the command line."""

    def performer(self) -> Performer:
        """Return the performer of one flow."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class Client(Submitting[str, "RemoteJob"], Deciding, Policing):
    """A client of a server over HTTP. It holds only connections; close it, or use it in a `with` statement.

    Without `server` it takes WINDLASS_SERVER, or the address that `windlass up` left in the same folder. It finds the
    key likewise. `transport` is an httpx transport; a `backend` answers the requests in place of a server.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        transport: Any = None,
        home: str | Path | None = None,
        backend: Backend | None = None,
    ) -> None:
        self.sources = Sources()
        self._backend: Backend
        if backend is not None:
            self.server, self._backend = server or "", backend
            return
        from windlass.client.sync_line import Http

        place = find(server, api_key, home=None if home is None else Path(home))
        self.server, self._backend = place.url, Http(place, timeout, transport)

    def _submit(self, recipe: str, order: Order, inputs: Mapping[str, Any], key: str | None) -> RemoteJob:
        # Without a caller's key the flow makes a key, so that the request can be sent again after a lost answer.
        document = self.run(flows.submit(self.sources, recipe, order, inputs, key))
        return self._handle(converted(document, Made))

    def _submit_many(
        self, recipe: str, order: Order, inputs: Sequence[Mapping[str, Any]], keys: Sequence[str] | None
    ) -> list[RemoteJob]:
        made = self.run(flows.submit_many(self.sources, recipe, order, inputs, keys))
        return [self._handle(one) for one in made]

    def job(self, job_id: UUID | str) -> RemoteJob:
        """Return the handle of an existing job."""
        return RemoteJob(self, job_id_of(job_id), is_new=False)

    def jobs(
        self,
        *,
        status: str | Sequence[str] | None = None,
        recipe: str | None = None,
        labels: Mapping[str, str] | None = None,
        failed_step: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        caller: str | None = None,
        deleted: bool = False,
    ) -> Iterator[JobView]:
        """Iterate over the matching jobs, the newest first. The iterator reads one page at a time."""
        query = flows.filter_query(
            status=status, recipe=recipe, labels=labels, failed_step=failed_step, since=since, until=until,
            caller=caller, deleted=deleted,
        )  # fmt: skip
        return self.iterate(flows.jobs(self.sources, query))

    def stream(self, after: str | None = None) -> Iterator[Event]:
        """Stream the events of all of the caller's jobs, from now on or after the event `after`. It does not end."""
        return self.iterate(following.stream_jobs(self.sources, after))

    def recipes(self) -> list[RecipeView]:
        """Return every recipe with its newest version."""
        return self.run(flows.recipes(self.sources))

    def recipe(self, name: str, version: int | None = None) -> dict[str, Any]:
        """Return one recipe: its description, nodes, edges, schema of inputs and output."""
        return self.run(flows.recipe(self.sources, name, version))

    def call(
        self, method: str, path: str, body: Any = None, *, query: Sequence[tuple[str, str]] = (), is_safe: bool = True
    ) -> Any:
        """Send any request, and return the document of its answer, or None. Use it where the client has no method.

        With `is_safe=False` the client does not send the request again after a lost answer.
        """
        return self.run(flows.call(self.sources, method, path, body, query, is_safe=is_safe))

    def items(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, after: int | None = None, most: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the documents of a paged list, after the number `after`, and at most `most` of them."""
        return self.iterate(flows.pages(self.sources, path, query, after, most))

    def me(self) -> dict[str, Any]:
        """Return the caller's identity and rights, as the server sees them."""
        found: dict[str, Any] = self.call("GET", "/me")
        return found

    def create_key(
        self,
        caller: str,
        *,
        name: str,
        caller_type: str = "user",
        tier: str | None = None,
        scopes: Sequence[str] | None = None,
        roles: Sequence[str] | None = None,
        expires_in: float | None = None,
    ) -> tuple[str, KeyView]:
        """Create a key (for admins). Return its text, which the server does not store, and its stored fields."""
        known = {
            "caller": caller, "name": name, "caller_type": caller_type, "tier": tier,
            "scopes": None if scopes is None else list(scopes), "roles": None if roles is None else list(roles),
            "expires_in": expires_in,
        }  # fmt: skip
        wish = {name: value for name, value in known.items() if value is not None}
        return self.run(flows.create_key(self.sources, wish))

    def keys(self, caller: str | None = None) -> list[KeyView]:
        """Return the keys, of one caller or of all (for admins)."""
        return self.run(flows.keys(self.sources, caller))

    def revoke_key(self, key_id: str) -> None:
        """Revoke a key at once (for admins)."""
        self.run(flows.revoke_key(self.sources, key_id))

    def verify_audit(self, head: str | None = None) -> dict[str, Any]:
        """Verify that the audit's chain is whole, and that it contains `head`, a hash noted earlier."""
        return self.run(flows.verify_audit(self.sources, head))

    def providers(self) -> list[ProviderView]:
        """Return every provider, with the steps that hold its slots and the steps that wait (for admins)."""
        return self.run(outside.providers(self.sources))

    def provider(self, name: str) -> ProviderView:
        """Return one provider (for admins)."""
        return self.run(outside.provider(self.sources, name))

    def budgets(self) -> list[BudgetView]:
        """Return every budget (for admins)."""
        return self.run(outside.budgets(self.sources))

    def set_budget(self, scope: str, name: str, most: Decimal | float | str) -> BudgetView:
        """Set the total that a job, a recipe or a caller may spend (for admins)."""
        return self.run(outside.set_budget(self.sources, scope, name, str(most)))

    def remove_budget(self, scope: str, name: str) -> None:
        """Remove a budget (for admins)."""
        self.run(outside.remove_budget(self.sources, scope, name))

    def overview(self) -> dict[str, Any]:
        """Return the overview: problems that need attention, the work of the last hour, and the waiting work."""
        found: dict[str, Any] = self.call("GET", "/overview")
        return found

    def dead_letters(self) -> list[DeadLetterView]:
        """Return the failed jobs that were not run again, discarded or deleted, by kind of failure."""
        return self.run(again.dead_letters(self.sources))

    def redrive(
        self,
        fingerprint: str,
        *,
        start: str = "failed",
        dry_run: bool = False,
        expect: int | None = None,
        reason: str = "",
    ) -> BulkView:
        """Run at most 500 dead letters of a kind again, from their `failed` steps or from their `first` step."""
        wish = {"start": start, "dry_run": dry_run, "expect": expect, "reason": reason}
        return self.run(again.deal(self.sources, fingerprint, "redrive", wish))

    def discard(
        self, fingerprint: str, *, dry_run: bool = False, expect: int | None = None, reason: str = ""
    ) -> BulkView:
        """Discard the dead letters of a kind; the jobs stay failed."""
        wish = {"dry_run": dry_run, "expect": expect, "reason": reason}
        return self.run(again.deal(self.sources, fingerprint, "discard", wish))

    def close(self) -> None:
        """Close the connections."""
        self._backend.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.server!r})"

    def _handle(self, made: Made) -> RemoteJob:
        return RemoteJob(self, made.job_id, is_new=made.is_new)

    def run(self, flow: Flow[T]) -> T:
        """Perform a flow and return its value."""
        got: Got = None
        with self._backend.performer() as performer:
            while True:
                try:
                    wish = flow.send(got)
                except StopIteration as end:
                    value: T = end.value
                    return value
                got = performer.perform(wish)

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Perform a flow and yield the values that it gives."""
        got: Got = None
        with self._backend.performer() as performer:
            while True:
                try:
                    wish = flow.send(got)
                except StopIteration:
                    return
                if isinstance(wish, Give):
                    yield wish.value
                    got = None
                else:
                    got = performer.perform(wish)


class RemoteJob:
    """A handle of a job. It holds only the id, so a program can make it again from the id."""

    def __init__(self, client: Client, job_id: UUID, *, is_new: bool = True) -> None:
        self._client = client
        self.sources = client.sources
        self.job_id = job_id
        # False when an earlier submission with the same idempotency key made the job.
        self.is_new = is_new

    def status(self) -> JobState:
        """Return the job's status."""
        view = self.view()
        return view.status

    def view(self) -> JobView:
        """Return the job's document, without its steps."""
        return self._client.run(flows.job(self.sources, self.job_id))

    def input(self) -> Any:
        """Return the job's inputs."""
        return self._client.call("GET", f"/jobs/{self.job_id}/input")

    def steps(self) -> Iterator[StepDocument]:
        """Iterate over the job's steps, including the children of fan-outs."""
        return self._client.iterate(flows.steps(self.sources, self.job_id))

    def wait(self, timeout: float | None = None) -> JobState:
        """Wait for the job's end and return its final status; raise WaitTimeout after the timeout."""
        view = self._client.run(following.wait(self.sources, self.job_id, timeout))
        return view.status

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the job and return its output; raise JobFailed or JobCancelled if it has none."""
        return self._client.run(flows.result(self.sources, self.job_id, timeout))

    def stream(self, after: int | None = None) -> Iterator[Event]:
        """Stream every event after the event `after`, until the job ends. A lost connection is opened again."""
        return self._client.iterate(following.stream_job(self.sources, self.job_id, after))

    def events(self, after: int = 0) -> Iterator[Event]:
        """Iterate over the existing events in order."""
        return self._client.iterate(flows.events(self.sources, self.job_id, after))

    def graph(self, *, results: bool = False) -> dict[str, Any]:
        """Return the job's graph: nodes with their states, edges, and reasons for waiting."""
        query = [("results", "true")] if results else []
        found: dict[str, Any] = self._client.call("GET", f"/jobs/{self.job_id}/graph", query=query)
        return found

    def why(self, step: str | None = None) -> list[Reason]:
        """Return what each unfinished step waits for."""
        return self._client.run(flows.why(self.sources, self.job_id, step))

    def decisions(self) -> JobDecisions:
        """Return what the policy decided about the job and its steps."""
        return self._client.run(flows.decisions(self.sources, self.job_id))

    def cancel(self, reason: str = "", *, undo: bool = True) -> JobView:
        """Cancel the job: open steps are cancelled, and running steps are asked to stop.

        The effects of finished steps are undone; `undo=False` keeps them.
        """
        body = {"reason": reason, "undo": undo}
        return self._client.run(flows.control(self.sources, self.job_id, "cancel", body))

    def undo(self) -> UUID:
        """Undo the finished job, or allow an undo that waits for a person. Return the id of the undo job."""
        return self._client.run(flows.undo(self.sources, self.job_id))

    def undo_plan(self) -> dict[str, Any]:
        """Return what is undone, in order: what would run, what runs, or what ran."""
        document: dict[str, Any] = self._client.run(flows.undo_plan(self.sources, self.job_id))
        return document

    def pause(self) -> JobView:
        """Pause the job: no further steps start, and running steps finish."""
        return self._client.run(flows.control(self.sources, self.job_id, "pause"))

    def resume(self) -> JobView:
        """Resume the paused job."""
        return self._client.run(flows.control(self.sources, self.job_id, "resume"))

    def send_event(self, name: str, body: Any = None, *, id: str | None = None) -> str:
        """Send an event to the job. Return `delivered` if a step waits for it, or `kept` until a step does.

        An event with a known `id` changes nothing, and the server answers `already`.
        """
        return self._client.run(outside.send_event(self.sources, self.job_id, name, {} if body is None else body, id))

    def complete(
        self,
        token: str,
        status: str = "success",
        *,
        result: Any = None,
        error_code: str | None = None,
        error_message: str | None = None,
        is_retryable: bool | None = None,
        progress_pct: float | None = None,
        progress_message: str | None = None,
        preview: Any = None,
        cost: Mapping[str, Any] | None = None,
    ) -> CompletedView:
        """Report `success`, `failed` or `progress` of a step's external work (for internal services).

        The token is `ctx.token` of the attempt that started the external work. A repeated or late report changes
        nothing.
        """
        wish = {
            "token": token, "status": status, "result": result, "error_code": error_code, "is_retryable": is_retryable,
            "error_message": error_message, "progress_pct": progress_pct, "progress_message": progress_message,
            "preview": preview, "cost": cost,
        }  # fmt: skip
        return self._client.run(outside.complete(self.sources, self.job_id, wish))

    def costs(self) -> CostsView:
        """Return the costs of the job's attempts."""
        return self._client.run(outside.costs(self.sources, self.job_id))

    def retry(self) -> RemoteJob:
        """Run a failed job again from its failed steps, as a new job."""
        return self._again(Rerun("retry"))

    def rerun(self, *, from_step: str | None = None, inputs: Mapping[str, Any] | None = None) -> RemoteJob:
        """Run a finished job again as a new job, from the start or from a step; other finished steps are kept.

        `inputs` replaces all inputs of the job; None keeps them.
        """
        return self._again(Rerun("rerun", from_step, inputs))

    def preview_retry(self) -> RerunView:
        """Return the steps that `retry` would run again."""
        return self._preview(Rerun("retry"))

    def preview_rerun(self, *, from_step: str | None = None, inputs: Mapping[str, Any] | None = None) -> RerunView:
        """Return the steps that `rerun` would run again, and the steps that it would keep."""
        return self._preview(Rerun("rerun", from_step, inputs))

    def delete(self) -> None:
        """Hide a finished job from lists; retention removes it later."""
        self._client.run(flows.delete(self.sources, self.job_id))

    def _again(self, wish: Rerun) -> RemoteJob:
        document = self._client.run(again.again(self.sources, self.job_id, wish))
        return self._client._handle(converted(document, Made))

    def _preview(self, wish: Rerun) -> RerunView:
        return converted(self._client.run(again.again(self.sources, self.job_id, wish, dry_run=True)), RerunView)

    def __repr__(self) -> str:
        return f"RemoteJob({self.job_id})"
