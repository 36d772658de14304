"""Group commit: what waits goes together, and a second batch may start beside the first."""

from __future__ import annotations

import asyncio

import pytest

from windlass.engine.group_commit import GroupCommit, Waiting


class Slow:
    """A commit that ends when it is told to."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gates: list[asyncio.Event] = []

    async def commit(self, items: list[int]) -> list[int]:
        self.batches.append(items)
        self.gates.append(gate := asyncio.Event())
        await gate.wait()
        return [10 * item for item in items]


def _all(waiting: Waiting[int, int]) -> tuple[Waiting[int, int], Waiting[int, int]]:
    return waiting, []


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_comes_in_one_turn_goes_together() -> None:
    slow = Slow()
    group = GroupCommit("test", slow.commit, _all)
    futures = [group.put_soon(item) for item in (1, 2, 3)]
    await _turns()
    assert slow.batches == [[1, 2, 3]]
    slow.gates[0].set()
    assert await asyncio.gather(*futures) == [10, 20, 30]


@pytest.mark.parametrize(("lanes", "beside"), [(1, 0), (2, 1)])
async def test_a_second_batch_starts_once_as_many_wait_as_are_written(lanes: int, beside: int) -> None:
    slow = Slow()
    group = GroupCommit("test", slow.commit, _all, lanes=lanes)
    first = [group.put_soon(item) for item in (1, 2)]
    await _turns()
    second = [group.put_soon(3)]
    await _turns()
    assert slow.batches == [[1, 2]]
    second.append(group.put_soon(4))
    await _turns()
    assert slow.batches[1:] == [[3, 4]] * beside
    third = [group.put_soon(item) for item in range(5, 15)]
    await _turns()
    assert len(slow.batches) == 1 + beside
    while not all(future.done() for future in (*first, *second, *third)):
        for gate in slow.gates:
            gate.set()
        await _turns()
    assert [future.result() for future in (*first, *second, *third)] == [10 * item for item in range(1, 15)]
    assert sorted(item for batch in slow.batches for item in batch) == list(range(1, 15))
