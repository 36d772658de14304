"""FAL's queue: a request is submitted to a model's path, and polled below its app.

    POST {base}/{model}?fal_webhook=…                  → request_id
    GET  {base}/{app}/requests/{id}/status             → IN_QUEUE, IN_PROGRESS, COMPLETED
    GET  {base}/{app}/requests/{id}                    → the model's answer, with the model's status
    PUT  {base}/{app}/requests/{id}/cancel             → CANCELLATION_REQUESTED, ALREADY_COMPLETED

The app is the first two parts of the model's name, so the external id contains both: `fal-ai/flux/dev#<request id>`. A
webhook names only the request; the model is in the query of the address that we gave.

COMPLETED means that the request has ended, not that it succeeded: the model's answer says which. A model's 4xx is
final; a failure of FAL itself (`error_type`) may pass. FAL documents no idempotency keys. The key is sent as a header,
and `options.honours_keys` declares that a service of this protocol honours it.

FAL signs webhooks with Ed25519 by keys that it publishes (`profile: fal`, the default, needs no secret). The other
profiles are for services that speak the same protocol.

Options: `honours_keys`, `keys_url` (the address of the published keys), `priority` (normal, low).
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

from windlass.core.errors import BadSetting, BadSignature
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Cost
from windlass.providers.adapter import ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import BadAnswer, InvalidRequest, NotFound, ProviderError
from windlass.providers.http import Answer, Line, message_in, path_part, path_parts
from windlass.providers.price import Usage, decimal_of
from windlass.providers.words import cancelled, codes_in, failed, succeeded, unknown
from windlass.pure.signature import bad_signature

BASE_URL = "https://queue.fal.run"
KEYS_URL = "https://rest.fal.ai/.well-known/jwks.json"
KEYS_KEPT_S = 24 * 3600.0
# An unknown key may be a new one. The keys are fetched again at most this often.
KEYS_AGAIN_S = 60.0
PROFILE = "fal"
# In these namespaces the owner and the name of the app are the second and the third part.
_NAMESPACES = ("workflows", "comfy")
_WORDS = {"in_queue": ProviderStatus.QUEUED, "in_progress": ProviderStatus.RUNNING}
_STOPPED = "client_cancelled"


class FalAdapter(ProviderAdapter):
    """FAL, or a service with the protocol of FAL's queue."""

    default_profile = PROFILE
    own_profiles = (PROFILE,)

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.only_options("honours_keys", "keys_url", "priority")
        self.honours_keys = self.option("honours_keys", bool, False)
        headers = {} if config.credential is None else {"authorization": f"Key {config.credential.reveal()}"}
        priority = self.option("priority", str, "")
        if priority not in ("", "normal", "low"):
            raise BadSetting(f"providers.{config.name}.options.priority: {priority!r} is neither normal nor low")
        self._headers = {"x-fal-queue-priority": priority} if priority else {}
        self._line = Line(config, base_url=BASE_URL, headers=headers)
        self._keys = PublishedKeys(config, self.option("keys_url", str, KEYS_URL))
        if config.webhook is not None and self.profile == PROFILE and find_spec("cryptography") is None:
            raise BadSetting(
                f"providers.{config.name}.webhook: FAL's signatures need cryptography",
                remedy="Install it: pip install 'windlass[service]'",
            )

    async def start_job(self, request: StartRequest) -> Started:
        """Submit to the queue."""
        if not isinstance(request.input, dict):
            raise InvalidRequest("the input of a FAL model is an object")
        app_of(request.model)
        webhook = self.webhook_url(request, model=request.model)
        answer = await self._line.take(
            "POST",
            path_parts(request.model),
            json=request.input,
            headers={"idempotency-key": request.key, **self._headers},
            query=None if webhook is None else {"fal_webhook": webhook},
        )
        id = answer.table().get("request_id")
        if not isinstance(id, str) or not id:
            raise BadAnswer("the answer to a submit names no request_id")
        return Started(f"{request.model}#{id}")

    async def get_job_status(self, external_id: str) -> Said:
        """Poll the request, and fetch its result once it has ended."""
        place = _place(external_id)
        try:
            document = (await self._line.take("GET", f"{place}/status")).table()
        except NotFound:
            return unknown("FAL does not know this request")
        word = str(document.get("status") or "").lower()
        if word in _WORDS:
            position = document.get("queue_position")
            return Said(_WORDS[word], message=f"{position} before it" if isinstance(position, int) else None)
        if word != "completed":
            return unknown(f"FAL says {word[:40]!r}")
        return self._ended(external_id, await self._line.ask("GET", place), document)

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Ask FAL to stop the request. The model may ignore it."""
        answer = await self._line.ask("PUT", f"{_place(external_id)}/cancel")
        try:
            word = str(answer.table().get("status") or "")
        except BadAnswer:
            word = ""
        if answer.status == 404:
            return ProviderStatus.UNKNOWN
        if answer.status == 400 and word == "ALREADY_COMPLETED":
            return ProviderStatus.SUCCEEDED
        if not answer.is_fine:
            self._line.refuse(answer)
        return ProviderStatus.CANCELLED

    async def verify_webhook(self, headers: Mapping[str, str], body: bytes, now_s: float) -> str:
        """Verify by FAL's published keys, or by one of the common profiles."""
        if self.profile != PROFILE:
            return await super().verify_webhook(headers, body, now_s)
        webhook = self.config.webhook
        if webhook is None:
            raise BadSignature(f"no webhooks are expected from {self.config.name}")
        names = ("request-id", "user-id", "timestamp", "signature")
        id, user, stamp, signature = (headers.get(f"x-fal-webhook-{name}", "") for name in names)
        if not id or not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
            raise bad_signature()
        if abs(now_s - int(stamp)) > webhook.tolerance_s:
            raise bad_signature()
        signed = "\n".join([id, user, stamp, hashlib.sha256(body).hexdigest()]).encode()
        await self._keys.check(signature, signed, now_s)
        # The header's id names the last run of the request; the body's digest distinguishes messages.
        return hashlib.sha256(body).hexdigest()

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """Parse a webhook. FAL reports the end only."""
        document = Answer(200, headers, body).table()
        id, model = document.get("request_id"), query.get("model")
        if not isinstance(id, str) or not id:
            raise BadAnswer("the webhook names no request_id")
        external_id = f"{model}#{id}" if model else None
        key, word, payload = query.get("key"), document.get("status"), document.get("payload")
        if word == "OK" and payload is not None:
            said = succeeded(payload, self._cost(model or "", {}))
        elif word == "ERROR":
            said = self._failure(payload if payload else document.get("error"), 422, document.get("error"))
        else:
            # The request is done, but its result did not fit into the message.
            return WebhookNews("", external_id, Said(ProviderStatus.RUNNING), key, needs_look=external_id is not None)
        return WebhookNews("", external_id, said, key)

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close()
        await self._keys.close()

    def _ended(self, external_id: str, answer: Answer, document: Mapping[str, Any]) -> Said:
        """Interpret the model's answer.

        FAL passes on the model's status, so a 4xx here is about the work and not about us.
        """
        model = external_id.partition("#")[0]
        if answer.is_fine:
            return succeeded(
                answer.json(), self._cost(model, {**document, "units": answer.headers.get("x-fal-billable-units")})
            )
        if answer.status == 404:
            return unknown("FAL does not have the answer to this request")
        try:
            value = answer.json()
        except BadAnswer:
            value = None
        is_own = "x-fal-error-type" in answer.headers or (isinstance(value, dict) and "error_type" in value)
        if not is_own and (answer.status in (401, 403, 408, 429) or answer.status >= 500):
            # The poll itself failed: nothing is known of the work.
            self._line.refuse(answer)
        if answer.status == 400 and isinstance(value, dict) and "in progress" in str(value.get("detail", "")).lower():
            return Said(ProviderStatus.RUNNING)
        return self._failure(value, answer.status, None)

    def _failure(self, value: Any, status: int, document: object) -> Said:
        codes = codes_in(value)
        message = self._line.clean(message_in(value) or (document if isinstance(document, str) else ""))
        if _STOPPED in codes:
            return cancelled(message)
        is_own = isinstance(value, dict) and "error_type" in value
        return failed(message, codes=codes, is_retryable=is_own or not isinstance(value, dict) or status >= 500)

    def _cost(self, model: str, document: Mapping[str, Any]) -> Cost:
        metrics = document.get("metrics")
        seconds = decimal_of(metrics.get("inference_time")) if isinstance(metrics, dict) else None
        units = decimal_of(document.get("units"))
        return self.calculate_cost(model, Usage(seconds=seconds or Decimal(0), items=units or Decimal(0)))


