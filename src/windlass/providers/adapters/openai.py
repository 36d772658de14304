"""OpenAI's API, and the many services that speak it: synchronous chat, embeddings and images, and batches.

The endpoint follows from the input's fields, or from its `endpoint`:

| input | endpoint | output |
|---|---|---|
| `messages` | chat | `{"text", "choices", "model", "usage"}` |
| `input` | embeddings | `{"embeddings", "model", "usage"}`, in the order of the inputs |
| `prompt` | images | `{"images"}` |
| `requests` | batch | `{"results": [{"custom_id", "status_code", "body"}], "failed"}`, by `custom_id` |

All other fields of the input are passed on unchanged. The first three endpoints finish within the call, so the attempt
ends with the call and nothing is polled; give the provider a `timeout` that fits the model.

A batch is a file of requests and a job. Requests without a `custom_id` are numbered, so their results come back in
order. The batch's metadata contains the key, so that a batch whose reply was lost is found again. A batch costs half of
the configured prices (`options.batch_share`). The results are one answer: `answer_max_bytes` limits it.

OpenAI reports a batch's end by a webhook of the account, signed as Standard Webhooks, without the result; the poller
fetches that. Options: `endpoint`, `organization`, `project`, `batch_share`, `headers`, `honours_keys`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from windlass.core.errors import BadSetting
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Cost
from windlass.providers.adapter import LIST_MAX, Listed, ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import BadAnswer, InvalidRequest, NotFound, ProviderError
from windlass.providers.http import Answer, Line, message_in, path_part
from windlass.providers.price import Usage, amount_of, count_of, decimal_of, price_of
from windlass.providers.words import cancelled, codes_in, failed, status_of, succeeded, unknown

BASE_URL = "https://api.openai.com/v1"
REQUESTS_MAX = 50_000
KEY_NAME = "windlass_key"
PAGE = 100
# The most batches, newest first, that are searched for a key.
FIND_MAX = 1000
_PATHS = {"chat": "chat/completions", "embeddings": "embeddings", "images": "images/generations"}
_BY_FIELD = {"requests": "batch", "messages": "chat", "prompt": "images", "input": "embeddings"}
_STATUSES = {
    "validating": ProviderStatus.QUEUED,
    "in_progress": ProviderStatus.RUNNING,
    "finalizing": ProviderStatus.RUNNING,
    "cancelling": ProviderStatus.RUNNING,
    "completed": ProviderStatus.SUCCEEDED,
    "failed": ProviderStatus.FAILED,
    "expired": ProviderStatus.FAILED,
    "cancelled": ProviderStatus.CANCELLED,
}
_ENDED = ("batch.completed", "batch.failed", "batch.expired", "batch.cancelled")


class OpenAIAdapter(ProviderAdapter):
    """OpenAI, or a service with OpenAI's protocol."""

    can_find = True
    can_list = True

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.only_options("endpoint", "organization", "project", "batch_share", "headers", "honours_keys")
        self.honours_keys = self.option("honours_keys", bool, False)
        self._endpoint = self.option("endpoint", str, "")
        if self._endpoint and self._endpoint not in (*_PATHS, "batch"):
            raise BadSetting(f"providers.{config.name}.options.endpoint: there is no {self._endpoint!r}")
        share = decimal_of(config.options.get("batch_share", "0.5"))
        if share is None:
            raise BadSetting(f"providers.{config.name}.options.batch_share: it is not a number")
        self._batch_share = share
        headers = {str(name): str(text) for name, text in self.option("headers", dict, {}).items()}
        for name in ("organization", "project"):
            if text := self.option(name, str, ""):
                headers[f"openai-{name}"] = text
        if config.credential is not None:
            headers["authorization"] = f"Bearer {config.credential.reveal()}"
        self._line = Line(config, base_url=BASE_URL, headers=headers)

    async def start_job(self, request: StartRequest) -> Started:
        """Call the model, or begin a batch."""
        if not isinstance(request.input, dict):
            raise InvalidRequest("the input is an object: `messages`, `input`, `prompt` or `requests`")
        body = dict(request.input)
        endpoint = self._endpoint_of(body)
        if endpoint == "batch":
            return Started(await self._begin_batch(request, body))
        if request.model:
            body["model"] = request.model
        headers = {"idempotency-key": request.key}
        document = (await self._line.take("POST", _PATHS[endpoint], json=body, headers=headers)).table()
        return Started(None, self._done(endpoint, request.model, document))

    async def get_job_status(self, external_id: str) -> Said:
        """Return the status of a batch, with its results once it is done."""
        try:
            document = (await self._line.take("GET", f"batches/{path_part(external_id)}")).table()
        except NotFound:
            return unknown("there is no such batch")
        word = document.get("status")
        match status_of(word, _STATUSES):
            case ProviderStatus.SUCCEEDED:
                return await self._results(document)
            case ProviderStatus.FAILED:
                return self._batch_failure(document)
            case ProviderStatus.CANCELLED:
                return cancelled()
            case ProviderStatus.UNKNOWN:
                return unknown(f"the batch is {str(word)[:40]!r}")
            case status:
                return Said(status, progress_pct=_progress(document.get("request_counts")))

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Cancel a batch, which takes up to ten minutes to stop."""
        try:
            document = (await self._line.take("POST", f"batches/{path_part(external_id)}/cancel")).table()
        except NotFound:
            return ProviderStatus.UNKNOWN
        except ProviderError as error:
            if error.status not in (400, 409):
                raise
            # OpenAI answers so for a batch that has ended.
            return (await self.get_job_status(external_id)).status
        return status_of(document.get("status"), _STATUSES)

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """Parse an event of a batch. Other events yield UNKNOWN."""
        document = Answer(200, headers, body).table()
        data = document.get("data")
        id = data.get("id") if isinstance(data, dict) else None
        if not isinstance(id, str) or not id:
            raise BadAnswer("the event has no data.id")
        has_ended = document.get("type") in _ENDED
        said = Said(ProviderStatus.RUNNING if has_ended else ProviderStatus.UNKNOWN)
        event = document.get("id")
        return WebhookNews(event if isinstance(event, str) else "", id, said, query.get("key"), needs_look=has_ended)

    async def find_job(self, key: str) -> str | None:
        """Find the batch with this key in its metadata, among the newest."""
        for batch in await self._batches(FIND_MAX, None):
            if _key_of(batch) == key:
                return str(batch["id"])
        return None

    async def list_jobs(self, since: datetime) -> list[Listed]:
        """List the batches of the account."""
        found = await self._batches(LIST_MAX, since)
        return [
            Listed(str(one["id"]), status_of(one.get("status"), _STATUSES), _time(one), _key_of(one)) for one in found
        ]

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close()

    # Synchronous endpoints

    def _endpoint_of(self, body: dict[str, Any]) -> str:
        named = body.pop("endpoint", self._endpoint) if "requests" not in body else "batch"
        found = named or next((name for field, name in _BY_FIELD.items() if field in body), "")
        if found not in (*_PATHS, "batch"):
            raise InvalidRequest("cannot tell the endpoint: give `messages`, `input`, `prompt` or `requests`")
        return str(found)

    def _done(self, endpoint: str, asked: str, document: dict[str, Any]) -> Said:
        model = document.get("model")
        usage = _usage(document)
        if endpoint == "images":
            images = _listed(document, "data")
            usage = Usage(items=Decimal(len(images)), tokens_in=usage.tokens_in, tokens_out=usage.tokens_out)
            output: dict[str, Any] = {"images": images}
        elif endpoint == "embeddings":
            output = {"embeddings": _vectors(document), "model": model, "usage": document.get("usage")}
        else:
            choices = _listed(document, "choices")
            output = {"text": _text_of(choices), "choices": choices, "model": model, "usage": document.get("usage")}
        return succeeded(output, self.calculate_cost(model if isinstance(model, str) else asked, usage))

    # Batches

    async def _begin_batch(self, request: StartRequest, body: dict[str, Any]) -> str:
        asked = body.get("requests")
        endpoint = body.get("endpoint") or "chat"
        path = f"/v1/{_PATHS[endpoint]}" if endpoint in _PATHS else str(endpoint)
        content = _lines(asked, path, request.model)
        files = {"file": ("batch.jsonl", content, "application/jsonl")}
        document = (await self._line.take("POST", "files", files=files, data={"purpose": "batch"})).table()
        batch = {
            "input_file_id": _id(document),
            "endpoint": path,
            "completion_window": body.get("completion_window", "24h"),
            "metadata": {**dict(request.metadata), KEY_NAME: request.key},
        }
        headers = {"idempotency-key": request.key}
        return _id((await self._line.take("POST", "batches", json=batch, headers=headers)).table())

    async def _results(self, document: dict[str, Any]) -> Said:
        lines: list[dict[str, Any]] = []
        for name in ("output_file_id", "error_file_id"):
            file = document.get(name)
            if isinstance(file, str) and file:
                answer = await self._line.take("GET", f"files/{path_part(file)}/content")
                lines += _read_lines(answer.body)
        results = [_result(line) for line in lines]
        # Results come in any order; numbered requests are put back into theirs.
        results.sort(key=lambda one: _place(one["custom_id"]))
        is_bad = [one for one in results if one["status_code"] != 200]
        return succeeded({"results": results, "failed": len(is_bad)}, self._batch_cost(results))

    def _batch_cost(self, results: Sequence[Mapping[str, Any]]) -> Cost:
        amount, tokens_in, tokens_out = Decimal(0), 0, 0
        for one in results:
            body = one["body"] if isinstance(one["body"], dict) else {}
            if one["status_code"] == 200:
                usage = _usage(body)
                amount += amount_of(price_of(self.config.prices, str(body.get("model") or "")), usage)
                tokens_in, tokens_out = tokens_in + usage.tokens_in, tokens_out + usage.tokens_out
        usage = Usage(calls=len(results), tokens_in=tokens_in, tokens_out=tokens_out)
        return self.cost((amount * self._batch_share).normalize() + 0, usage)

    def _batch_failure(self, document: Mapping[str, Any]) -> Said:
        if document.get("status") == "expired":
            return failed("the batch was not done within its time", code="batch_expired")
        errors = document.get("errors")
        message = self._line.clean(message_in(errors.get("data") if isinstance(errors, dict) else errors))
        # A batch fails as a whole only when its file is invalid.
        return failed(message, codes=codes_in(errors), is_retryable=False)

    async def _batches(self, most: int, since: datetime | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query = {"limit": str(PAGE)}
        while len(found) < most:
            try:
                document = (await self._line.take("GET", "batches", query=query)).table()
            except NotFound:
                # Most services that speak this protocol have no batches.
                return []
            page = [
                one for one in _listed(document, "data") if isinstance(one, dict) and isinstance(one.get("id"), str)
            ]
            for one in page:
                if since is not None and (at := _time(one)) is not None and at < since:
                    return found
                found.append(one)
            if not document.get("has_more") or not page:
                break
            query["after"] = page[-1]["id"]
        return found[:most]


def _usage(document: Mapping[str, Any]) -> Usage:
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens_in = count_of(usage.get("prompt_tokens")) or count_of(usage.get("input_tokens"))
    return Usage(
        tokens_in=tokens_in,
        tokens_out=count_of(usage.get("completion_tokens")) or count_of(usage.get("output_tokens")),
    )


def _listed(document: Mapping[str, Any], name: str) -> list[Any]:
    found = document.get(name)
    if not isinstance(found, list):
        raise BadAnswer(f"the answer has no list {name!r}")
    return found


def _text_of(choices: list[Any]) -> Any:
    message = choices[0].get("message") if choices and isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        raise BadAnswer("the answer has no choice with a message")
    return message.get("content")


def _vectors(document: Mapping[str, Any]) -> list[Any]:
    found = _listed(document, "data")
    if not all(isinstance(one, dict) and isinstance(one.get("index"), int) and "embedding" in one for one in found):
        raise BadAnswer("the answer has embeddings without an index")
    return [one["embedding"] for one in sorted(found, key=lambda one: one["index"])]


def _lines(asked: Any, path: str, model: str) -> bytes:
    """Build the file of a batch: a line for each request."""
    if not isinstance(asked, list) or not 1 <= len(asked) <= REQUESTS_MAX:
        raise InvalidRequest(f"a batch has 1 to {REQUESTS_MAX:,} requests")
    lines, seen = [], set()
    for at, one in enumerate(asked):
        if not isinstance(one, dict):
            raise InvalidRequest(f"request {at} of the batch is not an object")
        body = dict(one)
        custom_id = str(body.pop("custom_id", at))
        if custom_id in seen:
            raise InvalidRequest(f"two requests of the batch have the custom_id {custom_id[:60]!r}")
        seen.add(custom_id)
        if model:
            body.setdefault("model", model)
        lines.append(msgspec.json.encode({"custom_id": custom_id, "method": "POST", "url": path, "body": body}))
    return b"\n".join(lines) + b"\n"


def _read_lines(content: bytes) -> list[dict[str, Any]]:
    found = []
    for line in content.split(b"\n"):
        if line.strip():
            try:
                value = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise BadAnswer("a line of the batch's results is not JSON") from None
            if not isinstance(value, dict):
                raise BadAnswer("a line of the batch's results is not an object")
            found.append(value)
    return found


def _result(line: Mapping[str, Any]) -> dict[str, Any]:
    response = line.get("response")
    response = response if isinstance(response, dict) else {}
    status = response.get("status_code")
    return {
        "custom_id": str(line.get("custom_id")),
        "status_code": status if isinstance(status, int) else 0,
        "body": response.get("body") if response else line.get("error"),
    }


def _place(custom_id: str) -> tuple[int, int, str]:
    is_number = custom_id.isascii() and custom_id.isdigit() and len(custom_id) < 10
    return (0, int(custom_id), "") if is_number else (1, 0, custom_id)


def _id(document: Mapping[str, Any]) -> str:
    id = document.get("id")
    if not isinstance(id, str) or not id:
        raise BadAnswer("the answer has no id")
    return id


def _key_of(batch: Mapping[str, Any]) -> str | None:
    metadata = batch.get("metadata")
    key = metadata.get(KEY_NAME) if isinstance(metadata, dict) else None
    return key if isinstance(key, str) else None


def _time(batch: Mapping[str, Any]) -> datetime | None:
    at = batch.get("created_at")
    return datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) and not isinstance(at, bool) else None


def _progress(counts: Any) -> float | None:
    if not isinstance(counts, dict):
        return None
    total = count_of(counts.get("total"))
    done = count_of(counts.get("completed")) + count_of(counts.get("failed"))
    return min(100.0, 100.0 * done / total) if total else None
