"""OpenAI-compatible: chat, embeddings and images answer at once; a batch is a file, a job and another file."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import uuid4

import msgspec

from windlass.core.external import ProviderStatus
from windlass.testing.fake_provider.provider import FakeService
from windlass.testing.fake_provider.wire import Reply, Request, reply
from windlass.testing.fake_provider.work import Work

DIMENSIONS = 8
PAGE = 100
_SYNC = {
    "chat/completions": "messages",
    "embeddings": "input",
    "images/generations": "prompt",
}
_BATCH_WORDS = {
    ProviderStatus.QUEUED: "validating",
    ProviderStatus.RUNNING: "in_progress",
    ProviderStatus.SUCCEEDED: "completed",
    ProviderStatus.FAILED: "failed",
    ProviderStatus.CANCELLED: "cancelled",
}


class OpenAISpeech:
    """Speaks the protocol of OpenAI."""

    name = "openai"

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def answer(self, request: Request, path: str) -> Reply | None:
        """Answer a request below /openai."""
        if not self._service.is_allowed(request, "Bearer"):
            return _error(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
        path = path.removeprefix("v1/")
        act = self._service.act
        if request.method == "POST" and path in _SYNC:
            return await act("start", self.name, lambda _: self._at_once(request, path))
        match request.method, path.split("/"):
            case "POST", ["files"]:
                return self._upload(request)
            case "GET", ["files", id, "content"]:
                return await act("status", self.name, lambda lie: self._content(id, lie))
            case "POST", ["batches"]:
                return await act("start", self.name, lambda _: self._create(request))
            case "GET", ["batches"]:
                return await act("list", self.name, lambda _: self._list(request))
            case "GET", ["batches", id]:
                return await act("status", self.name, lambda lie: self._get(id, lie))
            case "POST", ["batches", id, "cancel"]:
                return await act("cancel", self.name, lambda _: self._cancel(id))
        return _error(404, f"Invalid URL ({request.method} /{path})", "invalid_request_error", "unknown_url")

    def news(self, work: Work, status: ProviderStatus) -> bytes | None:
        """Return the body of a webhook: the end of a batch, without its output."""
        if not status.is_terminal or not work.extra:
            return None
        word = _BATCH_WORDS[status]
        told = {"id": f"evt_{work.id}", "object": "event", "type": f"batch.{word}", "data": {"id": work.id}}
        return msgspec.json.encode({**told, "created_at": int(work.ended_at)})

    # Synchronous requests

    async def _at_once(self, request: Request, path: str) -> Reply:
        body = request.json()
        if not isinstance(body, dict) or not body.get("model"):
            return _error(400, "you must provide a model parameter", "invalid_request_error", None)
        if _SYNC[path] not in body:
            return _error(400, f"Missing required parameter: '{_SYNC[path]}'.", "invalid_request_error", None)
        key = request.headers.get("idempotency-key", "")
        work = await self._service.begin(self.name, key, str(body["model"]), body, "")
        refusal = _refused(work)
        self._service.finish(work, work.manner.outcome)
        self._service.stand(work, way="start")
        return refusal if refusal is not None else reply(answer_of(path, work))

    # Batches

    def _upload(self, request: Request) -> Reply:
        kind = request.headers.get("content-type", "")
        _, _, boundary = kind.partition("boundary=")
        content = _part(request.body, boundary.strip('"'), "file")
        if content is None or _part(request.body, boundary.strip('"'), "purpose") != b"batch":
            return _error(400, "a file and its purpose are needed", "invalid_request_error", None)
        id = f"file-{uuid4().hex}"
        self._service.works.notes[id] = content
        return reply({"id": id, "object": "file", "bytes": len(content), "filename": "batch", "purpose": "batch"})

    async def _create(self, request: Request) -> Reply:
        body = request.json()
        if not isinstance(body, dict) or not isinstance(body.get("input_file_id"), str):
            return _error(400, "Missing required parameter: 'input_file_id'.", "invalid_request_error", None)
        content = self._service.works.notes.get(body["input_file_id"])
        if content is None:
            return _error(400, "No such file", "invalid_request_error", "invalid_file")
        lines = [msgspec.json.decode(line) for line in content.split(b"\n") if line.strip()]
        key = request.headers.get("idempotency-key", "")
        extra = {
            "endpoint": body.get("endpoint"),
            "metadata": body.get("metadata") or {},
            "file": body["input_file_id"],
        }
        work = await self._service.begin(
            self.name, key, "batch", {"lines": lines, "fake": _manner_in(lines)},
            self._service.works.notes.get("webhook", ""), id=f"batch_{uuid4().hex}", extra=extra,
        )  # fmt: skip
        return reply(self._batch(work, work.status(self._service.works.now())))

    async def _get(self, id: str, lie: str) -> Reply:
        work = self._find(id)
        if work is None or lie == "forget":
            return _error(404, f"No batch found with id '{id}'.", "invalid_request_error", None)
        told = self._batch(work, self._service.stand(work, lie))
        if lie == "nonsense":
            told["status"] = "pondering"
        return reply(told)

    async def _cancel(self, id: str) -> Reply:
        work = self._find(id)
        if work is None:
            return _error(404, f"No batch found with id '{id}'.", "invalid_request_error", None)
        if work.status(self._service.works.now()).is_terminal:
            word = _BATCH_WORDS[work.status(self._service.works.now())]
            return _error(409, f"Cannot cancel a batch with status '{word}'.", "invalid_request_error", None)
        await self._service.cancel(work)
        return reply(self._batch(work, work.status(self._service.works.now())))

    async def _list(self, request: Request) -> Reply:
        works = [work for work in self._service.works if work.protocol == self.name and work.extra]
        works.sort(key=lambda work: work.created_at, reverse=True)
        ids = [work.id for work in works]
        after = request.query.get("after", "")
        at = ids.index(after) + 1 if after in ids else 0
        limit = min(PAGE, int(request.query.get("limit", "20")))
        now = self._service.works.now()
        page = [self._batch(work, work.status(now)) for work in works[at : at + limit]]
        return reply({"object": "list", "data": page, "has_more": at + limit < len(works)})

    async def _content(self, id: str, lie: str) -> Reply:
        work = self._find(id.removeprefix("file-output-"))
        if work is None or lie == "forget":
            return _error(404, "No such File object", "invalid_request_error", None)
        lines = []
        for line in work.input["lines"]:
            path = str(line.get("url", "")).removeprefix("/v1/")
            part = Work(
                work.id, self.name, "", str(line["body"].get("model")), line["body"], "", work.created_at, work.manner
            )
            told = {"status_code": 200, "request_id": uuid4().hex, "body": answer_of(path, part)}
            if line["body"].get("fails"):
                told = {"status_code": 400, "request_id": uuid4().hex, "body": {"error": {"message": "it fails"}}}
            lines.append({"id": uuid4().hex, "custom_id": line.get("custom_id"), "response": told, "error": None})
        # In another order than the requests, as at OpenAI.
        return Reply(200, b"".join(msgspec.json.encode(line) + b"\n" for line in reversed(lines)))

    def _find(self, id: str) -> Work | None:
        work = self._service.works.get(id)
        return work if work is not None and work.protocol == self.name and work.extra else None

    def _batch(self, work: Work, status: ProviderStatus) -> dict[str, Any]:
        total = len(work.input["lines"])
        is_done = status is ProviderStatus.SUCCEEDED
        failed = [{"code": "invalid", "message": work.manner.error, "line": 1}]
        return {
            "id": work.id,
            "object": "batch",
            "endpoint": work.extra["endpoint"],
            "errors": {"object": "list", "data": failed} if status is ProviderStatus.FAILED else None,
            "input_file_id": work.extra["file"],
            "completion_window": "24h",
            "status": _BATCH_WORDS[status],
            "output_file_id": f"file-output-{work.id}" if is_done else None,
            "error_file_id": None,
            "created_at": int(work.created_at),
            "request_counts": {"total": total, "completed": total if is_done else 0, "failed": 0},
            "metadata": work.extra["metadata"],
        }


def answer_of(path: str, work: Work) -> dict[str, Any]:
    """Return a model's answer."""
    manner = work.manner
    usage = {"prompt_tokens": manner.tokens_in, "total_tokens": manner.tokens_in + manner.tokens_out}
    if path == "embeddings":
        texts = work.input.get("input")
        texts = texts if isinstance(texts, list) else [texts]
        data = [{"object": "embedding", "index": at, "embedding": _vector(str(text))} for at, text in enumerate(texts)]
        usage = {"prompt_tokens": manner.tokens_in, "total_tokens": manner.tokens_in}
        return {"object": "list", "data": data, "model": work.model, "usage": usage}
    if path == "images/generations":
        count = work.input.get("n") or 1
        return {
            "created": int(work.created_at),
            "data": [{"url": f"https://images.test/{work.id}/{at}"} for at in range(count)],
        }
    message = {"role": "assistant", "content": msgspec.json.encode(work.output()).decode(), "refusal": None}
    return {
        "id": f"chatcmpl-{work.id}",
        "object": "chat.completion",
        "created": int(work.created_at),
        "model": f"{work.model}-2024-08-06",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**usage, "completion_tokens": manner.tokens_out},
    }


def _vector(text: str) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [byte / 255 for byte in digest[:DIMENSIONS]]


def _refused(work: Work) -> Reply | None:
    match work.manner.outcome:
        case "refused":
            return _error(400, work.manner.error, "image_generation_user_error", "content_policy_violation")
        case "broke":
            return _error(429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota")
        case "failed":
            return _error(400, work.manner.error, "invalid_request_error", None)
    return None


def _manner_in(lines: list[Any]) -> dict[str, Any]:
    for line in lines:
        own = (line.get("body") or {}).get("fake")
        if isinstance(own, dict):
            return own
    return {}


def _part(body: bytes, boundary: str, name: str) -> bytes | None:
    """Return one part of a form."""
    for part in body.split(b"--" + boundary.encode()):
        head, gap, content = part.partition(b"\r\n\r\n")
        if gap and f'name="{name}"'.encode() in head:
            return content.removesuffix(b"\r\n")
    return None


def _error(status: int, message: str, kind: str, code: str | None) -> Reply:
    return reply({"error": {"message": message, "type": kind, "param": None, "code": code}}, status)
