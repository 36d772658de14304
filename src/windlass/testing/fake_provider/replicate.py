"""Replicate-style predictions: create, get, cancel, list, and webhooks for the requested events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from windlass.core.external import ProviderStatus
from windlass.testing.fake_provider.provider import FakeService
from windlass.testing.fake_provider.wire import Reply, Request, reply
from windlass.testing.fake_provider.work import Work

PAGE = 100
_WORDS = {
    ProviderStatus.QUEUED: "starting",
    ProviderStatus.RUNNING: "processing",
    ProviderStatus.SUCCEEDED: "succeeded",
    ProviderStatus.FAILED: "failed",
    ProviderStatus.CANCELLED: "canceled",
}


class ReplicateSpeech:
    """Speaks the protocol of Replicate."""

    name = "replicate"

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def answer(self, request: Request, path: str) -> Reply | None:
        """Answer a request below /replicate."""
        if not self._service.is_allowed(request, "Bearer"):
            return reply({"title": "Unauthenticated", "detail": "You did not pass a valid token", "status": 401}, 401)
        parts = path.removeprefix("v1/").split("/")
        act = self._service.act
        match request.method, parts:
            case "POST", ["predictions"]:
                return await act("start", self.name, lambda _: self._create(request, ""))
            case "POST", ["models" | "deployments", owner, model, "predictions"]:
                return await act("start", self.name, lambda _: self._create(request, f"{owner}/{model}"))
            case "GET", ["predictions"]:
                return await act("list", self.name, lambda _: self._list(request))
            case "GET", ["predictions", id]:
                return await act("status", self.name, lambda lie: self._get(id, lie))
            case "POST", ["predictions", id, "cancel"]:
                return await act("cancel", self.name, lambda _: self._cancel(id))
        return reply({"detail": "The requested resource could not be found.", "status": 404}, 404)

    def news(self, work: Work, status: ProviderStatus) -> bytes | None:
        """Return the body of a webhook: the prediction in its current state, for the events of the filter."""
        event = "completed" if status.is_terminal else "start"
        wanted = (work.extra or {}).get("events") or ["start", "output", "logs", "completed"]
        return msgspec.json.encode(self._prediction(work, status)) if event in wanted else None

    async def _create(self, request: Request, model: str) -> Reply:
        body = request.json()
        if not isinstance(body, dict) or not isinstance(body.get("input"), dict):
            return _invalid("input is required")
        version = str(body.get("version") or "")
        if not model and not version:
            return _invalid("version is required")
        key = request.headers.get("idempotency-key", "")
        extra = {"version": version, "events": body.get("webhook_events_filter")}
        work = await self._service.begin(
            self.name, key, model or version, body["input"], str(body.get("webhook") or ""), extra=extra
        )
        return reply(self._prediction(work, work.status(self._service.works.now())), 201)

    async def _get(self, id: str, lie: str) -> Reply:
        work = self._find(id)
        if work is None or lie == "forget":
            return _missing()
        told = self._prediction(work, self._service.stand(work, lie))
        if lie == "nonsense":
            told["status"] = "pondering"
        return reply(told)

    async def _cancel(self, id: str) -> Reply:
        work = self._find(id)
        if work is None:
            return _missing()
        await self._service.cancel(work)
        return reply(self._prediction(work, work.status(self._service.works.now())))

    async def _list(self, request: Request) -> Reply:
        works = [work for work in self._service.works if work.protocol == self.name]
        works.sort(key=lambda work: work.created_at, reverse=True)
        at = int(request.query.get("cursor", "0"))
        now = self._service.works.now()
        page = [self._prediction(work, work.status(now), is_listed=True) for work in works[at : at + PAGE]]
        more = f"{self._service.url}/replicate/v1/predictions?cursor={at + PAGE}" if at + PAGE < len(works) else None
        return reply({"previous": None, "next": more, "results": page})

    def _find(self, id: str) -> Work | None:
        work = self._service.works.get(id)
        return work if work is not None and work.protocol == self.name else None

    def _prediction(self, work: Work, status: ProviderStatus, *, is_listed: bool = False) -> dict[str, Any]:
        place = f"{self._service.url}/replicate/v1/predictions/{work.id}"
        extra = work.extra or {}
        told: dict[str, Any] = {
            "id": work.id,
            "model": work.model,
            "version": extra.get("version") or "fake",
            "source": "api",
            "status": _WORDS[status],
            "created_at": _time(work.created_at),
            "started_at": None if status is ProviderStatus.QUEUED else _time(work.created_at + work.manner.queued_s),
            "completed_at": _time(work.ended_at or self._service.works.now()) if status.is_terminal else None,
            "error": work.manner.error if status is ProviderStatus.FAILED else None,
            "metrics": {"predict_time": work.manner.billed_s} if status.is_terminal else {},
            "urls": {"get": place, "cancel": f"{place}/cancel"},
        }
        if not is_listed:
            told |= {"input": work.input, "logs": "", "output": None}
            if status is ProviderStatus.SUCCEEDED:
                told["output"] = work.output()
        return told


def _missing() -> Reply:
    return reply({"title": "Not found", "detail": "The requested resource could not be found.", "status": 404}, 404)


def _invalid(detail: str) -> Reply:
    return reply({"title": "Input validation failed", "detail": detail, "status": 422}, 422)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