class PublishedKeys:
    """FAL's public keys, fetched when needed and cached for a day."""

    def __init__(self, config: ProviderConfig, url: str) -> None:
        origin, _, path = url.partition("://")
        host, _, self._path = path.partition("/")
        # Without the credential, which the address of the keys does not need.
        plain = ProviderConfig(config.name, config.adapter, base_url=f"{origin}://{host}", timeout_s=config.timeout_s)
        self._line = Line(plain, answer_max_bytes=1 << 20)
        self._keys: list[Any] = []
        self._at_s = float("-inf")

    async def check(self, signature: str, signed: bytes, now_s: float) -> None:
        """Raise BadSignature unless one of the keys made this signature."""
        try:
            made = bytes.fromhex(signature)
        except ValueError:
            raise bad_signature() from None
        if now_s - self._at_s > KEYS_KEPT_S:
            await self._fetch(now_s)
        if not self._is_made(made, signed) and now_s - self._at_s > KEYS_AGAIN_S:
            await self._fetch(now_s)
        if not self._is_made(made, signed):
            raise bad_signature()

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close()

    def _is_made(self, made: bytes, signed: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        for key in self._keys:
            try:
                key.verify(made, signed)
            except InvalidSignature:
                continue
            return True
        return False

    async def _fetch(self, now_s: float) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            document = (await self._line.take("GET", self._path)).table()
        except ProviderError as error:
            if self._keys:
                return  # the earlier keys are still valid
            raise BadSignature(f"the keys of {self._line!r} cannot be fetched: {error.message}") from None
        found = []
        for key in document.get("keys") or []:
            if isinstance(key, dict) and key.get("crv") == "Ed25519" and isinstance(key.get("x"), str):
                text = key["x"]
                found.append(Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(text + "=" * (-len(text) % 4))))
        self._keys, self._at_s = found, now_s


def app_of(model: str) -> str:
    """Return the app of a model: `fal-ai/flux` of `fal-ai/flux/dev`."""
    parts = model.strip("/").split("/")
    wanted = 3 if parts[0] in _NAMESPACES else 2
    if len(parts) < wanted or "#" in model:
        raise InvalidRequest(f"{model[:100]!r} is not a model of FAL: write owner/app, or owner/app/path")
    return "/".join(parts[:wanted])


def _place(external_id: str) -> str:
    model, _, id = external_id.rpartition("#")
    return f"{path_parts(app_of(model))}/requests/{path_part(id)}"
