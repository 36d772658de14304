"""The durability of acknowledged writes, which PostgreSQL's settings determine: three levels.

    DISK   one server, and its disk survives: no acknowledged write is lost
    NODE   any one server may be lost with its disk: no acknowledged write is lost
    TAIL   the last commits before a failure may be lost; the remaining state is consistent

docs/concepts/promises.md describes the levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Promise(StrEnum):
    """The writes that a failure may lose."""

    DISK = "disk"
    NODE = "node"
    TAIL = "tail"


MEANING: dict[Promise, str] = {
    Promise.DISK: "nothing acknowledged is lost while the disk of the server survives",
    Promise.NODE: "nothing acknowledged is lost when any one server is lost",
    Promise.TAIL: "the last acknowledged commits may be lost with a server",
}


@dataclass(frozen=True, slots=True)
class Durability:
    """The settings that determine the level, and the number of standbys that receive this server's log."""

    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    synchronous_standby_names: str
    standbys: int


def promise_of(found: Durability) -> tuple[Promise, str]:
    """Return the level, and the setting that determines it."""
    for name, is_on in (("fsync", found.fsync), ("full_page_writes", found.full_page_writes)):
        if not is_on:
            return Promise.TAIL, f"{name} is off: a crash of the machine may lose commits, or the database"
    if found.synchronous_commit == "off":
        return Promise.TAIL, "synchronous_commit is off: a crash of the server may lose the last commits"
    if found.synchronous_standby_names:
        if found.synchronous_commit == "local":
            return Promise.TAIL, "synchronous_commit is local: commits do not wait for the synchronous standby"
        return Promise.NODE, "commits wait for a synchronous standby"
    if found.standbys:
        return Promise.TAIL, "the standby is asynchronous: a failover to it may lose the last commits"
    return Promise.DISK, "one server, and commits wait for its disk"
