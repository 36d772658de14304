"""The output of a finished fan-out: the JSON list of its children's outputs, read in parts.

Only the sizes of the children's outputs are kept in memory, however many children there are. Reading a part reads the
outputs that lie in it, from their rows or from the artifact store.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from windlass.core.visibility import Reader
from windlass.store.artifact import Artifacts, Ref, ref_in
from windlass.store.database import Database
from windlass.store.outputs import fetch_or_refuse

SIZES_PAGE = 5_000
OUTPUTS_PAGE = 500
_NOTHING = b"null"


@dataclass(slots=True)
class FanOutput:
    """The list as bytes. Child i begins at `starts[i]`; a comma follows its text, or a bracket after the last child."""

    db: Database
    artifacts: Artifacts
    job_id: UUID
    no: int
    numbers: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    refs: dict[int, Ref] = field(default_factory=dict)
    size: int = 1

    @classmethod
    async def load(cls, db: Database, artifacts: Artifacts, job_id: UUID, no: int) -> FanOutput:
        """Read the size of each child's output."""
        made = cls(db, artifacts, job_id, no)
        after = -1
        while True:
            async with db.connection() as connection:
                rows = await fetch_or_refuse(
                    connection, "graph_fan_sizes", Reader.CALLER, job_id, no, after, SIZES_PAGE
                )
            for row in rows:
                made._add(row["no"], row["size"], row["ref"])
            if len(rows) < SIZES_PAGE:
                break
            after = rows[-1]["no"]
        # An empty list still needs its closing bracket.
        made.size += not made.numbers
        return made

    def _add(self, no: int, size: int | None, text: str | None) -> None:
        ref = None if text is None else ref_in(msgspec.json.decode(text))
        if ref is not None:
            self.refs[len(self.numbers)] = ref
            size = ref.size
        self.numbers.append(no)
        self.starts.append(self.size)
        self.size += (len(_NOTHING) if size is None else size) + 1

    @property
    def tag(self) -> str:
        """A tag for the content. The output of a finished step never changes, so the step's place identifies it."""
        return hashlib.sha256(f"{self.job_id} {self.no}".encode()).hexdigest()[:32]

    async def part(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` on."""
        if not self.numbers:
            return b"[]"[start : start + length]
        end = min(start + length, self.size)
        found = [b"["] if start == 0 < end else []
        at, last = max(0, bisect_right(self.starts, start) - 1), bisect_right(self.starts, end - 1)
        while at < last:
            if at in self.refs:
                found.append(await self._stored(at, start, end))
                at += 1
                continue
            stop = min(last, at + OUTPUTS_PAGE)
            stop = next((other for other in range(at, stop) if other in self.refs), stop)
            for text in await self._texts(at, stop):
                found.append(self._cut(at, text, start, end))
                at += 1
        return b"".join(found)

    async def _texts(self, first: int, stop: int) -> list[bytes]:
        async with self.db.connection() as connection:
            values = (self.job_id, self.no, self.numbers[first], self.numbers[stop - 1])
            rows = await fetch_or_refuse(connection, "graph_fan_texts", Reader.CALLER, *values)
        return [_NOTHING if row["output"] is None else row["output"].encode() for row in rows]

    async def _stored(self, at: int, start: int, end: int) -> bytes:
        """Return the bytes of a child's artifact, and of the mark after it, that lie in the range."""
        ref, begins = self.refs[at], self.starts[at]
        first, stop = max(start - begins, 0), min(end - begins, ref.size)
        body = await self.artifacts.part(ref, first, stop - first) if first < stop else b""
        return body + (self._mark(at) if end > begins + ref.size else b"")

    def _cut(self, at: int, text: bytes, start: int, end: int) -> bytes:
        begins = self.starts[at]
        return (text + self._mark(at))[max(start - begins, 0) : end - begins]

    def _mark(self, at: int) -> bytes:
        return b"]" if at == len(self.numbers) - 1 else b","
