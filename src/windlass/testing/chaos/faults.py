"""The faults of a chaos run: a deck of cards, shuffled by the seed, played one after the other.

A deck is a minute's worth, and every kind is in it. A card that cannot be played at the moment (no such process, or
PostgreSQL is down anyway) waits for its turn; the next one that can be is played instead.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from enum import StrEnum


class Fault(StrEnum):
    """What is done to the cluster."""

    WORKER_KILLED = "worker killed"
    WORKER_STOPPED = "worker stopped"
    MACHINE_STOPPED = "worker stopped with its pulse"
    ENGINE_KILLED = "engine killed"
    ENGINE_STOPPED = "engine stopped"
    API_KILLED = "api killed"
    API_STOPPED = "api stopped"
    PROVIDER_KILLED = "provider killed"
    PULSE_KILLED = "pulse killed"
    PULSE_STOPPED = "pulse stopped"
    CHILD_KILLED = "cpu process killed"
    POSTMASTER_KILLED = "postmaster killed"
    POSTMASTER_QUIT = "postmaster quit at once"
    BACKEND_KILLED = "backend killed"
    BACKEND_STOPPED = "backend stopped"
    BACKEND_TERMINATED = "backend terminated"
    SERVER_AWAY = "PostgreSQL away for longer than a lease"
    SERVER_READ_ONLY = "PostgreSQL read-only"


PER_MINUTE: dict[Fault, int] = {
    Fault.WORKER_KILLED: 14,
    Fault.WORKER_STOPPED: 8,
    Fault.MACHINE_STOPPED: 4,
    Fault.ENGINE_KILLED: 10,
    Fault.ENGINE_STOPPED: 6,
    Fault.API_KILLED: 7,
    Fault.API_STOPPED: 3,
    Fault.PROVIDER_KILLED: 4,
    Fault.PULSE_KILLED: 7,
    Fault.PULSE_STOPPED: 4,
    Fault.CHILD_KILLED: 5,
    Fault.POSTMASTER_KILLED: 2,
    Fault.POSTMASTER_QUIT: 2,
    Fault.BACKEND_KILLED: 2,
    Fault.BACKEND_STOPPED: 4,
    Fault.BACKEND_TERMINATED: 12,
    Fault.SERVER_AWAY: 1,
    Fault.SERVER_READ_ONLY: 2,
}
FAULTS_A_MINUTE = sum(PER_MINUTE.values())
# A run with fewer than this has not shown what it is for.
FAULTS_A_MINUTE_MIN = 60

# How long a process is stopped. Some stops outlast the lease of 15 s: then others take over while it sleeps.
STOP_S = (1.0, 8.0)
LONG_STOP_S = (16.0, 25.0)
LONG_STOPS = 0.3
BACKEND_STOP_S = (1.0, 6.0)
# Longer than the lease, so that every lease lapses while no process can renew it.
AWAY_S = (17.0, 22.0)
READ_ONLY_S = (3.0, 9.0)


class Deck:
    """The cards that are left; another deck is added when none of them can be played."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._cards: list[Fault] = []

    def draw(self, can_play: Callable[[Fault], bool]) -> Fault | None:
        """The next card that can be played; None when there is none."""
        if (card := self._pick(can_play)) is None and len(self._cards) < FAULTS_A_MINUTE:
            more = [fault for fault, count in PER_MINUTE.items() for _ in range(count)]
            self._chance.shuffle(more)
            self._cards += more
            card = self._pick(can_play)
        return card

    def _pick(self, can_play: Callable[[Fault], bool]) -> Fault | None:
        playable = {fault: can_play(fault) for fault in sorted(set(self._cards))}
        for place, card in enumerate(self._cards):
            if playable[card]:
                return self._cards.pop(place)
        return None

    def put_back(self, card: Fault) -> None:
        """It could not be played after all; it comes last."""
        self._cards.append(card)

    def stop_s(self, fault: Fault) -> float:
        """How long this fault lasts."""
        match fault:
            case Fault.BACKEND_STOPPED:
                return self._chance.uniform(*BACKEND_STOP_S)
            case Fault.SERVER_AWAY:
                return self._chance.uniform(*AWAY_S)
            case Fault.SERVER_READ_ONLY:
                return self._chance.uniform(*READ_ONLY_S)
            case _:
                pass
        return self._chance.uniform(*(LONG_STOP_S if self._chance.random() < LONG_STOPS else STOP_S))


def missing(played: Counter[Fault]) -> list[Fault]:
    """The kinds that never fired."""
    return [fault for fault in Fault if not played[fault]]
