"""Tells one address of the installation that an approval waits for people, and again when more people may decide.

The notice is signed as the webhooks of jobs are (Standard Webhooks), and repeated on the same schedule. It names the
approval and says nothing of its content: a person reads that with a key of its own. A notice of an approval that is
decided meanwhile is not sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, assert_never

import msgspec

from windlass.core.bell import DeliveryDue
from windlass.core.errors import Unavailable
from windlass.engine.loops.duty import Done
from windlass.engine.loops.sender import PAUSE_S, SenderLoop
from windlass.outbound.send import SEND_WITHIN_S, Sent
from windlass.outbound.webhook_sender import LOOK_EVERY_S, Posts, time_text
from windlass.pure.webhook import Again, Dead, Delivered, after_try, sign
from windlass.store.database import Database
from windlass.store.statements import sql

LEASE_S = 60.0
BATCH_MAX = 20
_BEGIN_WITHIN_S = LEASE_S - 3 * SEND_WITHIN_S

log = logging.getLogger("windlass.outbound")


@dataclass(frozen=True, slots=True)
class NoticeReceiver:
    """The address for notices, and the secret that signs them. `repr` leaves the secret out."""

    url: str
    secret: bytes

    def __repr__(self) -> str:
        return f"NoticeReceiver({self.url!r})"


def document(row: Any, public_url: str = "") -> bytes:
    """Build the body of a notice."""
    place = f"{public_url}/approvals/{row['id']}"
    data = {
        "approval_id": str(row["id"]),
        "job_id": str(row["job_id"]),
        "recipe": row["recipe"],
        "question": row["question"],
        "rule": row["rule"],
        "reason": row["reason"],
        "requester": row["requester"],
        "need": row["need"],
        "who": msgspec.json.decode(row["who"]),
        "created_at": time_text(row["created_at"]),
        "expires_at": time_text(row["expires_at"]),
        "links": {"self": place, "console": f"{public_url}/console/approvals/{row['id']}"},
    }
    told = {"type": f"approval.{row['notice']}", "timestamp": time_text(row["now"]), "data": data}
    return msgspec.json.encode(told)


class ApprovalSender(SenderLoop):
    """Sends the notices that are due."""

    name = "approval-notices"
    bell = DeliveryDue
    title = "the sender of approval notices"

    def __init__(
        self,
        db: Database,
        receiver: NoticeReceiver,
        posts: Posts,
        *,
        spread: Callable[[], float],
        clock_s: Callable[[], float],
        public_url: str | None = None,
    ) -> None:
        super().__init__(db, log, clock_s)
        self._receiver = receiver
        self._posts = posts
        self._spread = spread
        self._public_url = (public_url or "").rstrip("/")
        self._agent = f"Windlass/{version('windlass')}"
        self._under_way: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Take no more notices. A notice under way is sent again when its lease has expired."""
        await super().stop()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def run_once(self) -> Done:
        """Take due notices, send them, and wait for the answers."""
        taken = await self._take()
        await asyncio.gather(*taken)
        return Done(len(taken), bool(taken))

    async def turn(self) -> float:
        """Take due notices that there is room for, and begin to send them."""
        if await self._take():
            return 0.0
        due_s = await self._db.run(lambda connection: connection.fetchval(sql("notice_next")))
        return LOOK_EVERY_S if due_s is None else min(LOOK_EVERY_S, max(PAUSE_S, due_s))

    def under_way(self) -> Iterable[asyncio.Task[None]]:
        """Return the deliveries under way."""
        return self._under_way

    async def _take(self) -> list[asyncio.Task[None]]:
        room = BATCH_MAX - len(self._under_way)
        if room <= 0:
            return []
        begun_s = self._clock_s()
        rows = await self._db.run(lambda connection: connection.fetch(sql("notice_claim"), room, LEASE_S))
        taken = [asyncio.create_task(self._deliver(row, begun_s), name="windlass-notice") for row in rows]
        for task in taken:
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return taken

    async def _deliver(self, row: Any, begun_s: float) -> None:
        """Try one delivery. After an error on our side the row waits for its lease."""
        try:
            if self._clock_s() - begun_s <= _BEGIN_WITHIN_S:
                await self._report(row, await self._send(row))
        except Unavailable as error:
            log.warning("the result of a notice could not be recorded; approval=%s: %s", row["id"], error)
        except Exception:
            log.exception("a notice failed with an internal error; approval=%s", row["id"])

    async def _send(self, row: Any) -> Sent:
        body, timestamp = document(row, self._public_url), int(row["now"].timestamp())
        # The id contains no full stop, because a full stop separates the signed parts.
        id = f"{row['id']}_{row['notice']}"
        headers = {
            "User-Agent": self._agent,
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(self._receiver.secret, id, timestamp, body),
        }
        return await self._posts.post(self._receiver.url, body, headers)

    async def _report(self, row: Any, sent: Sent) -> None:
        outcome = after_try(row["notice_failures"], sent.status, sent.fault, self._spread(), sent.retry_after_s)
        failures = row["notice_failures"]
        after_s: float | None
        match outcome:
            case Delivered():
                after_s, code = None, None
            case Again(after_s=again_s, code=code):
                after_s, failures = again_s, failures + 1
            case Dead(code=code):
                after_s, failures = None, failures + 1
                log.warning("a notice could not be delivered; approval=%s error=%s", row["id"], code)
            case _:
                assert_never(outcome)
        values = (row["id"], row["notice_attempt"], failures, after_s, code)
        await self._db.run(lambda connection: connection.execute(sql("notice_report"), *values))
