"""A plain job API, as many services have: post a job, poll it, fetch its result, delete it."""

from __future__ import annotations

from typing import Any

import msgspec

from windlass.core.external import ProviderStatus
from windlass.testing.fake_provider.provider import FakeService
from windlass.testing.fake_provider.wire import Reply, Request, reply
from windlass.testing.fake_provider.work import Work

PAGE = 1000
_WORDS = {
    ProviderStatus.QUEUED: "queued",
    ProviderStatus.RUNNING: "running",
    ProviderStatus.SUCCEEDED: "done",
    ProviderStatus.FAILED: "failed",
    ProviderStatus.CANCELLED: "cancelled",
}


class GenericSpeech:
    """Speaks a plain job API."""

    name = "generic"

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def answer(self, request: Request, path: str) -> Reply | None:
        """Answer a request below /generic."""
        if not self._service.is_allowed(request, "Bearer"):
            return reply({"error": "who are you?"}, 401)
        act = self._service.act
        match request.method, path.split("/"):
            case "POST", ["jobs"]:
                return await act("start", self.name, lambda _: self._create(request))
            case "POST", ["now"]:
                return await act("start", self.name, lambda _: self._at_once(request))
            case "GET", ["jobs"]:
                return await act("list", self.name, lambda _: self._list(request))
            case "GET", ["jobs", id]:
                return await act("status", self.name, lambda lie: self._get(id, lie))
            case "GET", ["jobs", id, "result"]:
                return await act("status", self.name, lambda _: self._result(id))
            case "DELETE", ["jobs", id]:
                return await act("cancel", self.name, lambda _: self._cancel(id))
        return reply({"error": "not found"}, 404)

    def news(self, work: Work, status: ProviderStatus) -> bytes | None:
        """Return the body of a webhook: the job in its current state."""
        return msgspec.json.encode(self._job(work, status))

    async def _create(self, request: Request) -> Reply:
        body = request.json()
        if not isinstance(body, dict) or "input" not in body:
            return reply({"error": "a job needs an input"}, 422)
        key = request.headers.get("idempotency-key", "")
        work = await self._service.begin(
            self.name, key, str(body.get("model") or ""), body["input"], str(body.get("webhook_url") or "")
        )
        return reply(self._job(work, work.status(self._service.works.now())), 202)

    async def _at_once(self, request: Request) -> Reply:
        body = request.json()
        if not isinstance(body, dict) or "input" not in body:
            return reply({"error": "a job needs an input"}, 422)
        key = request.headers.get("idempotency-key", "")
        work = await self._service.begin(self.name, key, str(body.get("model") or ""), body["input"], "")
        self._service.finish(work, work.manner.outcome)
        return reply(self._job(work, self._service.stand(work, way="start")))

    async def _get(self, id: str, lie: str) -> Reply:
        work = self._find(id)
        if work is None or lie == "forget":
            return reply({"error": "not found"}, 404)
        told = self._job(work, self._service.stand(work, lie))
        if lie == "nonsense":
            told["status"] = "pondering"
        return reply(told)

    async def _result(self, id: str) -> Reply:
        work = self._find(id)
        if work is None:
            return reply({"error": "not found"}, 404)
        if self._service.stand(work, way="result") is not ProviderStatus.SUCCEEDED:
            return reply({"error": "there is no result"}, 409)
        return reply(work.output())

    async def _cancel(self, id: str) -> Reply:
        work = self._find(id)
        if work is None:
            return reply({"error": "not found"}, 404)
        await self._service.cancel(work)
        return reply(self._job(work, work.status(self._service.works.now())))

    async def _list(self, request: Request) -> Reply:
        works = [work for work in self._service.works if work.protocol == self.name]
        if "key" in request.query:
            works = [work for work in works if work.key == request.query["key"]]
        since = float(request.query.get("since") or 0)
        works = sorted((work for work in works if work.created_at >= since), key=lambda work: -work.created_at)
        now = self._service.works.now()
        return reply({"jobs": [self._job(work, work.status(now)) for work in works[:PAGE]]})

    def _find(self, id: str) -> Work | None:
        work = self._service.works.get(id)
        return work if work is not None and work.protocol == self.name else None

    def _job(self, work: Work, status: ProviderStatus) -> dict[str, Any]:
        told: dict[str, Any] = {
            "id": work.id,
            "key": work.key,
            "model": work.model,
            "status": _WORDS[status],
            "created_at": work.created_at,
        }
        if status is ProviderStatus.RUNNING:
            told["progress"] = 50
        if status is ProviderStatus.SUCCEEDED:
            told |= {"output": work.output(), "usage": {"seconds": work.manner.billed_s}}
        if status is ProviderStatus.FAILED:
            told["error"] = {"code": "failed", "message": work.manner.error}
        return told
