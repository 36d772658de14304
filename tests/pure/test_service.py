"""Services start in order, stop in reverse, and say how they are."""

from __future__ import annotations

import pytest

from windlass.pure.service import OK, STUCK_AFTER_S, Services


class Part:
    """A service that writes down what happens to it."""

    def __init__(self, name: str, diary: list[str], *, fails: str = "", age_s: float | None = 0.0) -> None:
        self.name = name
        self.age_s = age_s
        self.is_ready = True
        self._diary = diary
        self._fails = fails

    async def start(self) -> None:
        self._diary.append(f"+{self.name}")
        if self._fails == "start":
            raise LookupError(self.name)

    async def stop(self) -> None:
        self._diary.append(f"-{self.name}")
        if self._fails == "stop":
            raise LookupError(self.name)

    def alive(self) -> float | None:
        return self.age_s

    def ready(self) -> bool:
        return self.is_ready


async def test_the_last_that_started_stops_first() -> None:
    diary: list[str] = []
    services = Services()
    for name in "abc":
        await services.start(Part(name, diary))
    await services.stop()
    await services.stop()
    assert diary == ["+a", "+b", "+c", "-c", "-b", "-a"]


async def test_a_service_that_fails_to_stop_keeps_no_other_from_ending() -> None:
    diary: list[str] = []
    services = Services()
    await services.start(Part("a", diary))
    await services.start(Part("b", diary, fails="stop"))
    with pytest.raises(LookupError, match="b"):
        await services.stop()
    assert diary == ["+a", "+b", "-b", "-a"]


async def test_a_service_that_fails_to_start_is_stopped_too() -> None:
    diary: list[str] = []
    services = Services()
    with pytest.raises(LookupError):
        await services.start(Part("a", diary, fails="start"))
    await services.stop()
    assert diary == ["+a", "-a"]


async def test_a_group_says_how_each_is() -> None:
    services = Services()
    well, stuck = Part("well", []), Part("stuck", [], age_s=STUCK_AFTER_S + 1)
    idle, unready = Part("idle", [], age_s=None), Part("unready", [])
    unready.is_ready = False
    for part in (well, stuck, idle, unready):
        await services.start(part)
    assert services.states() == {
        "well": OK, "stuck": "has not turned for 31 s", "idle": OK, "unready": "is not ready"
    }  # fmt: skip
    assert services.alive() == {"well": 0.0, "stuck": STUCK_AFTER_S + 1, "unready": 0.0}
