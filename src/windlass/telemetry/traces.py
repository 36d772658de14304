"""Traces: one for each job, from its submission through every attempt, across processes.

    trace id = the job's id             so spans belong together without stored or forwarded ids
      root      the job, from submission to end     sent by the process that follows the feed when it ends
      ├ submit  the commit that made it             sent by the process that took it
      ├ attempt one attempt of a step; the handler's own spans are below it
      ├ child   a job that it started, which has its own trace: each links to the other
      └ …
    an HTTP request continues its caller's trace, and links to the job that it made

Only `open_tracer` loads OpenTelemetry, so a process without traces neither needs nor pays for it. An ended span goes
into a bounded queue, from which a thread sends. If the receiver does not accept spans, the queue fills and the oldest
spans are dropped: nothing here ever waits, and `close` gives up after CLOSE_WITHIN_S.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from windlass.core.errors import BadSetting

QUEUE_MAX = 4_096
BATCH_MAX = 512
SEND_EVERY_S = 1.0
SEND_WITHIN_S = 5.0
CLOSE_WITHIN_S = 2.0
LINKS_MAX = 100
TRACES_PATH = "/v1/traces"

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_BAD_ENDS = frozenset({"failed", "timeout", "FAILED", "TIMEOUT", "EXPIRED", "DENIED", "OUTPUT_QUARANTINED"})
# The jobs made by the request that is answered here; None when requests are not traced.
_made: ContextVar[list[UUID] | None] = ContextVar("windlass_made", default=None)

_log = logging.getLogger("windlass.traces")


def trace_id(job_id: UUID) -> int:
    """Return the id of a job's trace."""
    return job_id.int


def span_id(job_id: UUID, *place: object) -> int:
    """Return the id of a span in a job's trace: the job's own span, or the span at `place`."""
    named = b"".join(b"\x00" + str(part).encode(errors="replace") for part in place)
    return int.from_bytes(hashlib.sha256(job_id.bytes + named).digest()[-8:], "big") or 1


def link_job(job_id: UUID) -> None:
    """Record that the request answered here made this job."""
    made = _made.get()
    if made is not None and len(made) < LINKS_MAX:
        made.append(job_id)


class RequestSpan:
    """One HTTP request. Created when it begins, ended when its response does."""

    __slots__ = ("_began_ns", "_is_sampled", "_made", "_parent", "_tracer", "trace_id")

    def __init__(self, tracer: Tracer, traceparent: str | None, new_id: int) -> None:
        self._tracer = tracer
        self._began_ns = time.time_ns()
        self._parent: int | None = None
        self._is_sampled = True
        self.trace_id = new_id
        if traceparent is not None and (given := _TRACEPARENT.fullmatch(traceparent)) is not None:
            parent = int(given[2], 16)
            if int(given[1], 16) and parent:
                self.trace_id, self._parent = int(given[1], 16), parent
                self._is_sampled = bool(int(given[3], 16) & 1)
        self._made: list[UUID] = []
        _made.set(self._made)

    def end(self, method: str, route: str, status: int, request_id: str) -> None:
        """End the span when the response has begun; `route` is the path from the API document."""
        if self._is_sampled:
            self._tracer._request(self, method, route, status, request_id)


