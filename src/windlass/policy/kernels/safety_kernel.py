"""The kernel behind gRPC: `cordum.agent.v1.SafetyKernel/Check`, as `safety_kernel.proto` describes it.

The protocol has no field for the caller's tier and scopes, the depth of a job, or the provider of a step. A kernel that
needs these facts is asked by OPA's data API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from windlass.core.errors import SafetyUnavailable
from windlass.core.verdict import Verdict
from windlass.policy.kernel import ANSWER_BYTES_MAX, CHECK_WITHIN_S
from windlass.policy.kernel_answer import KernelAnswer, unknown, verdict_of
from windlass.policy.kernels.request import inputs_json
from windlass.policy.kernels.safety_messages import CHECK, ENUMS, PolicyCheckRequest, PolicyCheckResponse
from windlass.policy.question import Question

CRITICAL_PRIORITY = 100
# No answer came from the kernel. All other statuses are answers.
_SILENT = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})
# The words of documents for the numbers of DecisionType. A number that is not here is no decision.
_WORDS = {number: word.lower() for number, word in enumerate(ENUMS["DecisionType"]) if word != "UNSPECIFIED"}
_ACTORS = {"human": 1, "user": 1, "service": 2}
_OPTIONS = (
    ("grpc.enable_retries", 0),
    # The environment's proxies are not used.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", ANSWER_BYTES_MAX),
    # By default a channel would wait up to two minutes before it looks for a kernel that is back.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Connections are not shared with other channels of the process, which may have other backoffs.
    ("grpc.use_local_subchannel_pool", 1),
)


class SafetyKernel:
    """Asks a server of the service SafetyKernel. `tls` are the certificates to trust, or None for plain text."""

    name = "safety_kernel"
    is_remote = True

    def __init__(
        self,
        address: str,
        *,
        tls: grpc.ChannelCredentials | None = None,
        token: str | None = None,
        within_s: float = CHECK_WITHIN_S,
    ) -> None:
        self.within_s = within_s
        self._address = address
        self._tls = tls
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        # Made by the first check, because a channel belongs to a running event loop.
        self._channel: Any = None
        self._call: Any = None
        self._is_closed = False

    async def check(self, question: Question) -> Verdict:
        """Return the verdict about a question. Raises SafetyUnavailable."""
        inputs = inputs_json(question, self.name)
        if isinstance(inputs, Verdict):
            return inputs
        try:
            request = _request(question, inputs)
        except (TypeError, ValueError) as error:
            return unknown(self.name, f"the request cannot be sent to the kernel {self.name}: {type(error).__name__}")
        metadata = (*self._metadata, ("windlass-edge", question.edge.value))
        try:
            async with asyncio.timeout(self.within_s):
                answer = await self._opened()(request, timeout=self.within_s, metadata=metadata)
        except TimeoutError:
            raise self._failed(f"did not answer within {self.within_s:g} s", is_silent=True) from None
        except grpc.aio.AioRpcError as error:
            raise self._refused(error.code()) from error
        except (grpc.RpcError, grpc.aio.UsageError, DecodeError) as error:
            raise self._failed(f"cannot be asked: {type(error).__name__}", is_silent=False) from error
        return verdict_of(_answer(answer), self.name)

    async def close(self) -> None:
        """Close the channel."""
        self._is_closed = True
        if self._channel is not None:
            channel, self._channel, self._call = self._channel, None, None
            await channel.close()

    def _opened(self) -> Any:
        if self._is_closed:
            raise self._failed("is closed", is_silent=False)
        if self._channel is None:
            if self._tls is None:
                self._channel = grpc.aio.insecure_channel(self._address, options=_OPTIONS)
            else:
                self._channel = grpc.aio.secure_channel(self._address, self._tls, options=_OPTIONS)
            self._call = self._channel.unary_unary(
                CHECK,
                request_serializer=PolicyCheckRequest.SerializeToString,
                response_deserializer=PolicyCheckResponse.FromString,
            )
        return self._call

    def _refused(self, code: grpc.StatusCode) -> SafetyUnavailable:
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return self._failed(f"did not answer within {self.within_s:g} s", is_silent=True)
        if code in _SILENT:
            return self._failed("cannot be reached", is_silent=True)
        return self._failed(f"answered with {code.name}", is_silent=False)

    def _failed(self, text: str, *, is_silent: bool) -> SafetyUnavailable:
        return SafetyUnavailable(f"the kernel {self.name} {text}", is_silent=is_silent)


def trusting(certificates: bytes | None) -> grpc.ChannelCredentials:
    """Return credentials that trust these certificates, or the certificates that grpc comes with."""
    return grpc.ssl_channel_credentials(root_certificates=certificates)


def _request(question: Question, inputs: bytes) -> Any:
    labels = dict(question.labels)
    return PolicyCheckRequest(
        job_id=question.job_id,
        topic=question.topic,
        tenant=question.tenant,
        priority=_priority(question.priority),
        estimated_cost=float(question.cost or 0),
        principal_id=question.caller.id,
        labels=labels,
        meta={
            "tenant_id": question.tenant,
            "actor_id": question.actor_id or question.caller.id,
            "actor_type": _ACTORS.get((question.actor_type or question.caller.type).strip().lower(), 0),
            "capability": question.capability,
            "risk_tags": sorted(question.risk_tags),
            "requires": sorted(question.requires),
            "pack_id": question.pack_id,
            "labels": labels,
        },
        input_content=inputs,
        input_content_type="application/json",
        input_size_bytes=len(inputs),
    )


def _priority(priority: int) -> int:
    """Return the number of JobPriority: work of low priority is BATCH."""
    if priority >= CRITICAL_PRIORITY:
        return 3
    return 2 if priority < 0 else 1


def _answer(answer: Any) -> KernelAnswer:
    return KernelAnswer(
        _WORDS.get(answer.decision, str(answer.decision)),
        answer.reason,
        answer.rule_id,
        answer.policy_snapshot,
        constraints=_plain(answer.constraints) if answer.HasField("constraints") else {},
        remediations=tuple(_plain(one) for one in answer.remediations),
        is_approval_required=answer.approval_required,
        unknown=next(_unknown_limits(answer.constraints), ""),
    )


def _plain(message: Message) -> dict[str, Any]:
    """Return the fields that are set. proto3 cannot tell zero, false and no text from a field that is not set."""
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if isinstance(value, Message):
            found[field.name] = _plain(value)
        elif isinstance(value, Mapping):
            found[field.name] = dict(value)
        elif field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
            found[field.name] = list(value)
        else:
            found[field.name] = value
    return found


def _unknown_limits(message: Message) -> Iterator[str]:
    """Yield the limits that only a later version of the protocol knows."""
    for one in UnknownFieldSet(message):
        yield f"field {one.field_number} of {message.DESCRIPTOR.name}"
    for _, value in message.ListFields():
        if isinstance(value, Message):
            yield from _unknown_limits(value)
