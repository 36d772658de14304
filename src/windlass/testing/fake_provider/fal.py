"""FAL-style queue: submit to a model's path, then ask, fetch and cancel below its app."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from windlass.core.external import ProviderStatus
from windlass.testing.fake_provider.provider import FakeService
from windlass.testing.fake_provider.wire import Reply, Request, reply
from windlass.testing.fake_provider.work import Work

_WORDS = {ProviderStatus.QUEUED: "IN_QUEUE", ProviderStatus.RUNNING: "IN_PROGRESS"}
_NOT_FOUND = {"detail": "Request not found"}


class FalSpeech:
    """Speaks the protocol of FAL."""

    name = "fal"

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def answer(self, request: Request, path: str) -> Reply | None:
        """Answer a request below /fal."""
        if path == ".well-known/jwks.json":
            return self._keys()
        if not self._service.is_allowed(request, "Key"):
            return reply({"detail": "Cannot access application. Authentication is required."}, 401)
        app, _, rest = path.partition("/requests/")
        id, _, verb = rest.partition("/")
        match request.method, verb:
            case "POST", "" if not rest and app.count("/") >= 1:
                return await self._service.act("start", self.name, lambda _: self._submit(request, app))
            case "GET", "status" if id:
                return await self._service.act("status", self.name, lambda lie: self._status(app, id, lie))
            case "GET", "" if id:
                return await self._service.act("status", self.name, lambda lie: self._result(app, id, lie))
            case "PUT", "cancel" if id:
                return await self._service.act("cancel", self.name, lambda _: self._cancel(app, id))
        return reply({"detail": "Not Found"}, 404)

    def news(self, work: Work, status: ProviderStatus) -> bytes | None:
        """Return the body of a webhook; only the end sends one."""
        if not status.is_terminal:
            return None
        told: dict[str, Any] = {"request_id": work.id, "gateway_request_id": work.id}
        if status is ProviderStatus.SUCCEEDED:
            told |= {"status": "OK", "payload": work.output()}
        else:
            _, body = _failure(work, status)
            told |= {"status": "ERROR", "error": "Unexpected status code", "payload": body}
        return msgspec.json.encode(told)

    async def _submit(self, request: Request, model: str) -> Reply:
        input = request.json()
        if not isinstance(input, dict):
            return reply({"detail": [{"loc": ["body"], "msg": "Input should be an object", "type": "model_type"}]}, 422)
        key = request.headers.get("idempotency-key", "")
        app = "/".join(model.split("/")[:2])
        work = await self._service.begin(
            self.name, key, model, input, request.query.get("fal_webhook", ""), extra={"app": app}
        )
        return reply({"status": "IN_QUEUE", "queue_position": 0, "request_id": work.id, **self._urls(work)})

    def _urls(self, work: Work) -> dict[str, str]:
        place = f"{self._service.url}/fal/{work.extra['app']}/requests/{work.id}"
        return {"response_url": place, "status_url": f"{place}/status", "cancel_url": f"{place}/cancel"}

    def _find(self, app: str, id: str) -> Work | None:
        work = self._service.works.get(id)
        # As at FAL, the path must name the right app, without the rest of the model's path.
        return work if work is not None and work.protocol == self.name and work.extra["app"] == app else None

    async def _status(self, app: str, id: str, lie: str) -> Reply:
        work = self._find(app, id)
        if work is None or lie == "forget":
            return reply(_NOT_FOUND, 404)
        status = self._service.stand(work, lie)
        if lie == "nonsense":
            return reply({"status": "PONDERING", "request_id": id}, 202)
        told: dict[str, Any] = {"status": _WORDS.get(status, "COMPLETED"), "request_id": id, **self._urls(work)}
        if status is ProviderStatus.QUEUED:
            told["queue_position"] = 1
        if status.is_terminal:
            told["metrics"] = {"inference_time": work.manner.billed_s}
        return reply(told, 200 if status.is_terminal else 202)

    async def _result(self, app: str, id: str, lie: str) -> Reply:
        work = self._find(app, id)
        if work is None or lie == "forget":
            return reply(_NOT_FOUND, 404)
        status = self._service.stand(work, lie, "result")
        if not status.is_terminal:
            return reply({"detail": "Request is still in progress"}, 400)
        if status is ProviderStatus.SUCCEEDED:
            return reply(work.output())
        code, body = _failure(work, status)
        return reply(body, code)

    async def _cancel(self, app: str, id: str) -> Reply:
        work = self._find(app, id)
        if work is None:
            return reply({"status": "NOT_FOUND"}, 404)
        if work.status(self._service.works.now()).is_terminal:
            return reply({"status": "ALREADY_COMPLETED"}, 400)
        await self._service.cancel(work)
        return reply({"status": "CANCELLATION_REQUESTED"}, 202)

    def _keys(self) -> Reply:
        keys = self._service.sender.fal_keys
        if keys is None:
            return reply({"keys": []})
        x = base64.urlsafe_b64encode(keys.public()).rstrip(b"=").decode()
        return reply({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x}]})


def _failure(work: Work, status: ProviderStatus) -> tuple[int, Any]:
    if status is ProviderStatus.CANCELLED:
        return 499, {"detail": "Request was cancelled", "error_type": "client_cancelled"}
    if work.manner.outcome == "refused":
        problem = {"loc": ["body", "prompt"], "msg": work.manner.error, "type": "content_policy_violation"}
        return 422, {"detail": [problem]}
    if work.manner.outcome == "crashed":
        return 503, {"detail": work.manner.error, "error_type": "runner_disconnected"}
    return 422, {"detail": [{"loc": ["body"], "msg": work.manner.error, "type": "value_error"}]}
