"""Group commit: what is handed in while one commit is under way goes into the next one, together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")
Waiting = list[tuple[T, asyncio.Future[A]]]


class GroupCommit(Generic[T, A]):
    """Each caller is answered only after the commit that holds what it handed in.

    `commit` writes a batch and gives an answer for each, in order. `split` tells the next batch from the rest of those
    who wait.
    """

    def __init__(
        self,
        name: str,
        commit: Callable[[list[T]], Awaitable[Sequence[A]]],
        split: Callable[[Waiting[T, A]], tuple[Waiting[T, A], Waiting[T, A]]],
    ) -> None:
        self._name = name
        self._commit = commit
        self._split = split
        self._waiting: Waiting[T, A] = []
        # Whether a commit is under way; whoever has it sees to those who wait.
        self._is_busy = False
        self._task: asyncio.Task[None] | None = None

    async def put(self, item: T) -> A:
        """Commit one. Who comes alone does it by himself: on an idle machine a task costs as much as all else here."""
        if self._is_busy:
            return await self.put_soon(item)
        self._is_busy = True
        try:
            [answer] = await self._commit([item])
            return answer
        finally:
            self._is_busy = False
            if self._waiting:
                self._start()

    def put_soon(self, item: T) -> asyncio.Future[A]:
        """Commit one together with those who come in the same moment."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if not self._is_busy:
            self._start()
        return future

    def _start(self) -> None:
        self._is_busy = True
        self._task = asyncio.create_task(self._drain(), name=self._name)

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._split(self._waiting)
                await self._answer(batch)
        finally:
            self._is_busy = False

    async def _answer(self, batch: Waiting[T, A]) -> None:
        try:
            answers = await self._commit([item for item, _ in batch])
        except Exception as error:
            await self._one_by_one(batch, error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)

    async def _one_by_one(self, batch: Waiting[T, A], error: Exception) -> None:
        """One that cannot be committed must not take its neighbours with it: each is told apart."""
        for item, future in batch:
            if future.done():
                continue
            if len(batch) == 1:
                future.set_exception(error)
                continue
            try:
                [answer] = await self._commit([item])
                future.set_result(answer)
            except Exception as own:
                future.set_exception(own)
