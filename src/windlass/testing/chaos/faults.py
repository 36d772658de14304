"""The faults of a chaos run: a deck of cards, shuffled by the seed, played one after the other.

A deck has enough cards for a minute, and every kind is in it. A card that cannot be played now waits: its process does
not run, or PostgreSQL is down anyway. The next playable card is played instead.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from enum import StrEnum


class Fault(StrEnum):
    """A kind of fault."""

    WORKER_KILLED = "worker killed"
    MACHINE_KILLED = "worker killed with its heartbeat"
    WORKER_STOPPED = "worker stopped"
    MACHINE_STOPPED = "worker stopped with its heartbeat"
    ENGINE_KILLED = "engine killed"
    ENGINE_STOPPED = "engine stopped"
    API_KILLED = "api killed"
    API_STOPPED = "api stopped"
    PROVIDER_KILLED = "provider killed"
    HEARTBEAT_KILLED = "heartbeat killed"
    HEARTBEAT_STOPPED = "heartbeat stopped"
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
    Fault.MACHINE_KILLED: 4,
    Fault.WORKER_STOPPED: 8,
    Fault.MACHINE_STOPPED: 4,
    Fault.ENGINE_KILLED: 10,
    Fault.ENGINE_STOPPED: 6,
    Fault.API_KILLED: 7,
    Fault.API_STOPPED: 3,
    Fault.PROVIDER_KILLED: 4,
    Fault.HEARTBEAT_KILLED: 7,
    Fault.HEARTBEAT_STOPPED: 4,
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
# A run with fewer faults proves too little.
FAULTS_A_MINUTE_MIN = 60

# How long a process is stopped. Some stops outlast the lease of 15 s: then other processes take over meanwhile.
STOP_S = (1.0, 8.0)
LONG_STOP_S = (16.0, 25.0)
LONG_STOPS = 0.3
BACKEND_STOP_S = (1.0, 6.0)
# Longer than the lease, so that every lease lapses while no process can renew it.
AWAY_S = (17.0, 22.0)
READ_ONLY_S = (3.0, 9.0)


class Deck:
    """The cards that are left; another deck is added when none of them can be played."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._cards: list[Fault] = []

    def draw(self, can_play: Callable[[Fault], bool]) -> Fault | None:
        """Draw the next card that can be played; None when there is none."""
        if (card := self._pick(can_play)) is None and len(self._cards) < FAULTS_A_MINUTE:
            # One of each kind comes first: a slow machine plays only a part of the deck in a minute.
            first, more = list(PER_MINUTE), [fault for fault, count in PER_MINUTE.items() for _ in range(count - 1)]
            self._rng.shuffle(first)
            self._rng.shuffle(more)
            self._cards += first + more
            card = self._pick(can_play)
        return card

    def _pick(self, can_play: Callable[[Fault], bool]) -> Fault | None:
        playable = {fault: can_play(fault) for fault in sorted(set(self._cards))}
        for place, card in enumerate(self._cards):
            if playable[card]:
                return self._cards.pop(place)
        return None

    def put_back(self, card: Fault) -> None:
        """Put back a card that could not be played; it comes last."""
        self._cards.append(card)

    def stop_s(self, fault: Fault) -> float:
        """Draw how long this fault lasts."""
        match fault:
            case Fault.BACKEND_STOPPED:
                return self._rng.uniform(*BACKEND_STOP_S)
            case Fault.SERVER_AWAY:
                return self._rng.uniform(*AWAY_S)
            case Fault.SERVER_READ_ONLY:
                return self._rng.uniform(*READ_ONLY_S)
            case _:
                pass
        return self._rng.uniform(*(LONG_STOP_S if self._rng.random() < LONG_STOPS else STOP_S))


def missing(played: Counter[Fault]) -> list[Fault]:
    """Return the kinds that never fired."""
    return [fault for fault in Fault if not played[fault]]
