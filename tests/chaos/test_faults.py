"""Which faults there are, and in which order."""

from __future__ import annotations

import random
from collections import Counter

from windlass.engine.workers import LEASE_S
from windlass.testing.chaos.faults import FAULTS_A_MINUTE, FAULTS_A_MINUTE_MIN, PER_MINUTE, Deck, Fault, missing


def drawn(seed: int, count: int) -> list[Fault | None]:
    deck = Deck(random.Random(seed))
    return [deck.draw(lambda _: True) for _ in range(count)]


def test_a_minute_has_every_kind_and_enough_of_them() -> None:
    assert Counter(drawn(1, FAULTS_A_MINUTE)) == PER_MINUTE
    assert set(PER_MINUTE) == set(Fault)
    assert FAULTS_A_MINUTE >= 1.2 * FAULTS_A_MINUTE_MIN


def test_the_same_seed_deals_the_same_faults() -> None:
    assert drawn(5, 200) == drawn(5, 200) != drawn(6, 200)


def test_what_cannot_be_played_now_waits_for_its_turn() -> None:
    deck = Deck(random.Random(1))
    others = [deck.draw(lambda fault: fault is not Fault.ENGINE_KILLED) for _ in range(300)]
    assert Fault.ENGINE_KILLED not in others
    assert None not in others
    assert deck.draw(lambda fault: fault is Fault.ENGINE_KILLED) is Fault.ENGINE_KILLED
    assert deck.draw(lambda _: False) is None


def test_some_stops_outlast_the_lease() -> None:
    deck = Deck(random.Random(1))
    stops = [deck.stop_s(Fault.WORKER_STOPPED) for _ in range(200)]
    assert min(stops) >= 1
    assert 15 < max(stops) <= 25
    assert sum(stop_s > 15 for stop_s in stops) > 20


def test_a_kind_that_never_fired_is_named() -> None:
    played = Counter(fault for fault in Fault if fault is not Fault.HEARTBEAT_KILLED)
    assert missing(played) == [Fault.HEARTBEAT_KILLED]


def test_an_outage_outlasts_the_lease() -> None:
    deck = Deck(random.Random(1))
    assert all(deck.stop_s(Fault.SERVER_AWAY) > LEASE_S for _ in range(50))
