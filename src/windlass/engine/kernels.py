"""Asks a kernel outside of the process many questions, at a pace and behind a breaker that all processes share.

    questions ─► admit: the row of the kernel says how many may be asked now     one short transaction
                    │ at most ASKED_AT_ONCE_MAX at the same time, each with the kernel's own time limit
                    ▼
              verdicts and silences ─► report: the law of `core/breaker.py` moves the row

Three failures in a row open the breaker for 30 s, in every process at once. Then all processes together send at most
three probes, two good probes close it, and a bad probe opens it again. A refusal is an answer, and no failure.

Each process also has a copy of the breaker. It stops the questions of a batch as soon as three of them failed, and it
decides alone while the database cannot be reached.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import asyncpg

from windlass.core.bell import PolicyPublished
from windlass.core.breaker import Breaker
from windlass.core.errors import SafetyUnavailable, Unavailable
from windlass.core.gate import KERNEL_BREAKER, Gate
from windlass.core.verdict import Verdict
from windlass.policy.kernel import Kernel
from windlass.policy.question import Question
from windlass.policy.rules import Policy
from windlass.store.database import Database
from windlass.store.provider_gate import kernel_gate_of, opened_at
from windlass.store.statements import bound, sql

ASKED_AT_ONCE_MAX = 64
# Questions in a second, of all processes. After an outage the jobs that wait are asked about at this pace.
RATE = 500.0
# The time of a statement about the breaker. After it the copy of this process decides.
STORE_WITHIN_S = 2.0
CIRCUIT_OPEN = "safety kernel circuit open"
_ERROR_MAX = 500

_log = logging.getLogger("windlass.policy")


class Direction(StrEnum):
    """What a kernel judges: requests, or outputs. Each direction has its own breaker."""

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Admission:
    """How many questions may be asked now, in which round of the breaker, and when the next may be asked."""

    count: int
    round: int
    wait_s: float = 0.0
    is_open: bool = False


class KernelState(NamedTuple):
    """The breaker of a kernel, as all processes share it."""

    name: str
    direction: str
    is_open: bool
    failures: int
    error: str | None
    updated_at: datetime


Answer = Verdict | SafetyUnavailable


class GuardedKernel:
    """A kernel behind its breaker. It is a `Kernel` itself, for single questions.

    `clock_s` is a clock that never goes back, for the copy of the breaker.
    """

    is_remote = True

    def __init__(
        self,
        db: Database,
        kernel: Kernel,
        *,
        clock_s: Callable[[], float],
        direction: Direction = Direction.INPUT,
        rate: float = RATE,
        store_within_s: float = STORE_WITHIN_S,
    ) -> None:
        self.name = kernel.name
        self.within_s = kernel.within_s
        self.direction = direction
        self._db = db
        self._kernel = kernel
        self._clock_s = clock_s
        self._rate = rate
        self._store_within_s = store_within_s
        self._copy = KERNEL_BREAKER

    async def check(self, question: Question) -> Verdict:
        """Return the verdict about one question. Raises SafetyUnavailable."""
        answer = next(iter(await self.ask([question])), None)
        if answer is None:
            raise SafetyUnavailable(f"the kernel {self.name} has enough questions for now", is_silent=False)
        if isinstance(answer, SafetyUnavailable):
            raise answer
        return answer

    async def close(self) -> None:
        """Close the connections of the kernel."""
        await self._kernel.close()

    async def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Ask the first questions, as many as may be asked now, at the same time; return their answers.

        While the breaker is open, all other questions have an answer too: silence.
        """
        admission = await self.admit(len(questions))
        batch = _Batch(self._kernel, self._copy, admission, self._clock_s)
        answers = await batch.ask(questions[: admission.count])
        await self._report(admission, batch)
        if not admission.is_open:
            return answers
        return [*answers, *(_circuit_open() for _ in questions[admission.count :])]

    async def admit(self, wanted: int) -> Admission:
        """Count the questions that may be asked now."""
        wanted = min(wanted, ASKED_AT_ONCE_MAX)
        if wanted == 0:
            return Admission(0, self._copy.round)
        try:
            async with asyncio.timeout(self._store_within_s):
                admission, self._copy = await self._db.run(lambda connection: self._admit(connection, wanted))
        except (Unavailable, OSError) as error:
            _log.warning("the breaker of the kernel %s goes by this process alone: %s", self.name, error)
            now_s = self._clock_s()
            count, self._copy = self._copy.admit(wanted, now_s)
            return Admission(count, self._copy.round, self._copy.wait_s(now_s), self._copy.is_open)
        return admission

    async def _admit(self, connection: asyncpg.Connection, wanted: int) -> tuple[Admission, Breaker]:
        async with connection.transaction():
            gate, now = await _locked(connection, self.name, self.direction, self._rate)
            count = min(wanted, gate.room(now))
            after = gate.taken(count, now)
            if count:
                await connection.execute(*bound("kernel_taken", **self._row(after.breaker), free_at=after.free_at))
            wait_s = (after.opens_at(now) - now).total_seconds()
            admission = Admission(count, after.breaker.round, wait_s, after.breaker.is_open)
            return admission, _by_clock(after.breaker, now, self._clock_s())

    async def _report(self, admission: Admission, batch: _Batch) -> None:
        """Move the breaker by the results of a batch, in the order in which they came."""
        self._copy = batch.breaker
        results = batch.results
        if not results:
            return
        try:
            async with asyncio.timeout(self._store_within_s):
                if admission.is_open or any(error is not None for error in results):
                    self._copy = await self._db.run(lambda connection: self._move(connection, admission, results))
                else:
                    names = (self.name, self.direction)
                    await self._db.run(lambda connection: connection.execute(sql("kernel_answered"), *names))
        except (Unavailable, OSError) as error:
            _log.warning("the breaker of the kernel %s cannot be written now: %s", self.name, error)

    async def _move(
        self, connection: asyncpg.Connection, admission: Admission, results: Sequence[str | None]
    ) -> Breaker:
        async with connection.transaction():
            gate, now = await _locked(connection, self.name, self.direction, self._rate)
            before = breaker = gate.breaker
            for error in results:
                breaker = _moved(breaker, error, now.timestamp(), admission.round)
            if breaker != before:
                error = next((error for error in reversed(results) if error is not None), None)
                await connection.execute(
                    *bound(
                        "kernel_reported",
                        **self._row(breaker),
                        failures=breaker.failures,
                        error=None if error is None else error[:_ERROR_MAX],
                    ),
                )
            return _by_clock(breaker, now, self._clock_s())

    def _row(self, breaker: Breaker) -> dict[str, Any]:
        return {
            "name": self.name,
            "direction": self.direction,
            "opened_at": opened_at(breaker),
            "probes": breaker.probes,
            "successes": breaker.successes,
            "round": breaker.round,
        }


