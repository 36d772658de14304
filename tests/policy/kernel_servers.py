"""Real servers for kernels: a gRPC server of SafetyKernel, and an HTTP server that speaks OPA's data API."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import grpc.aio

from windlass.core.verdict import DECISION_WORDS, Decision
from windlass.policy.kernel import Kernel
from windlass.policy.kernel_answer import KernelAnswer
from windlass.policy.kernels.local import LocalKernel
from windlass.policy.kernels.opa import OpaKernel
from windlass.policy.kernels.safety_kernel import SafetyKernel
from windlass.policy.kernels.safety_messages import ENUMS, PolicyCheckRequest, PolicyCheckResponse
from windlass.policy.reader import read_policy
from windlass.policy.rules import Policy, compile_policy


class Manner:
    """How a server behaves: the answer, or silence, or an error."""

    def __init__(self) -> None:
        self.asked = 0
        self.requests: list[Any] = []
        self.answer: KernelAnswer | None = None
        self.is_error = False
        self._together = 1
        self._under_way = 0
        self._enough = asyncio.Event()
        self._never = asyncio.Event()
        self._arrival = asyncio.Condition()

    async def arrived(self, count: int) -> None:
        async with self._arrival:
            await self._arrival.wait_for(lambda: self.asked >= count)

    def say(self, answer: KernelAnswer, together: int = 1) -> None:
        self.answer, self.is_error, self._together, self._under_way = answer, False, together, 0
        self._enough.clear()

    def hang(self) -> None:
        self.answer, self.is_error = None, False

    def err(self) -> None:
        self.is_error = True

    async def take(self, request: Any) -> KernelAnswer | None:
        """The answer to a request; None for an error."""
        async with self._arrival:
            self.asked += 1
            self.requests.append(request)
            self._arrival.notify_all()
        if self.is_error:
            return None
        if self.answer is None:
            await self._never.wait()
        self._under_way += 1
        if self._under_way >= self._together:
            self._enough.set()
        await self._enough.wait()
        return self.answer


class GrpcServer(Manner):
    """A server of cordum.agent.v1.SafetyKernel."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None) -> None:
        super().__init__()
        self._credentials = credentials
        self._server: Any = None
        self.port = 0
        self.metadata: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    async def start(self) -> None:
        self._server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            self._check,
            request_deserializer=PolicyCheckRequest.FromString,
            response_serializer=lambda message: message if isinstance(message, bytes) else message.SerializeToString(),
        )
        handlers = grpc.method_handlers_generic_handler("cordum.agent.v1.SafetyKernel", {"Check": handler})
        self._server.add_generic_rpc_handlers((handlers,))
        address = f"localhost:{self.port}"
        if self._credentials is None:
            self.port = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, self._credentials)
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def kernel(self, within_s: float) -> Kernel:
        return _Late(lambda: SafetyKernel(self.address, within_s=within_s), "safety_kernel", within_s)

    async def _check(self, request: Any, context: Any) -> Any:
        self.metadata.append(dict(context.invocation_metadata()))
        answer = await self.take(request)
        if answer is None:
            await context.abort(grpc.StatusCode.INTERNAL, "the kernel has a fault")
            raise AssertionError("abort raises")
        return _message(answer)


def _message(answer: KernelAnswer) -> Any:
    decision = DECISION_WORDS.get(answer.decision)
    word = {Decision.REQUIRE_APPROVAL: "REQUIRE_HUMAN"}.get(decision, (decision or "").upper())  # type: ignore[call-overload]
    number = ENUMS["DecisionType"].index(word) if word else int(answer.decision) if answer.decision.isdigit() else 0
    message = PolicyCheckResponse(
        decision=number,
        reason=answer.reason,
        rule_id=answer.rule,
        policy_snapshot=answer.snapshot,
        approval_required=answer.is_approval_required,
        remediations=answer.remediations,
    )
    if answer.constraints:
        message.constraints.MergeFrom(type(message.constraints)(**answer.constraints))
    text: bytes = message.SerializeToString()
    if answer.unknown:
        # Field 99 of PolicyConstraints, which only a later version of the protocol has.
        limits = message.constraints.SerializeToString() + b"\x98\x06\x01"
        text += b"\x32" + bytes([len(limits)]) + limits
    return text


class OpaServer(Manner):
    """An HTTP server with OPA's data API, for one document."""

    path = "/v1/data/windlass/verdict"

    def __init__(self) -> None:
        super().__init__()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self.port = 0
        # The answer to every request, in place of the answer that was set.
        self.raw: tuple[int, bytes] | None = None
        self.heads: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            for writer in tuple(self._connections):
                writer.transport.abort()

    def kernel(self, within_s: float) -> Kernel:
        return _Late(lambda: OpaKernel(self.url, within_s=within_s), "opa", within_s)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in head.splitlines())}
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                self.heads.append(head)
                status, text = await self._answer(head, body)
                size = f"Content-Length: {len(text)}"
                head = (
                    f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nLocation: /elsewhere\r\n{size}\r\n\r\n"
                )
                writer.write(head.encode() + text)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, head: str, body: bytes) -> tuple[int, bytes]:
        method, path, _ = head.split(" ", 2)
        if (method, path) != ("POST", self.path):
            return 404, b"{}"
        answer = await self.take(json.loads(body)["input"])
        if self.raw is not None:
            return self.raw
        if answer is None:
            return 500, b'{"code": "internal_error"}'
        return 200, json.dumps({"result": _object(answer)}).encode()


def _object(answer: KernelAnswer) -> dict[str, Any]:
    found = {
        "decision": answer.decision,
        "reason": answer.reason,
        "rule_id": answer.rule,
        "policy_snapshot": answer.snapshot,
        "constraints": dict(answer.constraints),
        "remediations": list(answer.remediations),
        "approval_required": answer.is_approval_required,
    }
    return {**found, answer.unknown: 1} if answer.unknown else found


class _Late:
    """A kernel that is made by its first check: the server has its port by then."""

    is_remote = True

    def __init__(self, make: Any, name: str, within_s: float) -> None:
        self._make = make
        self._kernel: Kernel | None = None
        self.name = name
        self.within_s = within_s

    async def check(self, question: Any) -> Any:
        if self._kernel is None:
            self._kernel = self._make()
        return await self._kernel.check(question)

    async def close(self) -> None:
        if self._kernel is not None:
            await self._kernel.close()


class LocalServer(Manner):
    """The policy of this process, in place of a server."""

    def __init__(self) -> None:
        super().__init__()
        self.policy: Policy | None = None

    async def start(self) -> None:
        """There is nothing to start."""

    async def stop(self) -> None:
        """There is nothing to stop."""

    def say(self, answer: KernelAnswer, together: int = 1) -> None:
        rule = {"id": answer.rule, "reason": answer.reason, "decision": answer.decision}
        limits = {"constraints": dict(answer.constraints)} if answer.constraints else {}
        try:
            self.policy = compile_policy([read_policy(json.dumps({"rules": [{**rule, **limits}]}))])
        except Exception:
            # A policy that cannot be read is not in force.
            self.policy = None

    def kernel(self, within_s: float) -> Kernel:
        return LocalKernel(lambda: self.policy)
