"""Group commit: items that arrive while a commit is under way share the next commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")
Waiting = list[tuple[T, asyncio.Future[A]]]


class GroupCommit(Generic[T, A]):
    """Commits items in batches. A caller gets its answer only after the commit that contains its item.

    `commit` writes a batch and returns an answer for each item, in order. `split` separates the next batch from the
    items that wait longer. With more than one lane, a batch may start beside another, so that this process prepares one
    batch while the database writes the other. It starts once as many items wait as are being written: a small batch
    costs as many round trips as a large one.
    """

    def __init__(
        self,
        name: str,
        commit: Callable[[list[T]], Awaitable[Sequence[A]]],
        split: Callable[[Waiting[T, A]], tuple[Waiting[T, A], Waiting[T, A]]],
        *,
        lanes: int = 1,
    ) -> None:
        self._name = name
        self._commit = commit
        self._split = split
        self._waiting: Waiting[T, A] = []
        self._lanes = lanes
        # How many commits are under way, and of how many items. The last commit to end takes the items that wait.
        self._busy = 0
        self._writing = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def put(self, item: T) -> A:
        """Commit one item.

        A lone caller commits in its own task: on an idle machine a new task costs as much as the rest here.
        """
        if self._busy:
            return await self.put_soon(item)
        self._busy += 1
        self._writing += 1
        try:
            [answer] = await self._commit([item])
            return answer
        finally:
            self._busy -= 1
            self._writing -= 1
            if self._waiting:
                self._start()

    def put_soon(self, item: T) -> asyncio.Future[A]:
        """Commit one item together with the items that arrive at the same moment."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if not self._busy or (self._busy < self._lanes and len(self._waiting) >= self._writing > 0):
            self._start()
        return future

    def _start(self) -> None:
        self._busy += 1
        task = asyncio.create_task(self._drain(), name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._split(self._waiting)
                self._writing += len(batch)
                try:
                    await self._answer(batch)
                finally:
                    self._writing -= len(batch)
        finally:
            self._busy -= 1

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
        """Commit each item alone after a failed batch, so that an item that cannot be committed fails no other."""
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
