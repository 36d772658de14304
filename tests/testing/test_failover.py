"""A real standby, promoted under load: what it may cost, and what it may not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from windlass.engine import installation
from windlass.testing.failover.__main__ import main
from windlass.testing.failover.rounds import Cost, run_rounds


async def one_round(folder: Path, *, is_synchronous: bool) -> Cost:
    [cost] = await run_rounds(folder, is_synchronous=is_synchronous, rounds=1)
    assert cost.accepted > 0
    assert cost.timeline == (1, 2)
    return cost


@pytest.mark.slow
async def test_with_a_synchronous_standby_nothing_acknowledged_is_lost_or_run_again(server_folder: Path) -> None:
    cost = await one_round(server_folder, is_synchronous=True)
    assert (cost.lost, cost.run_again, cost.wrong) == (0, 0, [])
    assert cost.epoch == (1, 2)


@pytest.mark.slow
async def test_with_an_asynchronous_standby_the_tail_is_lost_and_followers_are_told(server_folder: Path) -> None:
    cost = await one_round(server_folder, is_synchronous=False)
    assert cost.lost > 0, "the standby was held back"
    assert cost.wrong == [], "what is left is consistent, and no attempt was ended by another worker"
    assert cost.epoch == (1, 2)


@pytest.mark.slow
async def test_a_timeline_that_nobody_looks_at_is_noticed_by_the_count(
    server_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "look", installation.read)
    cost = await one_round(server_folder, is_synchronous=True)
    assert cost.wrong == ["the epoch is 1 before and after: followers were not told"]


def test_the_command_tells_what_each_failover_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def rounds(_: Path, *, on_round: Callable[[Cost], None], **given: object) -> list[Cost]:
        await asyncio.sleep(0)
        costs = [Cost(accepted=9, timeline=(1, 2), epoch=(1, 2)), Cost(accepted=8, wrong=["odd"])]
        for cost in costs:
            on_round(cost)
        return costs

    monkeypatch.setattr("windlass.testing.failover.__main__.run_rounds", rounds)
    monkeypatch.setattr(sys, "argv", ["failover", "--rounds", "2", "--mode", "async"])
    assert main() == 1
    told = capsys.readouterr().out
    assert "async: 9 accepted" in told and "17 accepted" in told and "WRONG: odd" in told
