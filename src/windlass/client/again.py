"""Flows about running jobs again: retry, rerun, what they would do, and dead letters. See `exchange`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from windlass.client.asking import converted, get, send
from windlass.client.exchange import Flow, Means
from windlass.client.flows import Made
from windlass.client.views import BulkView, DeadLetterView, JobView, RerunView


class Rerun(NamedTuple):
    """How a job is to be run again; `inputs` are all of them, None those that it had."""

    action: str
    from_step: str | None = None
    inputs: Mapping[str, Any] | None = None

    def body(self, **more: Any) -> dict[str, Any]:
        """What is sent. A server of an earlier release takes an empty body and no other."""
        given = {"from_step": self.from_step, "inputs": self.inputs, **more}
        return {name: value for name, value in given.items() if value is not None}


def again(means: Means, job_id: UUID, wish: Rerun) -> Flow[Made]:
    """Retry or rerun; sent twice, it makes one job."""
    headers = {"idempotency-key": means.new_key()}
    body = yield from send(means, "POST", f"/jobs/{job_id}/{wish.action}", wish.body() or None, headers=headers)
    view = converted(body, JobView)
    return Made(view.id, view.is_new)


def preview(means: Means, job_id: UUID, wish: Rerun) -> Flow[RerunView]:
    """What would run again, without making a job."""
    path = f"/jobs/{job_id}/{wish.action}"
    return converted((yield from send(means, "POST", path, wish.body(dry_run=True))), RerunView)


def dead_letters(means: Means) -> Flow[list[DeadLetterView]]:
    """Failed jobs that nobody has dealt with, by kind."""
    return converted((yield from get(means, "/dead-letters"))["items"], list[DeadLetterView])


def deal(means: Means, fingerprint: str, action: str, wish: Mapping[str, Any]) -> Flow[BulkView]:
    """Redrive or discard a kind.

    Not sent again when the answer is lost: nothing would be done twice, but the second answer would tell of nothing.
    """
    given = {name: value for name, value in wish.items() if value is not None}
    path = f"/dead-letters/{quote(fingerprint, safe='')}/{action}"
    return converted((yield from send(means, "POST", path, given, is_safe=False)), BulkView)
