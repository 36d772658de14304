"""What the settings of PostgreSQL promise."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from windlass.pure.promise import MEANING, Durability, Promise, promise_of

ALONE = Durability(True, True, "on", "", 0)
SYNCHRONOUS = replace(ALONE, synchronous_standby_names="one", standbys=1)


@pytest.mark.parametrize(
    ("found", "level", "why"),
    [
        (ALONE, Promise.DISK, "waits? for its disk"),
        (SYNCHRONOUS, Promise.NODE, "wait for a synchronous standby"),
        (replace(SYNCHRONOUS, standbys=0), Promise.NODE, "synchronous"),
        (replace(SYNCHRONOUS, synchronous_commit="remote_apply"), Promise.NODE, "synchronous"),
        (replace(SYNCHRONOUS, synchronous_commit="local"), Promise.TAIL, "local"),
        (replace(SYNCHRONOUS, synchronous_commit="off"), Promise.TAIL, "synchronous_commit is off"),
        (replace(ALONE, standbys=1), Promise.TAIL, "asynchronous"),
        (replace(ALONE, fsync=False), Promise.TAIL, "fsync is off"),
        (replace(ALONE, full_page_writes=False), Promise.TAIL, "full_page_writes is off"),
    ],
)
def test_the_weakest_setting_decides(found: Durability, level: Promise, why: str) -> None:
    promise, reason = promise_of(found)
    assert promise is level
    assert re.search(why, reason)


def test_every_level_has_a_meaning() -> None:
    assert set(MEANING) == set(Promise)
