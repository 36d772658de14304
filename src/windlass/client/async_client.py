"""The asynchronous client: `async with AsyncClient() as client: job = await client.submit("hello")`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar
from uuid import UUID

from windlass.client import again, flows, following, outside
from windlass.client.again import Rerun
from windlass.client.asking import converted
from windlass.client.async_deciding import AsyncDeciding
from windlass.client.async_policing import AsyncPolicing
from windlass.client.async_submitting import AsyncSubmitting
from windlass.client.exchange import Flow, Give, Got, Sources, Wish
from windlass.client.flows import Made
from windlass.client.order import Order
from windlass.client.place import find
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


class AsyncPerformer(Protocol):
    """Performs the requests of one flow. It is entered before the first request and left after the last request."""

    async def __aenter__(self) -> AsyncPerformer: ...

    async def __aexit__(self, *error: object) -> None: ...

    async def perform(self, wish: Wish) -> Got:
        """Perform one request of the flow and return its result, as `exchange` describes."""
        ...


class AsyncBackend(Protocol):
    """Answers requests: a server over HTTP, or the database of the command line."""

    def performer(self) -> AsyncPerformer:
        """Return the performer of one flow."""
        ...

    async def close(self) -> None:
        """Release all resources."""
        ...


class AsyncClient(AsyncSubmitting[str, "AsyncRemoteJob"], AsyncDeciding, AsyncPolicing):
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
        backend: AsyncBackend | None = None,
    ) -> None:
        self.sources = Sources()
        self._backend: AsyncBackend
        if backend is not None:
            self.server, self._backend = server or "", backend
            return
        from windlass.client.async_line import AsyncHttp

        place = find(server, api_key, home=None if home is None else Path(home))
        self.server, self._backend = place.url, AsyncHttp(place, timeout, transport)

    async def _submit(self, recipe: str, order: Order, inputs: Mapping[str, Any], key: str | None) -> AsyncRemoteJob:
        # Without a caller's key the flow makes a key, so that the request can be sent again after a lost answer.
        document = await self.run(flows.submit(self.sources, recipe, order, inputs, key))
        return self._handle(converted(document, Made))

    async def _submit_many(
        self, recipe: str, order: Order, inputs: Sequence[Mapping[str, Any]], keys: Sequence[str] | None
    ) -> list[AsyncRemoteJob]:
        made = await self.run(flows.submit_many(self.sources, recipe, order, inputs, keys))
        return [self._handle(one) for one in made]

    def job(self, job_id: UUID | str) -> AsyncRemoteJob:
        """Return the handle of an existing job."""
        return AsyncRemoteJob(self, job_id_of(job_id), is_new=False)

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
    ) -> AsyncIterator[JobView]:
        """Iterate over the matching jobs, the newest first. The iterator reads one page at a time."""
        query = flows.filter_query(
            status=status, recipe=recipe, labels=labels, failed_step=failed_step, since=since, until=until,
            caller=caller, deleted=deleted,
        )  # fmt: skip
        return self.iterate(flows.jobs(self.sources, query))

    def stream(self, after: str | None = None) -> AsyncIterator[Event]:
        """Stream the events of all of the caller's jobs, from now on or after the event `after`. It does not end."""
        return self.iterate(following.stream_jobs(self.sources, after))

    async def recipes(self) -> list[RecipeView]:
        """Return every recipe with its newest version."""
        return await self.run(flows.recipes(self.sources))

    async def recipe(self, name: str, version: int | None = None) -> dict[str, Any]:
        """Return one recipe: its description, nodes, edges, schema of inputs and output."""
        return await self.run(flows.recipe(self.sources, name, version))

    async def call(
        self, method: str, path: str, body: Any = None, *, query: Sequence[tuple[str, str]] = (), is_safe: bool = True
    ) -> Any:
        """Send any request, and return the document of its answer, or None. Use it where the client has no method.

        With `is_safe=False` the client does not send the request again after a lost answer.
        """
        return await self.run(flows.call(self.sources, method, path, body, query, is_safe=is_safe))

    def items(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, after: int | None = None, most: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Iterate over the documents of a paged list, after the number `after`, and at most `most` of them."""
        return self.iterate(flows.pages(self.sources, path, query, after, most))

    async def me(self) -> dict[str, Any]:
        """Return the caller's identity and rights, as the server sees them."""
        found: dict[str, Any] = await self.call("GET", "/me")
        return found

    async def create_key(
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
        return await self.run(flows.create_key(self.sources, wish))

    async def keys(self, caller: str | None = None) -> list[KeyView]:
        """Return the keys, of one caller or of all (for admins)."""
        return await self.run(flows.keys(self.sources, caller))

    async def revoke_key(self, key_id: str) -> None:
        """Revoke a key at once (for admins)."""
        await self.run(flows.revoke_key(self.sources, key_id))

    async def verify_audit(self, head: str | None = None) -> dict[str, Any]:
        """Verify that the audit's chain is whole, and that it contains `head`, a hash noted earlier."""
        return await self.run(flows.verify_audit(self.sources, head))

    async def providers(self) -> list[ProviderView]:
        """Return every provider, with the steps that hold its slots and the steps that wait (for admins)."""
        return await self.run(outside.providers(self.sources))

    async def provider(self, name: str) -> ProviderView:
        """Return one provider (for admins)."""
        return await self.run(outside.provider(self.sources, name))

    async def budgets(self) -> list[BudgetView]:
        """Return every budget (for admins)."""
        return await self.run(outside.budgets(self.sources))

    async def set_budget(self, scope: str, name: str, most: Decimal | float | str) -> BudgetView:
        """Set the total that a job, a recipe or a caller may spend (for admins)."""
        return await self.run(outside.set_budget(self.sources, scope, name, str(most)))

    async def remove_budget(self, scope: str, name: str) -> None:
        """Remove a budget (for admins)."""
        await self.run(outside.remove_budget(self.sources, scope, name))

    async def overview(self) -> dict[str, Any]:
        """Return the overview: problems that need attention, the work of the last hour, and the waiting work."""
        found: dict[str, Any] = await self.call("GET", "/overview")
        return found

    async def dead_letters(self) -> list[DeadLetterView]:
        """Return the failed jobs that were not run again, discarded or deleted, by kind of failure."""
        return await self.run(again.dead_letters(self.sources))

    async def redrive(
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
        return await self.run(again.deal(self.sources, fingerprint, "redrive", wish))

    async def discard(
        self, fingerprint: str, *, dry_run: bool = False, expect: int | None = None, reason: str = ""
    ) -> BulkView:
        """Discard the dead letters of a kind; the jobs stay failed."""
        wish = {"dry_run": dry_run, "expect": expect, "reason": reason}
        return await self.run(again.deal(self.sources, fingerprint, "discard", wish))

    async def close(self) -> None:
        """Close the connections."""
        await self._backend.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.server!r})"

    def _handle(self, made: Made) -> AsyncRemoteJob:
        return AsyncRemoteJob(self, made.job_id, is_new=made.is_new)

    async def run(self, flow: Flow[T]) -> T:
        """Perform a flow and return its value."""
        got: Got = None
        async with self._backend.performer() as performer:
            while True:
                try:
                    wish = flow.send(got)
                except StopIteration as end:
                    value: T = end.value
                    return value
                got = await performer.perform(wish)

    async def iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Perform a flow and yield the values that it gives."""
        got: Got = None
        async with self._backend.performer() as performer:
            while True:
                try:
                    wish = flow.send(got)
                except StopIteration:
                    return
                if isinstance(wish, Give):
                    yield wish.value
                    got = None
                else:
                    got = await performer.perform(wish)


class AsyncRemoteJob:
    """A handle of a job. It holds only the id, so a program can make it again from the id."""

    def __init__(self, client: AsyncClient, job_id: UUID, *, is_new: bool = True) -> None:
        self._client = client
        self.sources = client.sources
        self.job_id = job_id
        # False when an earlier submission with the same idempotency key made the job.
        self.is_new = is_new

    async def status(self) -> JobState:
        """Return the job's status."""
        view = await self.view()
        return view.status

    async def view(self) -> JobView:
        """Return the job's document, without its steps."""
        return await self._client.run(flows.job(self.sources, self.job_id))

    async def input(self) -> Any:
        """Return the job's inputs."""
        return await self._client.call("GET", f"/jobs/{self.job_id}/input")

    def steps(self) -> AsyncIterator[StepDocument]:
        """Iterate over the job's steps, including the children of fan-outs."""
        return self._client.iterate(flows.steps(self.sources, self.job_id))

    async def wait(self, timeout: float | None = None) -> JobState:  # noqa: ASYNC109  the job goes on
        """Wait for the job's end and return its final status; raise WaitTimeout after the timeout."""
        view = await self._client.run(following.wait(self.sources, self.job_id, timeout))
        return view.status

    async def result(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109  the job goes on
        """Wait for the job and return its output; raise JobFailed or JobCancelled if it has none."""
        return await self._client.run(flows.result(self.sources, self.job_id, timeout))

    def stream(self, after: int | None = None) -> AsyncIterator[Event]:
        """Stream every event after the event `after`, until the job ends. A lost connection is opened again."""
        return self._client.iterate(following.stream_job(self.sources, self.job_id, after))

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Iterate over the existing events in order."""
        return self._client.iterate(flows.events(self.sources, self.job_id, after))

    async def graph(self, *, results: bool = False) -> dict[str, Any]:
        """Return the job's graph: nodes with their states, edges, and reasons for waiting."""
        query = [("results", "true")] if results else []
        found: dict[str, Any] = await self._client.call("GET", f"/jobs/{self.job_id}/graph", query=query)
        return found

    async def why(self, step: str | None = None) -> list[Reason]:
        """Return what each unfinished step waits for."""
        return await self._client.run(flows.why(self.sources, self.job_id, step))

    async def decisions(self) -> JobDecisions:
        """Return what the policy decided about the job and its steps."""
        return await self._client.run(flows.decisions(self.sources, self.job_id))

    async def cancel(self, reason: str = "", *, undo: bool = True) -> JobView:
        """Cancel the job: open steps are cancelled, and running steps are asked to stop.

        The effects of finished steps are undone; `undo=False` keeps them.
        """
        body = {"reason": reason, "undo": undo}
        return await self._client.run(flows.control(self.sources, self.job_id, "cancel", body))

    async def undo(self) -> UUID:
        """Undo the finished job, or allow an undo that waits for a person. Return the id of the undo job."""
        return await self._client.run(flows.undo(self.sources, self.job_id))

    async def undo_plan(self) -> dict[str, Any]:
        """Return what is undone, in order: what would run, what runs, or what ran."""
        document: dict[str, Any] = await self._client.run(flows.undo_plan(self.sources, self.job_id))
        return document

    async def pause(self) -> JobView:
        """Pause the job: no further steps start, and running steps finish."""
        return await self._client.run(flows.control(self.sources, self.job_id, "pause"))

    async def resume(self) -> JobView:
        """Resume the paused job."""
        return await self._client.run(flows.control(self.sources, self.job_id, "resume"))

    async def send_event(self, name: str, body: Any = None, *, id: str | None = None) -> str:
        """Send an event to the job. Return `delivered` if a step waits for it, or `kept` until a step does.

        An event with a known `id` changes nothing, and the server answers `already`.
        """
        return await self._client.run(
            outside.send_event(self.sources, self.job_id, name, {} if body is None else body, id)
        )

    async def complete(
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
        return await self._client.run(outside.complete(self.sources, self.job_id, wish))

    async def costs(self) -> CostsView:
        """Return the costs of the job's attempts."""
        return await self._client.run(outside.costs(self.sources, self.job_id))

    async def retry(self) -> AsyncRemoteJob:
        """Run a failed job again from its failed steps, as a new job."""
        return await self._again(Rerun("retry"))

    async def rerun(self, *, from_step: str | None = None, inputs: Mapping[str, Any] | None = None) -> AsyncRemoteJob:
        """Run a finished job again as a new job, from the start or from a step; other finished steps are kept.

        `inputs` replaces all inputs of the job; None keeps them.
        """
        return await self._again(Rerun("rerun", from_step, inputs))

    async def preview_retry(self) -> RerunView:
        """Return the steps that `retry` would run again."""
        return await self._preview(Rerun("retry"))

    async def preview_rerun(
        self, *, from_step: str | None = None, inputs: Mapping[str, Any] | None = None
    ) -> RerunView:
        """Return the steps that `rerun` would run again, and the steps that it would keep."""
        return await self._preview(Rerun("rerun", from_step, inputs))

    async def delete(self) -> None:
        """Hide a finished job from lists; retention removes it later."""
        await self._client.run(flows.delete(self.sources, self.job_id))

    async def _again(self, wish: Rerun) -> AsyncRemoteJob:
        document = await self._client.run(again.again(self.sources, self.job_id, wish))
        return self._client._handle(converted(document, Made))

    async def _preview(self, wish: Rerun) -> RerunView:
        return converted(await self._client.run(again.again(self.sources, self.job_id, wish, dry_run=True)), RerunView)

    def __repr__(self) -> str:
        return f"AsyncRemoteJob({self.job_id})"
