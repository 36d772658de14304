"""Flows that run jobs again: retry, rerun, their previews, and dead letters. `exchange` defines a flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from windlass.client.asking import converted, get, send
from windlass.client.exchange import Flow, Sources
from windlass.client.views import BulkView, DeadLetterView


class Rerun(NamedTuple):
    """How to run a job again. `inputs` replaces all inputs of the job; None keeps them."""

    action: str
    from_step: str | None = None
    inputs: Mapping[str, Any] | None = None

    def body(self, **more: Any) -> dict[str, Any]:
        """Return the body of the request. A server of an earlier release accepts only an empty body."""
        given = {"from_step": self.from_step, "inputs": self.inputs, **more}
        return {name: value for name, value in given.items() if value is not None}


def again(sources: Sources, job_id: UUID, wish: Rerun, *, dry_run: bool = False) -> Flow[dict[str, Any]]:
    """Retry or rerun a job and return the new job's document. A request that is sent twice makes one job.

    With `dry_run`, make no job and return the document of the steps that would run again.
    """
    body = wish.body(dry_run=True) if dry_run else wish.body() or None
    headers = {} if dry_run else {"idempotency-key": sources.new_key()}
    document: dict[str, Any] = yield from send(sources, "POST", f"/jobs/{job_id}/{wish.action}", body, headers=headers)
    return document


def dead_letters(sources: Sources) -> Flow[list[DeadLetterView]]:
    """Return the dead letters by kind of failure."""
    return converted((yield from get(sources, "/dead-letters"))["items"], list[DeadLetterView])


def deal(sources: Sources, fingerprint: str, action: str, wish: Mapping[str, Any]) -> Flow[BulkView]:
    """Redrive or discard the dead letters of a kind.

    The client does not send this again after a lost answer. The server would act on no job twice, but the second
    answer would list no jobs.
    """
    given = {name: value for name, value in wish.items() if value is not None}
    path = f"/dead-letters/{quote(fingerprint, safe='')}/{action}"
    return converted((yield from send(sources, "POST", path, given, is_safe=False)), BulkView)
