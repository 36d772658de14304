"""Schedules and signs webhooks, and plays the faults of their delivery."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from windlass.core.external import ProviderStatus
from windlass.pure.signature import SignatureProfile, secret_of, sign
from windlass.testing.fake_provider.posts import Poster
from windlass.testing.fake_provider.speech import Teller
from windlass.testing.fake_provider.work import Work

_WRONG = "whsec_" + "bm90IHRoZSBzZWNyZXQgYXQgYWxsLCBidXQgbG9uZw"
_TICK_S = 0.001
_FAULTS = ("drop", "double", "delay", "forge")


class FalKeys:
    """The Ed25519 key of a FAL-style provider, and the set of keys that it publishes."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.generate()

    def public(self) -> bytes:
        """Return the raw public key."""
        return self._key.public_key().public_bytes_raw()

    def headers(self, request_id: str, body: bytes, now_s: float) -> dict[str, str]:
        """Return the headers for a body."""
        stamp = str(int(now_s))
        signed = "\n".join([request_id, "user_fake", stamp, hashlib.sha256(body).hexdigest()]).encode()
        return {
            "x-fal-webhook-request-id": request_id,
            "x-fal-webhook-user-id": "user_fake",
            "x-fal-webhook-timestamp": stamp,
            "x-fal-webhook-signature": self._key.sign(signed).hex(),
        }


class Sender:
    """Sends webhooks. `secret` signs them, in its textual form; `fal_keys` also sign FAL's webhooks.

    `by_protocol` has the secrets of protocols with a separate secret.
    """

    def __init__(
        self, secret: str, fal_keys: FalKeys | None = None, by_protocol: Mapping[str, str] | None = None
    ) -> None:
        self._secret = secret
        self._by_protocol = by_protocol or {}
        self.fal_keys = fal_keys
        self._poster = Poster()
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: set[str] = set()
        self._late: dict[str, tuple[bytes, str]] = {}

    @property
    def under_way(self) -> int:
        """The number of webhooks being sent."""
        return len(self._tasks)

    def close(self) -> None:
        """Cancel all sending, and close the connections."""
        for task in self._tasks:
            task.cancel()
        self._poster.close()

    def plan(self, teller: Teller, work: Work) -> None:
        """Schedule the webhooks of the work's beginning and end."""
        loop = asyncio.get_running_loop()
        now = teller.works.now()
        if not work.is_end_noted:
            begins_s = max(0.0, work.created_at + work.manner.queued_s - now)
            loop.call_later(begins_s, lambda: self._begin(self._send_begin(teller, work)))
        done_at = work.ended_at if work.is_end_noted else work.done_at()
        if done_at is not None:
            loop.call_later(max(0.0, done_at - now), self._end_in_time, teller, work)

    def soon(self, teller: Teller, work: Work) -> None:
        """Start to send the webhook of the work's end."""
        self._told.add(work.id)
        self._begin(self.send_end(teller, work))

    def _end_in_time(self, teller: Teller, work: Work) -> None:
        if work.id in self._told:
            return  # the work was ended earlier, and its webhook was sent
        status = work.status(teller.works.now())
        if not status.is_terminal:
            # The loop's clock and the wall clock differ by microseconds.
            asyncio.get_running_loop().call_later(_TICK_S, self._end_in_time, teller, work)
            return
        teller.end(work, status)
        self.soon(teller, work)

    async def _send_begin(self, teller: Teller, work: Work) -> None:
        if work.is_end_noted:
            return
        body = teller.speeches[work.protocol].news(work, ProviderStatus.RUNNING)
        if body is None:
            return
        if teller.faults.pick("webhook", work.protocol, "reorder") is not None:
            self._late[work.id] = (body, f"msg_{work.id}_begin")
            return
        await self._send(teller, work, body, "begin")

    async def send_end(self, teller: Teller, work: Work) -> None:
        """Send the webhook of the work's end now."""
        body = teller.speeches[work.protocol].news(work, work.status(teller.works.now()))
        if body is None:
            return
        await self._send(teller, work, body, "end")
        late = self._late.pop(work.id, None)
        if late is not None:
            await self._send(teller, work, late[0], "begin")

    async def _send(self, teller: Teller, work: Work, body: bytes, way: str) -> None:
        fault = teller.faults.pick("webhook", work.protocol, *_FAULTS)
        kind = "" if fault is None else fault.kind
        if fault is not None:
            teller.note("fault", work, way=f"webhook:{kind}")
        if kind == "drop":
            return
        if kind == "delay" and fault is not None:
            await asyncio.sleep(fault.seconds)
        event = f"msg_{work.id}_{way}"
        if kind == "forge":
            await self._try(teller, work, body, way, event, _WRONG)
            return
        if kind == "double":
            await asyncio.gather(*(self._insist(teller, work, body, way, event) for _ in range(2)))
            return
        await self._insist(teller, work, body, way, event)

    async def _insist(self, teller: Teller, work: Work, body: bytes, way: str, event: str) -> None:
        manner = work.manner
        for no in range(max(1, manner.webhook_tries)):
            if no:
                await asyncio.sleep(manner.webhook_again_s * 2 ** (no - 1))
            secret = self._by_protocol.get(work.protocol, self._secret)
            answer = await self._try(teller, work, body, way, event, secret)
            if 200 <= answer < 300:
                return

    async def _try(self, teller: Teller, work: Work, body: bytes, way: str, event: str, secret: str) -> int:
        now_s = time.time()
        profile = SignatureProfile(work.manner.webhook_profile)
        headers = sign(profile, secret_of(profile, secret), body, now_s=now_s, id=event) if secret else {}
        if self.fal_keys is not None and work.protocol == "fal" and secret == self._secret:
            headers |= self.fal_keys.headers(work.id, body, now_s)
        answer = await self._poster.post(work.webhook, body, headers)
        teller.note("webhook", work, event=event, way=way, answer=answer)
        return answer

    def _begin(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(sending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
