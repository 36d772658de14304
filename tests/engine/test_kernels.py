"""The breaker and the pace of a kernel are those of all processes together."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.policy.kernel_servers import GrpcServer
from windlass.core.errors import SafetyUnavailable
from windlass.core.verdict import Decision, Edge, Verdict
from windlass.engine.kernels import ASKED_AT_ONCE_MAX, CIRCUIT_OPEN, Answer, Direction, GuardedKernel, states
from windlass.policy.kernel_answer import KernelAnswer
from windlass.policy.kernels.safety_kernel import SafetyKernel
from windlass.policy.question import Question
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock

QUESTION = Question(Edge.SUBMIT, "job.mail")
ALLOW, DENY = Verdict(Decision.ALLOW, "r1"), Verdict(Decision.DENY, "r1")
WITHIN_S = 60.0


class Scripted:
    """A kernel that gives the answers of a script, and counts the questions."""

    name = "scripted"
    is_remote = True
    within_s = 2.0

    def __init__(self, *answers: Answer) -> None:
        self.answers: list[Answer] = list(answers)
        self.asked = 0

    async def check(self, question: Question) -> Verdict:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, SafetyUnavailable):
            raise answer
        return answer

    async def close(self) -> None:
        """There is nothing to close."""


def silence() -> SafetyUnavailable:
    return SafetyUnavailable("the kernel scripted cannot be reached", is_silent=True)


def guarded(db: Database, kernel: Any, clock: VirtualClock, **given: Any) -> GuardedKernel:
    return GuardedKernel(db, kernel, clock_s=lambda: clock.now().timestamp(), **given)


def told(answers: Sequence[Answer]) -> list[str]:
    return [answer.message if isinstance(answer, SafetyUnavailable) else answer.decision for answer in answers]


async def ask_one_by_one(kernel: GuardedKernel, count: int) -> list[str]:
    return [told(await kernel.ask([QUESTION]))[0] for _ in range(count)]


async def opened(db: Database, clock: VirtualClock) -> None:
    """Open the breaker, by another process."""
    await ask_one_by_one(guarded(db, Scripted(silence()), clock), 3)


@pytest.mark.covers("COR-64", "COR-65", "COR-70")
async def test_three_failures_open_the_breaker_and_then_the_kernel_is_not_asked(
    timed_db: Database, clock: VirtualClock
) -> None:
    kernel = Scripted(silence())
    answers = await ask_one_by_one(guarded(timed_db, kernel, clock), 5)
    assert answers[3:] == [CIRCUIT_OPEN] * 2
    assert kernel.asked == 3
    clock.advance(timedelta(seconds=29))
    await ask_one_by_one(guarded(timed_db, kernel, clock), 1)
    assert kernel.asked == 3


@pytest.mark.covers("COR-64")
async def test_an_answer_between_failures_starts_the_count_again(timed_db: Database, clock: VirtualClock) -> None:
    kernel = Scripted(silence(), silence(), DENY, silence(), silence(), ALLOW)
    assert CIRCUIT_OPEN not in await ask_one_by_one(guarded(timed_db, kernel, clock), 9)


async def test_a_refusal_is_no_failure(timed_db: Database, clock: VirtualClock) -> None:
    assert await ask_one_by_one(guarded(timed_db, Scripted(DENY), clock), 5) == ["deny"] * 5


@pytest.mark.covers("COR-68")
async def test_a_breaker_that_opened_is_open_for_every_process_at_once(timed_db: Database, clock: VirtualClock) -> None:
    await opened(timed_db, clock)
    kernel = Scripted(ALLOW)
    assert await ask_one_by_one(guarded(timed_db, kernel, clock), 2) == [CIRCUIT_OPEN] * 2
    assert kernel.asked == 0


@pytest.mark.covers("COR-68")
async def test_each_direction_has_its_own_breaker(timed_db: Database, clock: VirtualClock) -> None:
    await opened(timed_db, clock)
    outputs = guarded(timed_db, Scripted(ALLOW), clock, direction=Direction.OUTPUT)
    assert await ask_one_by_one(outputs, 1) == ["allow"]
    assert {(one.direction, one.is_open) for one in await states(timed_db)} == {("input", True), ("output", False)}


@pytest.mark.covers("COR-66")
async def test_after_the_wait_three_questions_are_asked_as_probes(timed_db: Database, clock: VirtualClock) -> None:
    await opened(timed_db, clock)
    clock.advance(timedelta(seconds=30))
    kernel = Scripted(ALLOW)
    answers = told(await guarded(timed_db, kernel, clock).ask([QUESTION] * 20))
    assert answers == ["allow"] * 3 + [CIRCUIT_OPEN] * 17
    assert kernel.asked == 3
    assert told(await guarded(timed_db, kernel, clock).ask([QUESTION] * 20)) == ["allow"] * 20


@pytest.mark.covers("COR-66")
async def test_a_bad_probe_opens_the_breaker_for_the_whole_wait(timed_db: Database, clock: VirtualClock) -> None:
    await opened(timed_db, clock)
    clock.advance(timedelta(seconds=30))
    kernel = Scripted(ALLOW, silence())
    assert await ask_one_by_one(guarded(timed_db, kernel, clock), 3) == ["allow", silence().message, CIRCUIT_OPEN]
    clock.advance(timedelta(seconds=29))
    assert await ask_one_by_one(guarded(timed_db, kernel, clock), 1) == [CIRCUIT_OPEN]


async def test_a_probe_whose_process_died_blocks_nothing(timed_db: Database, clock: VirtualClock) -> None:
    await opened(timed_db, clock)
    clock.advance(timedelta(seconds=30))
    assert (await guarded(timed_db, Scripted(ALLOW), clock).admit(3)).count == 3
    assert (await guarded(timed_db, Scripted(ALLOW), clock).admit(3)).count == 0
    clock.advance(timedelta(seconds=30))
    assert (await guarded(timed_db, Scripted(ALLOW), clock).admit(3)).count == 3


async def test_an_answer_from_before_it_opened_does_not_close_it(timed_db: Database, clock: VirtualClock) -> None:
    server = _Gate()
    late = guarded(timed_db, server, clock)
    asking = asyncio.create_task(late.ask([QUESTION]))
    await server.arrived.wait()
    await opened(timed_db, clock)
    server.answer.set()
    assert told(await asking) == ["allow"]
    assert [one.is_open for one in await states(timed_db)] == [True]


class _Gate(Scripted):
    """A kernel that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__(ALLOW)
        self.arrived = asyncio.Event()
        self.answer = asyncio.Event()

    async def check(self, question: Question) -> Verdict:
        self.arrived.set()
        await self.answer.wait()
        return await super().check(question)