@dataclass(frozen=True, slots=True)
class KernelGate:
    """The kernel of a process, and what happens while it is silent.

    `fail_mode` is None if the policy says it. `count` hears of each job that the kernel did not judge: the name of the
    event, and the topic.
    """

    guard: GuardedKernel
    fail_mode: str | None = None
    count: Callable[[str, str], None] | None = None

    def is_open(self, policy: Policy | None) -> bool:
        """Return whether a job may run while the kernel is silent. Every global document of the policy must agree."""
        if self.fail_mode is not None:
            return self.fail_mode == "open"
        return policy is not None and policy.is_fail_open


class _Batch:
    """Questions that are asked at the same time. Once the breaker opens, the others are not asked."""

    def __init__(self, kernel: Kernel, breaker: Breaker, admission: Admission, clock_s: Callable[[], float]) -> None:
        self.breaker = breaker
        # The errors of the questions that were asked, in the order of their ends; None for an answer.
        self.results: list[str | None] = []
        self._kernel = kernel
        self._admission = admission
        self._clock_s = clock_s

    async def ask(self, questions: Sequence[Question]) -> list[Answer]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(question)) for question in questions]
        return [task.result() for task in tasks]

    async def _one(self, question: Question) -> Answer:
        if self.breaker.is_open and not self._admission.is_open:
            # It opened after the admission.
            return _circuit_open()
        answer: Answer
        try:
            answer, error = await self._kernel.check(question), None
        except SafetyUnavailable as unavailable:
            answer, error = unavailable, unavailable.message
        self.results.append(error)
        self.breaker = _moved(self.breaker, error, self._clock_s(), self._admission.round)
        return answer


async def announce(db: Database, name: str | None) -> None:
    """Make this the kernel that is asked about every new job, in all processes; None: there is no kernel."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await connection.execute(sql("policy_lock"))
            if await connection.fetchval(sql("kernel_announce"), name):
                connection.ring(PolicyPublished())

    await db.run(operation)


async def states(db: Database) -> list[KernelState]:
    """Return the breakers of all kernels."""
    rows = await db.run(lambda connection: connection.fetch(sql("kernel_list")))
    return [
        KernelState(
            row["name"], row["direction"], row["opened_at"] is not None, row["failures"], row["error"],
            row["updated_at"],
        )
        for row in rows
    ]  # fmt: skip


async def _locked(
    connection: asyncpg.Connection, name: str, direction: Direction, rate: float
) -> tuple[Gate, datetime]:
    row = await connection.fetchrow(sql("kernel_lock"), name, direction)
    if row is None:
        await connection.execute(sql("kernel_make"), name, direction)
        row = await connection.fetchrow(sql("kernel_lock"), name, direction)
    return kernel_gate_of(row, rate), row["now"]


def _moved(breaker: Breaker, error: str | None, now_s: float, round: int) -> Breaker:
    return breaker.succeeded(round) if error is None else breaker.failed(now_s, round)


def _by_clock(breaker: Breaker, now: datetime, clock_s: float) -> Breaker:
    """Return the shared breaker as a copy that counts the seconds of this process's clock."""
    if breaker.opened_s is None:
        return breaker
    return Breaker(
        breaker.failures_max, breaker.open_s, breaker.probes_max, breaker.closes_after, breaker.failures,
        clock_s - (now.timestamp() - breaker.opened_s), breaker.probes, breaker.successes, breaker.round,
    )  # fmt: skip


def _circuit_open() -> SafetyUnavailable:
    return SafetyUnavailable(CIRCUIT_OPEN, is_silent=True)
