"""Services start in order, stop in reverse, and say how they are."""

from __future__ import annotations

import asyncio

import pytest

from windlass.pure import service
from windlass.pure.service import OK, STUCK_AFTER_S, WITHOUT, Services


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
        "well": OK, "stuck": "has not run for 31 s", "idle": OK, "unready": "is not ready"
    }  # fmt: skip
    assert services.alive() == {"well": 0.0, "stuck": STUCK_AFTER_S + 1, "unready": 0.0}


async def test_a_group_within_another_is_told_of_and_stopped_first() -> None:
    diary: list[str] = []
    outer = Services()
    await outer.start(Part("a", diary))
    inner = Services(outer)
    await inner.start(Part("b", diary))
    assert outer.states() == {"a": OK, "b": OK}
    await outer.stop()
    await inner.stop()
    assert diary == ["+a", "+b", "-b", "-a"]
    assert outer.states() == {}


async def test_a_group_that_was_stopped_is_not_told_of() -> None:
    outer = Services()
    inner = Services(outer)
    await inner.start(Part("b", []))
    await inner.stop()
    assert outer.states() == {}
    await inner.start(Part("c", []))
    assert outer.states() == {"c": OK}, "it may be used again"


async def test_an_error_of_a_group_within_is_raised_when_all_have_ended() -> None:
    diary: list[str] = []
    outer = Services()
    await outer.start(Part("a", diary))
    await Services(outer).start(Part("b", diary, fails="stop"))
    with pytest.raises(LookupError, match="b"):
        await outer.stop()
    assert diary == ["+a", "+b", "-b", "-a"]


async def test_a_service_that_is_not_needed_is_said_to_be_so() -> None:
    services = Services()
    part = await services.start(Part("bus", []), is_needed=False)
    assert services.states() == {"bus": OK}
    part.is_ready = False
    assert services.states() == {"bus": WITHOUT}


async def test_a_late_service_is_reported_once_it_has_started() -> None:
    may_start = asyncio.Event()

    class Slow(Part):
        async def start(self) -> None:
            await may_start.wait()
            self.is_ready = True

    services = Services()
    late, early = Slow("late", []), Slow("early", [])
    late.is_ready = early.is_ready = False
    starts = [asyncio.create_task(services.start(late, is_late=True)), asyncio.create_task(services.start(early))]
    await asyncio.sleep(0)
    assert services.states() == {"early": "is not ready"}
    may_start.set()
    await asyncio.gather(*starts)
    assert services.states() == {"late": OK, "early": OK}
    late.is_ready = False
    assert services.states()["late"] == "is not ready"
    await services.stop()


async def test_what_ends_by_one_call_is_a_service() -> None:
    diary: list[str] = []

    async def later() -> None:
        diary.append("later")

    services = Services()
    await services.start(service.Part("at once", lambda: diary.append("at once")))
    await services.start(service.Part("later", later, is_ready=lambda: False))
    await services.start(service.Part("never"))
    assert services.states() == {"at once": OK, "later": "is not ready", "never": OK}
    await services.stop()
    assert diary == ["later", "at once"]


async def test_a_stop_that_is_thrown_away_waits_for_no_other() -> None:
    diary: list[str] = []

    class Slow(Part):
        async def stop(self) -> None:
            await super().stop()
            await asyncio.sleep(1)

    services = Services()
    await services.start(Part("a", diary))
    await services.start(Slow("b", diary))
    stopping = services.stop()
    stopping.send(None)
    stopping.close()
    assert diary == ["+a", "+b", "-b"]


async def test_a_group_says_when_those_within_had_a_turn() -> None:
    services = Services()
    within = Services(services)
    await services.start(Part("a", [], age_s=1.0))
    await within.start(Part("b", [], age_s=2.0))
    assert services.alive() == {"a": 1.0, "b": 2.0}
