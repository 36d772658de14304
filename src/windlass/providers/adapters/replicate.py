"""Replicate's predictions.

    POST {base}/models/{owner}/{name}/predictions      of an official model:    model="owner/name"
    POST {base}/deployments/{owner}/{name}/predictions of a deployment:         model="deployments/owner/name"
    POST {base}/predictions                            of a version:            model="<64 digits>", "owner/name:<…>"
    GET  {base}/predictions/{id}, POST {base}/predictions/{id}/cancel, GET {base}/predictions

The external id is the prediction's. Webhooks contain the whole prediction and are signed as Standard Webhooks. They are
requested for the start and the end; a growing output becomes a preview. Replicate documents no idempotency keys. The
key is sent as a header, and `options.honours_keys` declares that a service of this protocol honours it.

Options: `honours_keys`, `events` (of webhooks: start, output, logs, completed), `cancel_after` (a length of time after
which Replicate itself gives up, such as `30m`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from windlass.core.errors import BadSetting
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Cost
from windlass.providers.adapter import LIST_MAX, Listed, ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import BadAnswer, InvalidRequest, NotFound
from windlass.providers.http import Answer, Line, message_in, path_part, path_parts
from windlass.providers.price import Usage, count_of, decimal_of
from windlass.providers.words import cancelled, failed, json_text, status_of, succeeded, unknown

BASE_URL = "https://api.replicate.com/v1"
EVENTS = ("start", "output", "logs", "completed")
_STATUSES = {
    "starting": ProviderStatus.QUEUED,
    "processing": ProviderStatus.RUNNING,
    "succeeded": ProviderStatus.SUCCEEDED,
    "failed": ProviderStatus.FAILED,
    "canceled": ProviderStatus.CANCELLED,
    # Its deadline passed before it began.
    "aborted": ProviderStatus.CANCELLED,
}
_VERSION = re.compile(r"[0-9a-f]{64}")
# Text in Replicate's errors that are about the content.
_FLAGGED = re.compile(r"\bE005\b|flagged as sensitive|NSFW", re.IGNORECASE)


class ReplicateAdapter(ProviderAdapter):
    """Replicate, or a service with Replicate's protocol."""

    can_list = True

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.only_options("honours_keys", "events", "cancel_after")
        self.honours_keys = self.option("honours_keys", bool, False)
        self._events = self.option("events", list, ["start", "completed"])
        if unknown_ones := [event for event in self._events if event not in EVENTS]:
            raise BadSetting(f"providers.{config.name}.options.events: there is no {unknown_ones[0]!r}")
        headers = {} if config.credential is None else {"authorization": f"Bearer {config.credential.reveal()}"}
        cancel_after = self.option("cancel_after", str, "")
        self._headers = {"cancel-after": cancel_after} if cancel_after else {}
        self._line = Line(config, base_url=BASE_URL, headers=headers)

    async def start_job(self, request: StartRequest) -> Started:
        """Create a prediction."""
        if not isinstance(request.input, dict):
            raise InvalidRequest("the input of a prediction is an object")
        path, version = _target(request.model)
        body: dict[str, Any] = {"input": request.input}
        if version:
            body["version"] = version
        webhook = self.webhook_url(request)
        if webhook is not None:
            body |= {"webhook": webhook, "webhook_events_filter": self._events}
        headers = {"idempotency-key": request.key, **self._headers}
        document = (await self._line.take("POST", path, json=body, headers=headers)).table()
        return Started(_id(document))

    async def get_job_status(self, external_id: str) -> Said:
        """Get the prediction."""
        try:
            answer = await self._line.take("GET", f"predictions/{path_part(external_id)}")
        except NotFound:
            return unknown("Replicate does not know this prediction")
        return self._said(answer.table())

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Cancel the prediction."""
        try:
            answer = await self._line.take("POST", f"predictions/{path_part(external_id)}/cancel")
        except NotFound:
            return ProviderStatus.UNKNOWN
        return status_of(answer.table().get("status"), _STATUSES) if answer.body else ProviderStatus.CANCELLED

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """Parse a webhook, which is the prediction."""
        document = Answer(200, headers, body).table()
        return WebhookNews("", _id(document), self._said(document), query.get("key"))

    async def list_jobs(self, since: datetime) -> list[Listed]:
        """List the predictions of the account, newest first, including those of other programs."""
        found: list[Listed] = []
        path: str | None = "predictions"
        query: dict[str, str] | None = {"created_after": since.astimezone(UTC).isoformat().replace("+00:00", "Z")}
        while path is not None and len(found) < LIST_MAX:
            document = (await self._line.take("GET", path, query=query)).table()
            page = document.get("results")
            if not isinstance(page, list):
                raise BadAnswer("the list of predictions has no `results`")
            for one in page:
                created_at = _time(one.get("created_at")) if isinstance(one, dict) else None
                if created_at is not None and created_at < since:
                    return found
                found.append(Listed(_id(one), status_of(one.get("status"), _STATUSES), created_at))
            path, query = (document.get("next") or None), None
        return found[:LIST_MAX]

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close()

    def _said(self, document: Mapping[str, Any]) -> Said:
        status = status_of(document.get("status"), _STATUSES)
        message = self._line.clean(message_in(document.get("error")))
        match status:
            case ProviderStatus.SUCCEEDED:
                return succeeded(document.get("output"), self._cost(document))
            case ProviderStatus.FAILED:
                codes = ["content_policy"] if _FLAGGED.search(message) else []
                return failed(message, codes=codes, cost=self._cost(document))
            case ProviderStatus.CANCELLED:
                return cancelled(message)
            case ProviderStatus.UNKNOWN:
                return unknown(f"Replicate says {str(document.get('status'))[:40]!r}")
        output = document.get("output")
        return Said(status, preview=None if output is None else json_text(output))

    def _cost(self, document: Mapping[str, Any]) -> Cost:
        metrics = document.get("metrics")
        metrics = metrics if isinstance(metrics, dict) else {}
        usage = Usage(
            seconds=decimal_of(metrics.get("predict_time")) or Decimal(0),
            tokens_in=count_of(metrics.get("input_token_count")),
            tokens_out=count_of(metrics.get("output_token_count")),
        )
        return self.calculate_cost(str(document.get("model") or document.get("version") or ""), usage)


def _target(model: str) -> tuple[str, str]:
    """Return the path that creates a prediction of this model, and the version for the body."""
    owner, _, version = model.partition(":")
    if _VERSION.fullmatch(model):
        return "predictions", model
    if version:
        return "predictions", version
    parts = owner.split("/")
    if parts[0] == "deployments" and len(parts) == 3:
        return f"{path_parts(owner)}/predictions", ""
    if len(parts) != 2 or not all(parts):
        raise InvalidRequest(
            f"{model[:100]!r} is not a model of Replicate: write owner/name, owner/name:version, a version, "
            "or deployments/owner/name"
        )
    return f"models/{path_parts(owner)}/predictions", ""


def _id(document: Any) -> str:
    id = document.get("id") if isinstance(document, dict) else None
    if not isinstance(id, str) or not id:
        raise BadAnswer("a prediction without an id")
    return id


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None
