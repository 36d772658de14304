"""The webhook sender sends the notice of a job's end to the job's webhook.

    DUE ─► claim: attempt + 1, a lease ─► send, outside of any transaction ─► report for that attempt
                                              │ the webhook sender dies
                                              ▼
                                    the lease expires, and it is DUE again

Delivery is at least once. A webhook sender that dies between the receiver's answer and its own report leaves the row
due. Another webhook sender then sends it again with the same `webhook-id`. A report for an older attempt changes
nothing, so two webhook senders cannot undo each other's results. An unreported attempt does not count as a failure.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Protocol, assert_never
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import DeliveryDue
from windlass.core.errors import NotFound, Unavailable, WindlassError, WrongState
from windlass.core.states import JobState
from windlass.core.visibility import Reader
from windlass.engine.loops.duty import Done
from windlass.engine.loops.sender import PAUSE_S, SenderLoop
from windlass.outbound.send import SEND_WITHIN_S, Sent
from windlass.pure.audit import payload_text
from windlass.pure.redact import without_frames
from windlass.pure.webhook import Again, Dead, Delivered, DeliveryState, after_try, delivery_id, sign
from windlass.store.database import Database
from windlass.store.outputs import fetch
from windlass.store.statements import sql

LEASE_S = 60.0
# Later than this within the lease, a request could still be under way when another webhook sender begins its own.
_BEGIN_WITHIN_S = LEASE_S - 3 * SEND_WITHIN_S
# A bell can be lost, so the webhook sender checks this often without one.
LOOK_EVERY_S = 5.0
STOP_WITHIN_S = 3.0

log = logging.getLogger("windlass.outbound")


class Opener(Protocol):
    """Opens sealed secrets (`access/secret.py`)."""

    def open(self, sealed: bytes) -> bytes:
        """Return the plain bytes."""
        ...


class Posts(Protocol):
    """Sends one request (`outbound/send.py`)."""

    async def post(self, url: str, body: bytes, headers: dict[str, str], *, caller: str = "") -> Sent:
        """Send the request on behalf of this caller and return the result. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class WebhookView:
    """A job's webhook as its owner sees it, without the secret."""

    job_id: UUID
    url: str
    state: DeliveryState
    attempt: int
    failures: int
    due_at: datetime | None
    answer: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


async def webhook_of(db: Database, job_id: UUID) -> WebhookView:
    """Return the job's webhook. Raises NotFound when it has none."""
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("webhook_get"), job_id)
    if row is None:
        raise NotFound(f"job {job_id} has no webhook", remedy="Name a webhook when you submit the job")
    return WebhookView(**{**row, "state": DeliveryState(row["state"])})


async def redeliver(connection: asyncpg.Connection, job_id: UUID) -> None:
    """Make the webhook due at once, with the whole schedule ahead.

    The caller has checked that the job has a webhook.
    """
    if await connection.fetchrow(sql("webhook_redeliver"), job_id) is None:
        raise WrongState(f"job {job_id} has not ended yet", remedy="Its webhook is sent when it has ended")
    connection.ring(DeliveryDue())


def document(row: Any, public_url: str = "", *, has_tracebacks: bool = False) -> bytes:
    """Build the body: that the job has ended and how. Receivers fetch inputs and outputs with a key."""
    state, job_id = JobState(row["state"]), row["job_id"]
    error = None if row["error"] is None else msgspec.json.decode(row["error"])
    labels = None if row["labels"] is None else msgspec.json.decode(row["labels"])
    place = f"{public_url}/jobs/{job_id}"
    data = {
        "job_id": str(job_id),
        "recipe": row["recipe"],
        "status": state,
        "labels": labels or {},
        "error": error if has_tracebacks else without_frames(error),
        "failed_step": (error or {}).get("step") or None,
        "created_at": time_text(row["created_at"]),
        "finished_at": time_text(row["finished_at"]),
        "links": {"self": place, "output": f"{place}/output", "events": f"{place}/events"},
    }
    notice = {"type": f"job.{state.lower()}", "timestamp": time_text(row["finished_at"]), "data": data}
    return msgspec.json.encode(notice)


