"""The control routes, by which a test sets faults and the manner of work, reads counters, and ends work.

GET  /control           {"counts", "works", "statuses", "faults", "webhooks_under_way"}
POST /control/faults    a list of faults, which replace the faults set before
POST /control/manner    how work goes from now on
POST /control/finish    {"ids": […] or absent for all, "outcome": "succeeded"}
POST /control/webhook   {"url": …}: where OpenAI-style batches send their webhooks
POST /control/reset     forget everything but the journal
POST /control/crash     end as if killed
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from windlass.testing.fake_provider.faults import Fault
from windlass.testing.fake_provider.provider import FakeService
from windlass.testing.fake_provider.wire import Reply, Request, reply
from windlass.testing.fake_provider.work import Manner


class Control:
    """Answers the requests below /control."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def answer(self, request: Request, path: str) -> Reply:
        """Answer a request below /control."""
        if request.method == "GET":
            return reply(self._state())
        try:
            return reply(self._do(path, request.body))
        except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
            return reply({"error": str(error)}, 422)

    def _do(self, path: str, body: bytes) -> Any:
        service = self._service
        match path:
            case "faults":
                service.faults.set(msgspec.json.decode(body, type=list[Fault]))
            case "manner":
                given = {**msgspec.to_builtins(service.works.manner), **msgspec.json.decode(body)}
                service.works.manner = msgspec.convert(given, Manner)
            case "finish":
                return {"finished": self._finish(msgspec.json.decode(body) if body else {})}
            case "webhook":
                service.works.notes["webhook"] = msgspec.json.decode(body)["url"]
            case "reset":
                service.works.forget()
                service.works.manner = Manner()
                service.faults.set([])
                service.counts.clear()
            case "crash":
                service.crash()
            case _:
                raise ValueError(f"there is no control {path!r}")
        return {"done": True}

    def _finish(self, wanted: dict[str, Any]) -> int:
        ids = wanted.get("ids")
        works = [work for work in self._service.works if ids is None or work.id in ids]
        now = self._service.works.now()
        open_ones = [work for work in works if not work.status(now).is_terminal]
        for work in open_ones:
            self._service.finish(work, wanted.get("outcome", "succeeded"))
        return len(open_ones)

    def _state(self) -> dict[str, Any]:
        service = self._service
        now = service.works.now()
        return {
            "counts": dict(service.counts),
            "works": len(service.works),
            "statuses": dict(Counter(str(work.status(now)) for work in service.works)),
            "faults": msgspec.to_builtins(service.faults.all),
            "webhooks_under_way": service.sender.under_way,
        }