class Tracer:
    """Makes the spans of this process. Use `open_tracer`."""

    def __init__(self, processor: Any, resource: Any, provider: Any) -> None:
        from opentelemetry import context, trace
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._processor = processor
        self._resource = resource
        self._provider = provider
        self._trace = trace
        self._context = context
        self._span = ReadableSpan
        self._scope = InstrumentationScope("windlass", metadata.version("windlass"))
        self._is_failing = False

    # Calls of the observer.

    def submitted(self, job_id: UUID, seconds: float) -> None:
        """Record a commit that made this job."""
        ended_ns = time.time_ns()
        began_ns = ended_ns - int(seconds * 1e9)
        self._put(partial(self._of_job, job_id, "submit", ("submit",), began_ns, ended_ns, {}, "PRODUCER"))

    def attempt(
        self, job_id: UUID, recipe: str, step: str, index: int | None, attempt: int, request_id: str | None
    ) -> Callable[[str], None]:
        """Record the start of a handler: spans that the handler makes are below the attempt's."""
        place = (step, "" if index is None else index, attempt)
        facts: dict[str, Any] = {"windlass.recipe": recipe, "windlass.step": step, "windlass.attempt": attempt}
        if index is not None:
            facts["windlass.index"] = index
        if request_id is not None:
            facts["windlass.request_id"] = request_id
        trace = self._trace
        here = trace.NonRecordingSpan(self._place(trace_id(job_id), span_id(job_id, *place)))
        self._context.attach(trace.set_span_in_context(here))
        return partial(self._attempt_ended, job_id, place, time.time_ns(), facts)

    def _attempt_ended(
        self, job_id: UUID, place: tuple[object, ...], began_ns: int, facts: dict[str, Any], outcome: str
    ) -> None:
        facts["windlass.outcome"] = outcome
        name = str(place[0])
        self._put(partial(self._of_job, job_id, name, place, began_ns, time.time_ns(), facts, "CONSUMER"))

    def ended(
        self,
        job_id: UUID,
        recipe: str,
        state: str,
        created_at: datetime,
        finished_at: datetime,
        request_id: str | None,
        parent: UUID | None = None,
    ) -> None:
        """Record the end of a job: the root span of its trace, and its span in its parent's trace."""
        facts: dict[str, Any] = {"windlass.recipe": recipe, "windlass.outcome": state}
        if request_id is not None:
            facts["windlass.request_id"] = request_id
        times = (_ns(created_at), _ns(finished_at))
        self._put(partial(self._of_job, job_id, recipe, (), *times, facts, "INTERNAL", parent))
        if parent is not None:
            below = {**facts, "windlass.child": str(job_id)}
            self._put(partial(self._of_job, parent, recipe, ("child", job_id), *times, below, "INTERNAL", job_id))

    # Calls of the service.

    def request(self, traceparent: str | None, new_id: UUID) -> RequestSpan:
        """Begin a request's span. It continues the trace that its caller names, or begins a trace of this id."""
        return RequestSpan(self, traceparent, new_id.int)

    def _request(self, span: RequestSpan, method: str, route: str, status: int, request_id: str) -> None:
        facts: dict[str, Any] = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
            "windlass.request_id": request_id,
        }

        def make() -> Any:
            trace = self._trace
            parent = None if span._parent is None else self._place(span.trace_id, span._parent, is_remote=True)
            return self._span(
                f"{method} {route}",
                context=self._place(span.trace_id, span_id(UUID(int=span.trace_id), request_id, span._began_ns)),
                parent=parent,
                resource=self._resource,
                attributes=facts,
                links=[trace.Link(self._place(trace_id(job), span_id(job))) for job in span._made],
                kind=trace.SpanKind.SERVER,
                status=trace.Status(trace.StatusCode.ERROR if status >= 500 else trace.StatusCode.UNSET),
                start_time=span._began_ns,
                end_time=time.time_ns(),
                instrumentation_scope=self._scope,
            )

        self._put(make)

    # Making and sending.

    def _of_job(
        self,
        job_id: UUID,
        name: str,
        place: tuple[object, ...],
        began_ns: int,
        ended_ns: int,
        facts: dict[str, Any],
        kind: str,
        link: UUID | None = None,
    ) -> Any:
        trace = self._trace
        is_bad = facts.get("windlass.outcome") in _BAD_ENDS
        return self._span(
            name,
            context=self._place(trace_id(job_id), span_id(job_id, *place)),
            parent=self._place(trace_id(job_id), span_id(job_id), is_remote=True) if place else None,
            resource=self._resource,
            attributes={"windlass.job": str(job_id), **facts},
            links=[] if link is None else [trace.Link(self._place(trace_id(link), span_id(link)))],
            kind=trace.SpanKind[kind],
            status=trace.Status(trace.StatusCode.ERROR if is_bad else trace.StatusCode.UNSET),
            start_time=began_ns,
            end_time=max(began_ns, ended_ns),
            instrumentation_scope=self._scope,
        )

    def _place(self, trace: int, span: int, is_remote: bool = False) -> Any:
        sampled = self._trace.TraceFlags(self._trace.TraceFlags.SAMPLED)
        return self._trace.SpanContext(trace, span, is_remote=is_remote, trace_flags=sampled)

    def _put(self, make: Callable[[], Any]) -> None:
        """Hand a span to the queue. An error is logged once and never reaches the worker."""
        try:
            self._processor.on_end(make())
        except Exception:
            if not self._is_failing:
                self._is_failing = True
                _log.exception("spans cannot be made; traces are incomplete")

    async def close(self) -> None:
        """Send the remaining spans, if the receiver accepts them soon."""
        sending = threading.Thread(target=self._provider.shutdown, name="windlass-traces-close", daemon=True)
        sending.start()
        until_s = time.monotonic() + CLOSE_WITHIN_S
        while sending.is_alive():
            if time.monotonic() > until_s:
                _log.warning("the receiver did not accept the last spans within %g s; they are dropped", CLOSE_WITHIN_S)
                return
            await asyncio.sleep(0.01)


def open_tracer(endpoint: str, service: str, *, is_default: bool = False) -> Tracer:
    """Send spans to an OTLP/HTTP receiver. With `is_default`, handlers' own OpenTelemetry spans go there too."""
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise BadSetting(
            "traces need OpenTelemetry, which is not installed", remedy="pip install 'windlass[otel]'"
        ) from error
    if urlsplit(endpoint).path in ("", "/"):
        endpoint = endpoint.rstrip("/") + TRACES_PATH
    resource = Resource.create({"service.name": service, "service.version": metadata.version("windlass")})
    processor = BatchSpanProcessor(
        OTLPSpanExporter(endpoint=endpoint, timeout=SEND_WITHIN_S),
        max_queue_size=QUEUE_MAX,
        max_export_batch_size=BATCH_MAX,
        schedule_delay_millis=SEND_EVERY_S * 1000,
    )
    # Not at exit: it would wait there for a receiver that hangs.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    if is_default:
        trace.set_tracer_provider(provider)
    return Tracer(processor, resource, provider)


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
