"""Every kernel keeps the promises of the port, and the suite that says so can fail."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.kernel_servers import GrpcServer, LocalServer, OpaServer
from windlass.core.errors import SafetyUnavailable
from windlass.core.verdict import Decision, Verdict
from windlass.policy.kernel import CHECK_WITHIN_S, Kernel
from windlass.policy.kernels.opa import OpaKernel
from windlass.policy.kernels.safety_kernel import SafetyKernel
from windlass.policy.question import Question
from windlass.testing.kernel_conformance import KernelConformance


class TestLocalKernel(KernelConformance):
    server = LocalServer


class TestSafetyKernel(KernelConformance):
    server = GrpcServer


class TestOpaKernel(KernelConformance):
    server = OpaServer


@pytest.mark.covers("COR-67")
def test_a_kernel_has_two_seconds_for_its_answer() -> None:
    assert CHECK_WITHIN_S == 2.0
    assert (OpaKernel("http://127.0.0.1/").within_s, SafetyKernel("127.0.0.1:1").within_s) == (2.0, 2.0)


class Flawed:
    """A kernel with a fault that a hurried author could make."""

    name = "opa"
    is_remote = True

    def __init__(self, server: OpaServer, within_s: float) -> None:
        self._server = server
        self.within_s = within_s

    async def check(self, question: Question) -> Verdict:
        kernel = OpaKernel(self._server.url, within_s=self.within_s)
        try:
            return await kernel.check(question)
        finally:
            await kernel.close()

    async def close(self) -> None:
        """Close nothing."""


class Lenient(Flawed):
    async def check(self, question: Question) -> Verdict:
        try:
            return await super().check(question)
        except SafetyUnavailable:
            return Verdict(Decision.ALLOW, "windlass:kernel", kernel=self.name)


class AllSilent(Flawed):
    async def check(self, question: Question) -> Verdict:
        try:
            return await super().check(question)
        except SafetyUnavailable as error:
            raise SafetyUnavailable(error.message, is_silent=True) from None


class Stubborn(Flawed):
    async def check(self, question: Question) -> Verdict:
        try:
            return await super().check(question)
        except SafetyUnavailable:
            return await super().check(question)


class Forgetful(Flawed):
    """It keeps the first answer."""

    _first: Verdict | None = None

    async def check(self, question: Question) -> Verdict:
        if self._first is None:
            self._first = await super().check(question)
        return self._first


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (Lenient, "test_a_server_that_answers_with_an_error_is_not_silent"),
        (AllSilent, "test_a_server_that_answers_with_an_error_is_not_silent"),
        (Stubborn, "test_a_check_is_one_request_whatever_the_answer"),
        (Forgetful, "test_a_check_is_one_request_whatever_the_answer"),
        (Flawed, "test_a_kernel_can_be_closed_twice_and_gives_no_verdict_then"),
    ],
)
def test_the_suite_finds_a_kernel_that_breaks_a_promise(kind: Any, test: str) -> None:
    class Server(OpaServer):
        def kernel(self, within_s: float) -> Kernel:
            made: Kernel = kind(self, within_s)
            return made

    class Suite(KernelConformance):
        server = Server

    with pytest.raises(AssertionError):
        getattr(Suite(), test)()
