"""The client for programs that block: `with Client() as client: client.submit("hello", name="sea").result()`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

from windlass.client import again, flows, following, outside
from windlass.client.again import Rerun
from windlass.client.exchange import Answer, Ask, Flow, Give, Got, Lost, Means, More, Pause, Wish
from windlass.client.flows import Made, Time, Wanted, joined
from windlass.client.line import httpx, lost_of, options_of
from windlass.client.place import find
from windlass.client.views import (
    BudgetView,
    BulkView,
    CompletedView,
    CostsView,
    DeadLetterView,
    Event,
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


class Client:
    """A server, to be spoken to over HTTP. It holds connections and nothing else; close it, or use it in a `with`.

    Without a server it takes WINDLASS_SERVER, or what `windlass up` of the same folder left; likewise the key.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        home: str | Path | None = None,
    ) -> None:
        place = find(server, api_key, home=None if home is None else Path(home))
        self.server = place.url
        self._timeout_s = timeout
        self._means = Means()
        self._http = httpx.Client(transport=transport, **options_of(place, timeout))

    def submit(
        self,
        recipe: str,
        /,
        *,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        deadline: Time | None = None,
        ttl: Time | None = None,
        version: int | None = None,
        webhook: tuple[str, str] | None = None,
        budget: Decimal | float | str | None = None,
        inputs: Mapping[str, Any] | None = None,
        **more_inputs: Any,
    ) -> RemoteJob:
        """Make a job, durably, and return its handle. The same `key` gives the same job.

        Without a key it gets one of its own, so that the request can be sent again when its answer is lost.
        """
        wanted = Wanted(recipe, labels, priority, deadline, ttl, webhook, version, budget)
        return self._handle(self.run(flows.submit(self._means, wanted, joined(inputs, more_inputs), key)))

    def submit_many(
        self,
        recipe: str,
        /,
        inputs: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        deadline: Time | None = None,
        ttl: Time | None = None,
        version: int | None = None,
        budget: Decimal | float | str | None = None,
    ) -> list[RemoteJob]:
        """Make a job per element of `inputs`, up to a thousand to a request. A refusal is raised after the others."""
        wanted = Wanted(recipe, labels, priority, deadline, ttl, None, version, budget)
        return [self._handle(made) for made in self.run(flows.submit_many(self._means, wanted, inputs, keys))]

    def job(self, job_id: UUID | str) -> RemoteJob:
        """The handle of a job that exists."""
        return RemoteJob(self, job_id_of(job_id), is_new=False)

    def jobs(
        self,
        *,
        state: str | Sequence[str] | None = None,
        recipe: str | None = None,
        labels: Mapping[str, str] | None = None,
        failed_step: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        caller: str | None = None,
        deleted: bool = False,
    ) -> Iterator[JobView]:
        """The jobs that fit, the newest first; read a page at a time as you go on."""
        query = flows.filter_query(
            state=state, recipe=recipe, labels=labels, failed_step=failed_step, since=since, until=until,
            caller=caller, deleted=deleted,
        )  # fmt: skip
        return self.iterate(flows.jobs(self._means, query))

    def stream(self, after: str | None = None) -> Iterator[Event]:
        """What happens to all of the caller's jobs from now on, or after the event of this id. It does not end."""
        return self.iterate(following.stream_jobs(self._means, after))

    def recipes(self) -> list[RecipeView]:
        """Every recipe with its newest version."""
        return self.run(flows.recipes(self._means))

    def recipe(self, name: str, version: int | None = None) -> dict[str, Any]:
        """One recipe: its description, nodes, edges, schema of inputs and output."""
        return self.run(flows.recipe(self._means, name, version))

    def me(self) -> dict[str, Any]:
        """Who the server takes the caller for."""
        found: dict[str, Any] = self.run(flows.document(self._means, "/me"))
        return found

    def create_key(
        self,
        caller: str,
        *,
        name: str,
        caller_type: str = "user",
        tier: str | None = None,
        scopes: Sequence[str] | None = None,
        expires_in: float | None = None,
    ) -> tuple[str, KeyView]:
        """Make a key (for admins): its text, which cannot be asked for again, and what is kept of it."""
        known = {
            "caller": caller, "name": name, "caller_type": caller_type, "tier": tier,
            "scopes": None if scopes is None else list(scopes), "expires_in": expires_in,
        }  # fmt: skip
        wish = {name: value for name, value in known.items() if value is not None}
        return self.run(flows.create_key(self._means, wish))

    def keys(self, caller: str | None = None) -> list[KeyView]:
        """The keys that there are (for admins)."""
        return self.run(flows.keys(self._means, caller))

    def revoke_key(self, key_id: str) -> None:
        """End a key's life at once (for admins)."""
        self.run(flows.revoke_key(self._means, key_id))

    def providers(self) -> list[ProviderView]:
        """Every provider, with who has its places and who waits (for admins)."""
        return self.run(outside.providers(self._means))

    def provider(self, name: str) -> ProviderView:
        """One provider (for admins)."""
        return self.run(outside.provider(self._means, name))

    def budgets(self) -> list[BudgetView]:
        """Every budget (for admins)."""
        return self.run(outside.budgets(self._means))

    def set_budget(self, scope: str, name: str, most: Decimal | float | str) -> BudgetView:
        """Say how much a job, a recipe or a caller may spend in all (for admins)."""
        return self.run(outside.set_budget(self._means, scope, name, str(most)))

    def remove_budget(self, scope: str, name: str) -> None:
        """Lift a limit (for admins)."""
        self.run(outside.remove_budget(self._means, scope, name))

    def overview(self) -> dict[str, Any]:
        """What needs attention, what was done in the last hour, what waits."""
        found: dict[str, Any] = self.run(flows.document(self._means, "/overview"))
        return found

    def dead_letters(self) -> list[DeadLetterView]:
        """Failed jobs that nobody ran again, discarded or deleted, by kind of failure."""
        return self.run(again.dead_letters(self._means))

    def redrive(
        self,
        fingerprint: str,
        *,
        start: str = "failed",
        dry_run: bool = False,
        expect: int | None = None,
        reason: str = "",
    ) -> BulkView:
        """Run the dead letters of a kind again, up to 500: from where they `failed`, or from their `first` step."""
        wish = {"start": start, "dry_run": dry_run, "expect": expect, "reason": reason}
        return self.run(again.deal(self._means, fingerprint, "redrive", wish))

    def discard(
        self, fingerprint: str, *, dry_run: bool = False, expect: int | None = None, reason: str = ""
    ) -> BulkView:
        """Leave the dead letters of a kind as they are."""
        wish = {"dry_run": dry_run, "expect": expect, "reason": reason}
        return self.run(again.deal(self._means, fingerprint, "discard", wish))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

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
        """Perform a flow and give its value."""
        got: Got = None
        with _Line(self._http, self._timeout_s) as line:
            while True:
                try:
                    wish = flow.send(got)
                except StopIteration as end:
                    value: T = end.value
                    return value
                got = line.perform(wish)

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Perform a flow and give what it hands out."""
        got: Got = None
        with _Line(self._http, self._timeout_s) as line:
            while True:
                try:
                    wish = flow.send(got)
                except StopIteration:
                    return
                if isinstance(wish, Give):
                    yield wish.value
                    got = None
                else:
                    got = line.perform(wish)


class _Line:
    """Performs what one flow asks for; it has one stream open at most."""

    def __init__(self, http: httpx.Client, timeout_s: float) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._stream = ExitStack()
        self._chunks: Iterator[bytes] = iter(())

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()

    def perform(self, wish: Wish) -> Got:
        match wish:
            case Pause(seconds):
                time.sleep(seconds)
            case Ask():
                return self._ask(wish)
            case More():
                try:
                    return next(self._chunks, b"")
                except httpx.TransportError as error:
                    return lost_of(error)
            case Give():
                pass  # nobody iterates over this flow
        return None

    def _ask(self, ask: Ask) -> Answer | Lost:
        self._stream.close()
        self._chunks = iter(())
        timeout = httpx.Timeout(self._timeout_s, read=ask.timeout_s or self._timeout_s)
        request = self._http.build_request(
            ask.method, ask.path, params=ask.query or None, headers=dict(ask.headers), content=ask.body, timeout=timeout
        )
        try:
            response = self._http.send(request, stream=ask.is_stream)
            if ask.is_stream and response.status_code == 200:
                self._stream.callback(response.close)
                self._chunks = response.iter_bytes()
                return Answer(200, dict(response.headers))
            if ask.is_stream:
                response.read()
        except httpx.TransportError as error:
            return lost_of(error)
        return Answer(response.status_code, dict(response.headers), response.content)


class RemoteJob:
    """A handle: an id and what can be asked of it. It holds nothing, so it can be made again from the id."""

    def __init__(self, client: Client, job_id: UUID, *, is_new: bool = True) -> None:
        self._client = client
        self._means = client._means
        self.id = job_id
        # False when an earlier submission with the same idempotency key made the job.
        self.is_new = is_new

    def status(self) -> JobState:
        """Where the job stands."""
        return self.view().state

    def view(self) -> JobView:
        """Everything the server tells of the job, but for its steps."""
        return self._client.run(flows.job(self._means, self.id))

    def input(self) -> Any:
        """What the job was given."""
        return self._client.run(flows.document(self._means, f"/jobs/{self.id}/input"))

    def steps(self) -> Iterator[StepDocument]:
        """The job's steps, children of fan-outs among them."""
        return self._client.iterate(flows.steps(self._means, self.id))

    def wait(self, timeout: float | None = None) -> JobState:
        """Wait for the end and say which it was; raises WaitTimeout when it does not come in time."""
        return self._client.run(following.wait(self._means, self.id, timeout)).state

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the recipe's return value; raises JobFailed or JobCancelled when there is none."""
        return self._client.run(flows.result(self._means, self.id, timeout))

    def stream(self, after: int | None = None) -> Iterator[Event]:
        """Every event after the given one, as it happens, until the job has ended; across lost connections."""
        return self._client.iterate(following.stream_job(self._means, self.id, after))

    def events(self, after: int = 0) -> Iterator[Event]:
        """The events that there are by now, in order."""
        return self._client.iterate(flows.events(self._means, self.id, after))

    def graph(self, *, results: bool = False) -> dict[str, Any]:
        """The job's graph: nodes with their states, edges, what it waits for."""
        query = [("results", "true")] if results else []
        found: dict[str, Any] = self._client.run(flows.document(self._means, f"/jobs/{self.id}/graph", query))
        return found

    def why(self, step: str | None = None) -> list[Reason]:
        """What each unfinished step waits for."""
        return self._client.run(flows.why(self._means, self.id, step))

    def cancel(self, reason: str = "") -> JobView:
        """Ask for the end: open steps are cancelled, running ones are told to stop."""
        return self._client.run(flows.control(self._means, self.id, "cancel", {"reason": reason}))

    def pause(self) -> JobView:
        """Start no further steps; running ones finish."""
        return self._client.run(flows.control(self._means, self.id, "pause"))

    def resume(self) -> JobView:
        """Go on."""
        return self._client.run(flows.control(self._means, self.id, "resume"))

    def send_event(self, name: str, body: Any = None, *, id: str | None = None) -> str:
        """Tell the job something that a step waits for: `delivered`, or `kept` until one does.

        The same `id` again changes nothing, and is answered `already`.
        """
        return self._client.run(outside.send_event(self._means, self.id, name, {} if body is None else body, id))

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
        """Report on a step that was done elsewhere: `success`, `failed` or `progress` (for internal services).

        The token is `ctx.token` of the attempt that handed the work over. A report that comes twice, or too late,
        changes nothing.
        """
        wish = {
            "token": token, "status": status, "result": result, "error_code": error_code, "is_retryable": is_retryable,
            "error_message": error_message, "progress_pct": progress_pct, "progress_message": progress_message,
            "preview": preview, "cost": cost,
        }  # fmt: skip
        return self._client.run(outside.complete(self._means, self.id, wish))

    def costs(self) -> CostsView:
        """What the job's attempts cost."""
        return self._client.run(outside.costs(self._means, self.id))

    def retry(self) -> RemoteJob:
        """Run a failed job again from where it failed, as a new job."""
        return self._client._handle(self._client.run(again.again(self._means, self.id, Rerun("retry"))))

    def rerun(self, *, from_step: str | None = None, inputs: Mapping[str, Any] | None = None) -> RemoteJob:
        """Run a finished job again as a new job: from the start, or from a step with the other finished ones kept.

        `inputs`, if given, are all of its inputs, in place of those that it had.
        """
        wish = Rerun("rerun", from_step, inputs)
        return self._client._handle(self._client.run(again.again(self._means, self.id, wish)))

    def preview_retry(self) -> RerunView:
        """What `retry` would run again."""
        return self._client.run(again.preview(self._means, self.id, Rerun("retry")))

    def preview_rerun(self, *, from_step: str | None = None, inputs: Mapping[str, Any] | None = None) -> RerunView:
        """What `rerun` would run again, and what it would keep."""
        return self._client.run(again.preview(self._means, self.id, Rerun("rerun", from_step, inputs)))

    def delete(self) -> None:
        """Hide a finished job from lists; retention removes it later."""
        self._client.run(flows.delete(self._means, self.id))

    def __repr__(self) -> str:
        return f"RemoteJob({self.id})"
