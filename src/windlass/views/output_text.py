"""A job's output as JSON text that is read in parts, however large it is.

A recipe's output is a template over the outputs of its steps. Most templates pass outputs on whole: `return render(x)`,
or an object with one output a key. Such an output is never decoded. Its text is a list of segments: literal bytes, a
slice of a row in PostgreSQL, or a slice of an artifact. Only the segments within the requested range are read.

A template that looks into an output (`${steps.a.outputs.title}`) or calculates needs values. That part of the template
is resolved as usual, and becomes literal text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.errors import NotFound
from windlass.core.expression import path_text
from windlass.core.plan import Plan
from windlass.core.template import Resolver, Template, compile_template, plan_templates
from windlass.core.visibility import Reader
from windlass.store.artifact import REFERENCE_KEY, Artifacts, Ref, ref_in
from windlass.store.database import Database
from windlass.store.outputs import Row, fetch_or_refuse
from windlass.store.values import outputs_of, scope
from windlass.views.read import JobView

# Rows with texts up to this size become literal text; a reference to an artifact has about 120 bytes.
SHORT_MAX_BYTES = 256
# Part of every tag. Change it when the same job would be written as other text.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class RowText:
    """The output of the step with this number, stored in its row."""

    no: int
    size: int


Segment = bytes | RowText | Ref


@dataclass(frozen=True, slots=True)
class OutputText:
    """The text of one job's output. It never changes, so its tag does not depend on the content."""

    db: Database
    artifacts: Artifacts
    job_id: UUID
    segments: Sequence[Segment]
    # The offset of each segment.
    starts: Sequence[int]
    size: int

    @property
    def tag(self) -> str:
        """A tag that differs when the text does."""
        return f"{self.job_id.hex}-{self.size:x}-{_FORMAT}"

    async def part(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` on."""
        wanted = list(self._within(start, min(start + length, self.size)))
        rows = [(segment.no, at, count) for segment, at, count in wanted if isinstance(segment, RowText)]
        slices = iter(await self._slices(rows) if rows else ())
        pieces = []
        for segment, at, count in wanted:
            match segment:
                case bytes():
                    pieces.append(segment[at : at + count])
                case Ref():
                    pieces.append(await self.artifacts.part(segment, at, count))
                case RowText():
                    pieces.append(next(slices))
        return b"".join(pieces)

    def _within(self, start: int, end: int) -> Iterator[tuple[Segment, int, int]]:
        """Yield the segments of this range, each with its first byte and the number of bytes."""
        for index in range(max(0, bisect_right(self.starts, start) - 1), len(self.segments)):
            begins, segment = self.starts[index], self.segments[index]
            if begins >= end:
                return
            at = max(0, start - begins)
            count = min(_size(segment), end - begins) - at
            if count > 0:
                yield segment, at, count

    async def _slices(self, rows: Sequence[tuple[int, int, int]]) -> list[bytes]:
        columns = [list(column) for column in zip(*rows, strict=True)]
        async with self.db.connection() as connection:
            found = await fetch_or_refuse(connection, "output_slices", Reader.CALLER, self.job_id, *columns)
        if len(found) != len(rows):
            raise NotFound(f"job {self.job_id} is being removed")
        return [row["body"] for row in found]


async def output_text(db: Database, artifacts: Artifacts, resolver: Resolver, view: JobView, plan: Plan) -> OutputText:
    """Build the output text of a completed job that was already read."""
    template = plan_templates(plan).output
    whole = {f"${{{path_text(('steps', name, 'outputs'))}}}": plan.number[name] for name in template.steps}
    numbers = {whole[text] for text in _texts(template.tree) if text in whole}
    held = await _held(db, view.id, sorted(numbers)) if numbers else {}
    writer = _Writer()
    for piece in _pieces(template.tree):
        if isinstance(piece, bytes):
            writer.add(piece)
        elif (found := held.get(whole.get(piece, -1))) is not None:
            for segment in found:
                writer.add(segment)
        else:
            part = compile_template(piece, "output")
            writer.add(msgspec.json.encode(await _resolved(db, artifacts, resolver, view, plan, part)))
    return writer.done(db, artifacts, view.id)


async def _resolved(
    db: Database, artifacts: Artifacts, resolver: Resolver, view: JobView, plan: Plan, template: Template
) -> Any:
    outputs = await outputs_of(db, artifacts, plan, view.id, template.steps, Reader.CALLER)
    return await resolver.resolve_async(template, scope(view.input, outputs))


async def _held(db: Database, job_id: UUID, numbers: Sequence[int]) -> dict[int, list[Segment]]:
    """Return the segments of each step that has an output. A fan-out's output is the list of its children's."""
    async with db.connection() as connection:
        rows = await fetch_or_refuse(connection, "output_sizes", Reader.CALLER, job_id, numbers, SHORT_MAX_BYTES)
    found: dict[int, list[Segment]] = {}
    fans = {row["step"] for row in rows if row["is_fan"]}
    for row in rows:
        segments = found.setdefault(row["step"], [b"["] if row["is_fan"] else [])
        if row["no"] is None or (row["size"] is None and not row["is_fan"]):
            continue
        if len(segments) > 1:
            segments.append(b",")
        segments.append(_segment(row))
    for step in fans:
        found[step].append(b"]")
    return {step: segments for step, segments in found.items() if segments}


def _segment(row: Row) -> Segment:
    short: bytes | None = row["short"]
    if row["size"] is None:
        return b"null"
    if short is None:
        return RowText(row["no"], row["size"])
    if REFERENCE_KEY.encode() in short and (ref := ref_in(msgspec.json.decode(short))) is not None:
        return ref
    return short


def _pieces(tree: Any) -> Iterator[bytes | str]:
    """Yield JSON text as bytes and, in order, the template strings with holes."""
    if isinstance(tree, str) and "${" in tree:
        yield tree
    elif isinstance(tree, Mapping):
        before = b"{"
        for key, value in tree.items():
            yield before + msgspec.json.encode(key) + b":"
            yield from _pieces(value)
            before = b","
        yield b"}" if tree else b"{}"
    elif isinstance(tree, list):
        before = b"["
        for value in tree:
            yield before
            yield from _pieces(value)
            before = b","
        yield b"]" if tree else b"[]"
    else:
        yield msgspec.json.encode(tree)


def _texts(tree: Any) -> Iterator[str]:
    return (piece for piece in _pieces(tree) if isinstance(piece, str))


def _size(segment: Segment) -> int:
    return len(segment) if isinstance(segment, bytes) else segment.size


class _Writer:
    """Collects segments and joins adjacent literal ones."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._literal: list[bytes] = []

    def add(self, segment: Segment) -> None:
        if isinstance(segment, bytes):
            self._literal.append(segment)
        else:
            self._flush()
            self._segments.append(segment)

    def done(self, db: Database, artifacts: Artifacts, job_id: UUID) -> OutputText:
        self._flush()
        starts, size = [], 0
        for segment in self._segments:
            starts.append(size)
            size += _size(segment)
        return OutputText(db, artifacts, job_id, tuple(self._segments), starts, size)

    def _flush(self) -> None:
        if self._literal:
            self._segments.append(b"".join(self._literal))
            self._literal = []
