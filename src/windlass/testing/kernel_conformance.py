"""The tests that every kernel must pass, for pytest: derive a class that names its server, and run it.

```python
from windlass.testing.kernel_conformance import KernelConformance

class TestAcme(KernelConformance):
    server = AcmeServer                         # a `KernelServer`: a real server, and a kernel that asks it
```

Each test states one promise of `windlass.policy.kernel.Kernel`. Tests about a server are skipped for a kernel that
judges in this process (`is_remote` is false).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ClassVar, Protocol

import pytest

from windlass.core.errors import SafetyUnavailable
from windlass.core.verdict import KERNEL_UNKNOWN, Decision, Edge, Verdict
from windlass.policy.kernel import INPUT_BYTES_MAX, Kernel
from windlass.policy.kernel_answer import NAME_CHARS_MAX, REASON_CHARS_MAX, KernelAnswer
from windlass.policy.question import Question

# Long enough for an answer on a slow machine.
PATIENT_S = 60.0
# For servers that never answer.
BRIEF_S = 0.2
TOGETHER = 20

QUESTION = Question(Edge.SUBMIT, "job.mail", recipe="mail", job_id="j1", inputs={"to": "ada"}, labels={"env": "prod"})
ALLOW = KernelAnswer("allow", "all is well", "r1", "v7")


class KernelServer(Protocol):
    """A real server on this machine for one test, and kernels that ask it."""

    # The number of requests that arrived.
    asked: int

    async def start(self) -> None:
        """Start, at the port of the last start."""
        ...

    async def stop(self) -> None:
        """End all connections, and listen no more."""
        ...

    async def arrived(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        ...

    def say(self, answer: KernelAnswer, together: int = 1) -> None:
        """Give this answer from now on, but only when so many requests are under way."""
        ...

    def hang(self) -> None:
        """Accept requests from now on, and never answer."""
        ...

    def err(self) -> None:
        """Answer every request with an internal error from now on."""
        ...

    def kernel(self, within_s: float) -> Kernel:
        """Return a new kernel that asks this server."""
        ...


Test = Callable[[KernelServer, Kernel], Awaitable[None]]


class KernelConformance:
    """Derive a class from it that gives `server`; the module shows how."""

    server: ClassVar[Callable[[], KernelServer]]

    def _test(self, test: Test, *, within_s: float = PATIENT_S, is_remote: bool = False) -> None:
        async def run() -> None:
            server = type(self).server()
            kernel = server.kernel(within_s)
            if is_remote and not kernel.is_remote:
                pytest.skip("this kernel has no server")
            await server.start()
            try:
                await test(server, kernel)
            finally:
                await kernel.close()
                await server.stop()

        asyncio.run(run())

    @pytest.mark.parametrize(
        "word", ["allow", "deny", "require_approval", "throttle", "allow_with_constraints"]
    )  # fmt: skip
    def test_every_decision_is_passed_on(self, word: str) -> None:
        """Promises 1 and 4."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            limits = {"budgets": {"max_retries": 2}} if word == "allow_with_constraints" else {}
            server.say(replace(ALLOW, decision=word, constraints=limits))
            verdict = await kernel.check(QUESTION)
            assert (verdict.decision, verdict.rule, verdict.reason) == (word, "r1", "all is well")
            assert verdict.constraints.max_retries == (2 if limits else None)
            assert (verdict.approval is not None) == (word == "require_approval")

        self._test(test)

    @pytest.mark.parametrize("word", ["", "unknown", "allow_everything", "6"])
    def test_a_word_that_is_no_decision_denies(self, word: str) -> None:
        """Promise 2."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(replace(ALLOW, decision=word))
            assert (await kernel.check(QUESTION)).decision is Decision.DENY

        self._test(test)

    def test_an_allowance_within_limits_that_it_does_not_name_denies(self) -> None:
        """Promise 2."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(replace(ALLOW, decision="allow_with_constraints"))
            assert (await kernel.check(QUESTION)).decision is Decision.DENY

        self._test(test)

    def test_a_limit_that_is_not_known_denies(self) -> None:
        """Promise 2."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(replace(ALLOW, unknown="max_moons"))
            verdict = await kernel.check(QUESTION)
            assert (verdict.decision, verdict.rule) == (Decision.DENY, KERNEL_UNKNOWN)

        self._test(test, is_remote=True)

    def test_an_allowance_with_limits_has_them(self) -> None:
        """Promise 2: the limits of an answer are never dropped."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(replace(ALLOW, constraints={"budgets": {"max_runtime_ms": 9}, "diff": {"max_files": 3}}))
            verdict = await kernel.check(QUESTION)
            assert verdict.decision is Decision.ALLOW_WITH_CONSTRAINTS
            assert (verdict.constraints.max_runtime_ms, verdict.constraints.max_files) == (9, 3)

        self._test(test)

    def test_an_approval_that_is_asked_for_beside_an_allowance_is_required(self) -> None:
        """Promise 2."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(replace(ALLOW, is_approval_required=True))
            assert (await kernel.check(QUESTION)).decision is Decision.REQUIRE_APPROVAL

        self._test(test, is_remote=True)

    def test_inputs_that_cannot_be_sent_whole_deny_and_are_not_sent(self) -> None:
        """Promise 2: a kernel that sees a part cannot judge the rest."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(ALLOW)
            verdict = await kernel.check(replace(QUESTION, inputs={"text": "x" * INPUT_BYTES_MAX}))
            assert (verdict.decision, server.asked) == (Decision.DENY, 0)
            verdict = await kernel.check(replace(QUESTION, labels={"env": "\ud800"}))
            assert (verdict.decision, server.asked) == (Decision.DENY, 0)

        self._test(test, is_remote=True)

    def test_a_server_that_never_answers_is_silent(self) -> None:
        """Promises 1 and 3."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.hang()
            assert (await _unavailable(kernel)).is_silent

        self._test(test, within_s=BRIEF_S, is_remote=True)

    def test_a_server_that_is_gone_is_silent(self) -> None:
        """Promises 1 and 3."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            await server.stop()
            assert (await _unavailable(kernel)).is_silent

        self._test(test, is_remote=True)

    def test_a_server_that_answers_with_an_error_is_not_silent(self) -> None:
        """Promise 3: the fail mode `open` must not let this request pass."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.err()
            assert not (await _unavailable(kernel)).is_silent

        self._test(test, is_remote=True)

    def test_a_verdict_names_its_kernel_and_has_clean_texts(self) -> None:
        """Promise 5."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(replace(ALLOW, reason="a\x00\n" + "b" * 9_999, rule="\x1b" + "r" * 999, snapshot="s" * 999))
            verdict = await kernel.check(QUESTION)
            assert verdict.kernel == kernel.name
            assert all(text.isprintable() for text in (verdict.reason, verdict.rule, verdict.policy))
            assert len(verdict.reason) <= REASON_CHARS_MAX
            assert max(len(verdict.rule), len(verdict.policy)) <= NAME_CHARS_MAX

        self._test(test, is_remote=True)

    def test_an_approval_holds_while_the_kernel_gives_the_same_answer(self) -> None:
        """Promise 5: the hash is that of the answer, not of the kernel's whole policy."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            hashes: list[str] = []
            asks = replace(ALLOW, decision="require_approval")
            for answer in (asks, replace(asks, snapshot="v8"), replace(asks, rule="r2")):
                server.say(answer)
                hashes.append((await kernel.check(QUESTION)).rule_hash)
            assert hashes[0] == hashes[1] != hashes[2]

        self._test(test, is_remote=True)

    def test_checks_run_at_the_same_time(self) -> None:
        """Promise 6: the server answers the first of them only when all have arrived."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(ALLOW, together=TOGETHER)
            verdicts = await asyncio.gather(*(kernel.check(QUESTION) for _ in range(TOGETHER)))
            assert {verdict.decision for verdict in verdicts} == {Decision.ALLOW}

        self._test(test, is_remote=True)

    def test_a_cancelled_check_ends_and_the_next_is_answered(self) -> None:
        """Promise 6."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.hang()
            check = asyncio.create_task(kernel.check(QUESTION))
            await server.arrived(1)
            check.cancel()
            with pytest.raises(asyncio.CancelledError):
                await check
            server.say(ALLOW)
            assert (await kernel.check(QUESTION)).decision is Decision.ALLOW

        self._test(test, is_remote=True)

    def test_a_check_is_one_request_whatever_the_answer(self) -> None:
        """Promise 7."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(ALLOW)
            assert await kernel.check(QUESTION) == await kernel.check(QUESTION)
            assert server.asked == 2
            server.err()
            await _unavailable(kernel)
            assert server.asked == 3

        self._test(test, is_remote=True)

    def test_a_kernel_that_is_back_is_reached_again(self) -> None:
        """Promise 8."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(ALLOW)
            assert (await kernel.check(QUESTION)).decision is Decision.ALLOW
            await server.stop()
            await _unavailable(kernel)
            await server.start()
            verdict = await _answered(kernel)
            assert verdict.decision is Decision.ALLOW

        self._test(test, is_remote=True)

    def test_a_kernel_can_be_closed_twice_and_gives_no_verdict_then(self) -> None:
        """Promise 9."""

        async def test(server: KernelServer, kernel: Kernel) -> None:
            server.say(ALLOW)
            await kernel.check(QUESTION)
            await kernel.close()
            await kernel.close()
            await _unavailable(kernel)

        self._test(test, is_remote=True)


async def _unavailable(kernel: Kernel) -> SafetyUnavailable:
    try:
        verdict = await kernel.check(QUESTION)
    except SafetyUnavailable as error:
        return error
    raise AssertionError(f"there was a verdict: {verdict}")


async def _answered(kernel: Kernel) -> Verdict:
    async with asyncio.timeout(PATIENT_S):
        while True:
            try:
                return await kernel.check(QUESTION)
            except SafetyUnavailable:
                await asyncio.sleep(0)
