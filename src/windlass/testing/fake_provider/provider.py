"""The provider behind its protocols: accepts work, reports its status, sends webhooks, and plays the faults."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from windlass.core.external import ProviderStatus
from windlass.testing.fake_provider.faults import Fault, Faults
from windlass.testing.fake_provider.journal import Entry, Journal, read_journal
from windlass.testing.fake_provider.sender import Sender
from windlass.testing.fake_provider.speech import Speech
from windlass.testing.fake_provider.wire import Reply, Request, reply
from windlass.testing.fake_provider.work import Work, Works

CRASH_CODE = 70
_LIES = ("stale", "forget", "nonsense")
_AFTER = ("lose_after", "crash_after", "garbage", "shape", "cut", "huge")

Do = Callable[[str], Awaitable[Reply]]


class FakeService:
    """The common part of all protocols."""

    def __init__(self, journal: Journal, *, url: str, seed: int, credential: str, sender: Sender) -> None:
        self.url = url
        self.journal = journal
        self.works = Works()
        self.faults = Faults(seed)
        self.credential = credential
        self.sender = sender
        self.counts: Counter[str] = Counter()
        self.speeches: dict[str, Speech] = {}

    def recall(self) -> None:
        """Restore the work of an earlier process. Webhooks without a successful answer are sent again."""
        told = set()
        for entry in read_journal(self.journal.path):
            self.works.recall(entry)
            if entry.kind == "webhook" and entry.way == "end" and 200 <= entry.answer < 300:
                told.add(entry.id)
        for work in self.works:
            if work.webhook and work.id not in told:
                self.sender.plan(self, work)
        self.note("begun")

    def note(self, kind: str, work: Work | None = None, **more: Any) -> None:
        """Write a line of the journal."""
        named = {} if work is None else {"id": work.id, "protocol": work.protocol, "key": work.key}
        self.journal.add(Entry(kind, self.works.now(), **{**named, **more}))

    # Operations

    async def act(self, operation: str, protocol: str, do: Do) -> Reply | None:
        """Run one operation of a protocol, with the fault planted for it. `do` gets the lie to tell."""
        self.counts[operation] += 1
        fault = self.faults.pick(operation, protocol)
        if fault is None:
            return await do("")
        self.counts[f"fault_{fault.kind}"] += 1
        self.note("fault", protocol=protocol, way=f"{operation}:{fault.kind}")
        if fault.kind in _LIES:
            return await do(fault.kind)
        if fault.kind in _AFTER:
            return await self._spoil(fault, await do(""))
        match fault.kind:
            case "status":
                return _refusal(fault)
            case "lose":
                return None
            case "crash":
                self.crash()
            case "delay":
                await asyncio.sleep(fault.seconds)
        return await do("")

    async def _spoil(self, fault: Fault, answer: Reply) -> Reply | None:
        match fault.kind:
            case "lose_after":
                return None
            case "crash_after":
                await self.journal.kept()
                self.crash()
            case "garbage":
                return Reply(answer.status, b"<html><body>Bad gateway</body></html>", {"content-type": "text/html"})
            case "shape":
                return reply([{"unexpected": True}], answer.status)
            case "huge":
                return reply({"blob": "x" * fault.size}, answer.status)
            case "cut":
                return dataclasses.replace(answer, body=answer.body[: len(answer.body) // 2], cut=True)
        return answer

    def crash(self) -> None:
        """End like a killed process."""
        self.journal.flush()
        os._exit(CRASH_CODE)

    def is_allowed(self, request: Request, scheme: str) -> bool:
        """Tell whether the request carries the credential."""
        return not self.credential or request.headers.get("authorization") == f"{scheme} {self.credential}"

    async def begin(
        self, protocol: str, key: str, model: str, input: Any, webhook: str, *, id: str = "", extra: Any = None
    ) -> Work:
        """Accept work, or return the work that was accepted under the same key."""
        known = self.works.of_key(protocol, key) if self.works.manner.honours_keys else None
        if known is not None:
            self.note("repeated", known)
            await self.journal.kept()
            return known
        work = self.works.take(protocol, key, model, input, webhook, id=id, extra=extra)
        manner = msgspec.to_builtins(work.manner)
        self.note(
            "accepted", work, model=model, input=input, webhook=webhook, extra={**(extra or {}), "manner": manner}
        )
        await self.journal.kept()
        if webhook and self.faults.pick("webhook", protocol, "early") is not None:
            self.end(work, ProviderStatus.SUCCEEDED if work.manner.outcome == "succeeded" else ProviderStatus.FAILED)
            await self.sender.send_end(self, work)
        elif webhook:
            self.sender.plan(self, work)
        return work

    def stand(self, work: Work, lie: str = "", way: str = "poll") -> ProviderStatus:
        """Return the status of the work, as a poll reports it."""
        status = work.status(self.works.now())
        if status.is_terminal:
            self.end(work, status)
        told = ProviderStatus.RUNNING if lie == "stale" else status
        self.note("told", work, status=told, way=way)
        return told

    def end(self, work: Work, status: ProviderStatus) -> None:
        """Record the end of the work; its status changes no more."""
        if not work.is_end_noted:
            work.forced, work.is_end_noted, work.ended_at = status, True, self.works.now()
            self.note("ended", work, status=status)

    async def cancel(self, work: Work) -> bool:
        """Stop work; return False if it had ended before."""
        status = work.status(self.works.now())
        if status.is_terminal:
            self.end(work, status)
            return status is ProviderStatus.CANCELLED
        self.note("cancelled", work)
        self.end(work, ProviderStatus.CANCELLED)
        await self.journal.kept()
        if work.webhook:
            self.sender.soon(self, work)
        return True

    def finish(self, work: Work, outcome: str) -> None:
        """End work on the test's request."""
        if work.status(self.works.now()).is_terminal:
            return
        work.manner = msgspec.structs.replace(work.manner, outcome=outcome)
        self.end(work, ProviderStatus.SUCCEEDED if outcome == "succeeded" else ProviderStatus.FAILED)
        if work.webhook:
            self.sender.soon(self, work)


def _refusal(fault: Fault) -> Reply:
    headers = {"content-type": "application/json"}
    if fault.retry_after:
        headers["retry-after"] = fault.retry_after
    text = fault.body.encode() if fault.body else b'{"error":{"message":"the fake provider was told to refuse"}}'
    return Reply(fault.status, text, headers)
