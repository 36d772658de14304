"""The kernel behind OPA's data API: `POST /v1/data/<path>` with the question as `input`.

The document at the path is the decision: a word, `true` or `false`, or an object.

    {"decision": "allow", "reason": …, "rule_id": …, "policy_snapshot": …, "constraints": …, "approval": …}

An object may have `allow` (true or false) in place of `decision`. OPA answers without `result` if the document is
undefined for this input. That is no decision, so it denies.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import httpx
import msgspec

from windlass.core.errors import SafetyUnavailable
from windlass.core.verdict import Verdict
from windlass.policy.kernel import ANSWER_BYTES_MAX, CHECK_WITHIN_S
from windlass.policy.kernel_answer import KernelAnswer, unknown, verdict_of
from windlass.policy.kernels.request import inputs_json, request_json
from windlass.policy.question import Question

KEPT_CONNECTIONS_MAX = 64
# Answers of a proxy whose kernel is gone.
_SILENT_STATUSES = frozenset({502, 503, 504})
_TEXTS = {"reason": "reason", "rule_id": "rule", "policy_snapshot": "snapshot"}
_MAPS = ("constraints", "approval")
_KNOWN = frozenset({"decision", "allow", "remediations", "approval_required", *_TEXTS, *_MAPS})


class OpaKernel:
    """Asks an OPA server. `url` is the address of the document, with its path."""

    name = "opa"
    is_remote = True

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        within_s: float = CHECK_WITHIN_S,
    ) -> None:
        self.within_s = within_s
        self._url = url
        self._client = httpx.AsyncClient(
            headers=_headers(token),
            verify=tls or ssl.create_default_context(),
            timeout=within_s,
            # No limit of connections: a check would wait for another. The asker limits the checks under way.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS_MAX),
            follow_redirects=False,
            trust_env=False,
        )

    async def check(self, question: Question) -> Verdict:
        """Return the verdict about a question. Raises SafetyUnavailable."""
        inputs = inputs_json(question, self.name)
        if isinstance(inputs, Verdict):
            return inputs
        try:
            body = msgspec.json.encode({"input": {**request_json(question), "inputs": msgspec.Raw(inputs)}})
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            return unknown(self.name, f"the request cannot be sent to the kernel {self.name}: {type(error).__name__}")
        try:
            async with asyncio.timeout(self.within_s):
                status, text = await self._post(body)
        except (TimeoutError, httpx.TimeoutException):
            raise self._failed(f"did not answer within {self.within_s:g} s", is_silent=True) from None
        except (httpx.TransportError, OSError) as error:
            raise self._failed(f"cannot be reached: {type(error).__name__}", is_silent=True) from error
        except (httpx.HTTPError, RuntimeError) as error:
            raise self._failed(f"cannot be asked: {type(error).__name__}", is_silent=False) from error
        if status != httpx.codes.OK:
            raise self._failed(f"answered with status {status}", is_silent=status in _SILENT_STATUSES)
        if text is None:
            raise self._failed(f"answered with more than {ANSWER_BYTES_MAX:,} bytes", is_silent=False)
        return self._verdict(text)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _post(self, body: bytes) -> tuple[int, bytes | None]:
        """Return the status and the text of the answer; None for a text that is too long."""
        async with self._client.stream("POST", self._url, content=body) as answer:
            text = bytearray()
            async for chunk in answer.aiter_bytes():
                text += chunk
                if len(text) > ANSWER_BYTES_MAX:
                    return answer.status_code, None
            return answer.status_code, bytes(text)

    def _verdict(self, text: bytes) -> Verdict:
        try:
            answer = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._failed("answered with a text that is not JSON", is_silent=False) from None
        if not isinstance(answer, dict):
            raise self._failed("answered with JSON that is no object", is_silent=False)
        if "result" not in answer:
            return unknown(self.name, f"the kernel {self.name} has no decision for this request: `result` is missing")
        found = _answer(answer["result"])
        if found is None:
            return unknown(self.name, f"the kernel {self.name} has a decision of an unknown form for this request")
        return verdict_of(found, self.name)

    def _failed(self, text: str, *, is_silent: bool) -> SafetyUnavailable:
        return SafetyUnavailable(f"the kernel {self.name} {text}", is_silent=is_silent)


def _headers(token: str | None) -> dict[str, str]:
    kind = {"Content-Type": "application/json"}
    return kind if token is None else {**kind, "Authorization": f"Bearer {token}"}


def _answer(result: Any) -> KernelAnswer | None:
    """Return the answer that a result means; None for a result of an unknown form."""
    match result:
        case bool():
            return KernelAnswer("allow" if result else "deny")
        case str():
            return KernelAnswer(result)
        case dict():
            return _of_object(result)
        case _:
            return None


def _of_object(result: dict[str, Any]) -> KernelAnswer | None:
    word, allow = result.get("decision"), result.get("allow")
    if word is None and isinstance(allow, bool):
        word = "allow" if allow else "deny"
    elif allow is False:
        # Two answers in one object: the stricter counts.
        word = "deny"
    # `null` is the same as a missing part, and every other value of a wrong type is an unknown form.
    given = {name: value for name, value in result.items() if value is not None}
    texts = {ours: given.get(theirs, "") for theirs, ours in _TEXTS.items()}
    maps = {name: given.get(name, {}) for name in _MAPS}
    remediations, is_asked = given.get("remediations", []), given.get("approval_required", False)
    is_formed = (
        isinstance(word, str)
        and (allow is None or isinstance(allow, bool))
        and all(isinstance(text, str) for text in texts.values())
        and all(isinstance(one, dict) for one in maps.values())
        and isinstance(remediations, list)
        and all(isinstance(one, dict) for one in remediations)
        and isinstance(is_asked, bool)
    )
    if not is_formed:
        return None
    strange = sorted(result.keys() - _KNOWN)
    return KernelAnswer(
        word or "",
        **texts,
        **maps,
        remediations=tuple(remediations),
        is_approval_required=is_asked,
        unknown=f"`{strange[0]}`" if strange else "",
    )