async def test_all_processes_ask_at_one_pace(timed_db: Database, clock: VirtualClock) -> None:
    kernel = Scripted(ALLOW)
    processes = [guarded(timed_db, kernel, clock, rate=100.0) for _ in range(3)]
    asked = [len(await process.ask([QUESTION] * 50)) for process in processes]
    assert asked == [10, 0, 0], "a tenth of a second's questions at once"
    clock.advance(timedelta(seconds=0.05))
    assert len(await processes[1].ask([QUESTION] * 50)) == 5


async def test_a_batch_is_limited(timed_db: Database, clock: VirtualClock) -> None:
    process = guarded(timed_db, Scripted(ALLOW), clock, rate=100_000.0)
    assert len(await process.ask([QUESTION] * 500)) == ASKED_AT_ONCE_MAX


@pytest.mark.covers("COR-69", "COR-75")
async def test_without_the_shared_row_the_copy_of_the_process_decides(timed_db: Database, clock: VirtualClock) -> None:
    kernel = Scripted(silence())
    process = guarded(timed_db, kernel, clock, store_within_s=0.1)
    await ask_one_by_one(process, 2)
    async with timed_db.connection() as other, other.transaction():
        await other.execute("SELECT FROM windlass.kernels FOR UPDATE")
        answers = await ask_one_by_one(process, 3)
    assert answers == [silence().message, CIRCUIT_OPEN, CIRCUIT_OPEN]
    assert kernel.asked == 3


async def test_the_error_of_a_kernel_can_be_read_until_it_answers(timed_db: Database, clock: VirtualClock) -> None:
    process = guarded(timed_db, Scripted(silence(), ALLOW), clock)
    await process.ask([QUESTION])
    assert [one.error for one in await states(timed_db)] == [silence().message]
    await process.ask([QUESTION])
    assert [(one.error, one.failures) for one in await states(timed_db)] == [(None, 0)]


class Process:
    """A process that asks the kernel."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def read(self) -> Any:
        assert self._process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            return json.loads(await self._process.stdout.readline())

    def ask(self, count: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n".encode())

    @classmethod
    @asynccontextmanager
    async def started(cls, dsn: str, address: str) -> AsyncIterator[Process]:
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-m", "tests.engine.kernel_process", dsn, address]
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        made = cls(process)
        try:
            await made.read()
            yield made
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


_WAITED = "UPDATE windlass.kernels SET opened_at = opened_at - interval '31 s'"


@pytest.mark.covers("COR-66", "COR-68")
async def test_three_processes_send_three_probes_in_all(fresh_dsn: str) -> None:
    """Check 11, with a kernel that is killed and comes back."""
    server = GrpcServer()
    await server.start()
    server.say(KernelAnswer("allow"))
    db = await Database.open(fresh_dsn, max_size=1)
    try:
        async with AsyncExitStack() as stack:
            starting = [stack.enter_async_context(Process.started(fresh_dsn, server.address)) for _ in range(3)]
            processes = [await one for one in starting]
            await server.stop()
            # A fourth process meets the silence. The connections of the three are new when the kernel is back.
            fourth = GuardedKernel(db, SafetyKernel(server.address), clock_s=time.monotonic)
            await fourth.ask([QUESTION] * 5)
            await fourth.close()
            server.hang()
            await server.start()
            for process in processes:
                process.ask(5)
                assert await process.read() == {"answered": 0, "silent": 5}
            assert server.asked == 0, "the breaker opened in every process at once"
            await db.run(lambda connection: connection.execute(_WAITED))
            for process in processes:
                process.ask(20)
            for process in processes:
                assert await process.read() == {"answered": 0, "silent": 20}
            assert server.asked == 3
            await db.run(lambda connection: connection.execute(_WAITED))
            server.say(KernelAnswer("deny"))
            for process in processes:
                process.ask(20)
            answered = sum([(await process.read())["answered"] for process in processes])
            assert answered >= 3
            assert not (await states(db))[0].is_open, "two good probes close it, and a refusal is a good probe"
    finally:
        await db.close()
        await server.stop()
