"""Notices of waiting approvals, on the test's clock, to a receiver that is a process of its own."""

from __future__ import annotations

import json
import random
from typing import Any
from uuid import UUID

from tests.engine.rig import plan, task
from tests.outbound.receiver import Receiver
from tests.outbound.rig import WEBHOOK_SECRET, Hooks
from windlass.core.approval import Choice, Voter
from windlass.core.plan import Node, NodeKind
from windlass.engine.approvals import Cast, vote
from windlass.outbound.approval_sender import LEASE_S, ApprovalSender, NoticeReceiver
from windlass.outbound.send import Sent
from windlass.outbound.webhook_sender import Posts
from windlass.pure.webhook import RETRY_AFTER_S, parse_secret, verify

LEADS = {"who": {"roles": ["lead"], "escalate_after_s": 3600.0, "escalate_roles": ["cto"]}}
ASKS = plan(
    Node(
        "ok",
        NodeKind.APPROVAL,
        with_={"question": "Publish?", "show": {"secret": "${inputs.word}"}},
        wait_s=86_400.0,
        approval=LEADS,
    ),
    task("after", "ok"),
)


class Answers:
    """A double of `Posts` that answers what it is told to."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.count = 0

    async def post(self, url: str, body: bytes, headers: dict[str, str], *, caller: str = "") -> Sent:
        self.count += 1
        return Sent(self.status, None, None, 0.0)


def sender(hooks: Hooks, url: str, posts: Posts | None = None) -> ApprovalSender:
    return ApprovalSender(
        hooks.rig.db,
        NoticeReceiver(url, parse_secret(WEBHOOK_SECRET)),
        posts or hooks.posts,
        spread=random.Random(7).random,
        clock_s=lambda: 0.0,
        public_url="https://windlass.example",
    )


async def waiting(hooks: Hooks) -> UUID:
    job = await hooks.rig.submit(ASKS, {"word": "hush"}, caller="ada")
    await hooks.rig.loops.run_until_idle()
    async with hooks.rig.db.connection() as connection:
        id: UUID = await connection.fetchval("SELECT id FROM windlass.approvals WHERE job_id = $1", job)
    return id


async def row(hooks: Hooks, id: UUID) -> Any:
    async with hooks.rig.db.connection() as connection:
        return await connection.fetchrow("SELECT * FROM windlass.approvals WHERE id = $1", id)


async def test_a_waiting_approval_is_told_once_signed_and_without_its_values(hooks: Hooks, receiver: Receiver) -> None:
    id = await waiting(hooks)
    sends = sender(hooks, receiver.url("ok"))
    assert (await sends.run_once()).count == 1
    assert (await sends.run_once()).count == 0
    [seen] = receiver.seen()
    body = json.loads(seen["body"])
    assert (body["type"], body["data"]["approval_id"], body["data"]["question"]) == (
        "approval.requested", str(id), "Publish?",
    )  # fmt: skip
    assert body["data"]["links"]["console"] == f"https://windlass.example/console/approvals/{id}"
    assert "hush" not in seen["body"]
    headers = {name.lower(): value for name, value in dict(seen["headers"]).items()}
    now = int(headers["webhook-timestamp"])
    assert verify([parse_secret(WEBHOOK_SECRET)], headers, seen["body"].encode(), now)


async def test_an_escalation_is_told_too(hooks: Hooks, receiver: Receiver) -> None:
    await waiting(hooks)
    sends = sender(hooks, receiver.url("ok"))
    await sends.run_once()
    hooks.rig.clock.advance(3600)
    await hooks.rig.loops.run_until_idle()
    await sends.run_once()
    assert [json.loads(one["body"])["type"] for one in receiver.seen()] == ["approval.requested", "approval.escalated"]


async def test_a_notice_that_fails_is_repeated_on_the_schedule(hooks: Hooks) -> None:
    id = await waiting(hooks)
    posts = Answers(500)
    sends = sender(hooks, "http://receiver.example", posts)
    for after_s in RETRY_AFTER_S[:2]:
        assert (await sends.run_once()).count == 1
        assert (await sends.run_once()).count == 0
        hooks.rig.clock.advance(after_s * 1.2)
    found = await row(hooks, id)
    assert (posts.count, found["notice_failures"], found["notice_error"]) == (2, 2, "http_500")
    posts.status = 410
    await sends.run_once()
    assert (await row(hooks, id))["notice_due_at"] is None


async def test_a_notice_of_a_decided_approval_is_not_sent(hooks: Hooks) -> None:
    id = await waiting(hooks)
    await vote(hooks.rig.db, Cast(id, Voter("grace", frozenset({"lead"}), True), Choice.APPROVE))
    posts = Answers(204)
    assert (await sender(hooks, "http://receiver.example", posts).run_once()).count == 0
    assert posts.count == 0


async def test_a_sender_that_died_is_replaced_after_its_lease(hooks: Hooks) -> None:
    id = await waiting(hooks)
    posts = Answers(204)
    sends = sender(hooks, "http://receiver.example", posts)
    async with hooks.rig.db.connection() as connection:
        await connection.execute(
            "UPDATE windlass.approvals SET notice_attempt = 1,"
            " notice_due_at = windlass.clock() + make_interval(secs => $1)",
            LEASE_S,
        )
    assert (await sends.run_once()).count == 0
    hooks.rig.clock.advance(LEASE_S)
    assert (await sends.run_once()).count == 1
    assert (await row(hooks, id))["notice_attempt"] == 2


def test_a_receiver_does_not_show_its_secret() -> None:
    assert "b'" not in repr(NoticeReceiver("https://x.example", b"secret"))