def time_text(at: datetime) -> str:
    """Return a time as webhooks write it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class WebhookSender(SenderLoop):
    """Sends due webhooks. Any number may run: a row belongs to one webhook sender until its lease expires."""

    name = "webhooks"
    bell = DeliveryDue
    title = "the webhook sender"

    def __init__(
        self,
        db: Database,
        secret: Opener,
        posts: Posts,
        *,
        spread: Callable[[], float],
        clock_s: Callable[[], float],
        per_host_max: int = 4,
        per_caller_max: int = 20,
        batch: int = 50,
        public_url: str | None = None,
        has_tracebacks: bool = False,
        on_result: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(db, log, clock_s)
        self._secret = secret
        self._posts = posts
        self._spread = spread
        self._per_host_max = per_host_max
        self._per_caller_max = per_caller_max
        self._batch = batch
        self._public_url = (public_url or "").rstrip("/")
        self._has_tracebacks = has_tracebacks
        self._on_result = on_result or (lambda _: None)
        self._agent = f"Windlass/{version('windlass')}"
        # Deliveries under way, by host and by caller.
        self._busy: Counter[str] = Counter()
        self._callers: Counter[str] = Counter()
        self._under_way: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Take no more deliveries, and wait briefly for deliveries under way.

        The rest is sent again when its lease has expired.
        """
        await super().stop()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=STOP_WITHIN_S)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def run_once(self) -> Done:
        """Take due deliveries that there is room for, send them, and wait for the answers."""
        taken = await self._take()
        await asyncio.gather(*taken)
        return Done(len(taken), bool(taken))

    async def turn(self) -> float:
        """Take due deliveries that there is room for, and begin to send them."""
        return 0.0 if await self._take() else await self._next_s()

    def under_way(self) -> Iterable[asyncio.Task[None]]:
        """Return the deliveries under way."""
        return self._under_way

    async def _next_s(self) -> float:
        due_s = await self._db.run(lambda connection: connection.fetchval(sql("webhook_next")))
        if due_s is None:
            return LOOK_EVERY_S
        # A due row that was not taken belongs to another webhook sender, or its host or caller has no room.
        return PAUSE_S if due_s <= 0 else min(LOOK_EVERY_S, due_s + 0.005)

    async def _take(self) -> list[asyncio.Task[None]]:
        room = self._batch - len(self._under_way)
        if room <= 0:
            return []
        hosts, callers = sorted(self._busy.items()), sorted(self._callers.items())
        values = (
            *(room, LEASE_S),
            *([host for host, _ in hosts], [count for _, count in hosts], self._per_host_max),
            *([caller for caller, _ in callers], [count for _, count in callers], self._per_caller_max),
        )
        begun_s = self._clock_s()
        rows = await self._db.run(lambda connection: fetch(connection, "webhook_claim", Reader.WEBHOOK, *values))
        return [self._begin(row, begun_s) for row in rows]

    def _begin(self, row: Any, begun_s: float) -> asyncio.Task[None]:
        self._busy[row["host"]] += 1
        self._callers[row["caller"]] += 1
        task = asyncio.create_task(self._deliver(row, begun_s), name="windlass-delivery")
        self._under_way.add(task)

        def ended(_: asyncio.Task[None]) -> None:
            self._under_way.discard(task)
            self._busy[row["host"]] -= 1
            self._callers[row["caller"]] -= 1
            # This drops the zeros.
            self._busy += Counter()
            self._callers += Counter()

        task.add_done_callback(ended)
        return task

    async def _deliver(self, row: Any, begun_s: float) -> None:
        """Send one delivery and record its result. After an internal error the row is due when its lease expires."""
        try:
            if self._clock_s() - begun_s > _BEGIN_WITHIN_S:
                log.warning("a delivery came too late to be begun; job=%s attempt=%d", row["job_id"], row["attempt"])
                return
            await self._report(row, await self._send(row))
        except Unavailable as error:
            log.warning("the result of a delivery could not be recorded; job=%s: %s", row["job_id"], error)
        except Exception:
            log.exception("a delivery failed with an internal error; job=%s attempt=%d", row["job_id"], row["attempt"])

    async def _send(self, row: Any) -> Sent:
        try:
            secret = self._secret.open(bytes(row["secret"]))
        except (WindlassError, ValueError):
            # The secret is sealed under an installation secret that this process does not have.
            return Sent(None, "sealed", None, 0.0)
        body = document(row, self._public_url, has_tracebacks=self._has_tracebacks)
        id, timestamp = delivery_id(row["job_id"], JobState(row["state"])), int(row["now"].timestamp())
        headers = {
            "User-Agent": self._agent,
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(secret, id, timestamp, body),
        }
        return await self._posts.post(row["url"], body, headers, caller=row["caller"])

    async def _report(self, row: Any, sent: Sent) -> None:
        outcome = after_try(row["failures"], sent.status, sent.fault, self._spread(), sent.retry_after_s)
        match outcome:
            case Delivered():
                state, failures, code, after_s = DeliveryState.DELIVERED, row["failures"], None, 0.0
            case Again(after_s=after_s, code=code):
                state, failures = DeliveryState.DUE, row["failures"] + 1
            case Dead(code=code):
                state, failures, after_s = DeliveryState.DEAD, row["failures"] + 1, 0.0
            case _:
                assert_never(outcome)
        note = payload_text({"job_id": str(row["job_id"]), "error": code, "tries": row["attempt"]})
        values = (row["job_id"], row["attempt"], state, failures, sent.status, code, note, after_s)
        await self._db.run(lambda connection: connection.fetchval(sql("webhook_report"), *values))
        self._on_result(state)
