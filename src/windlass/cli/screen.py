"""Writes data to standard output, and notes and errors to standard error.

A terminal shows tables and colour. Other outputs have tabs between columns and no colour. User text is never
interpreted as markup. Rich is imported only when a command draws.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from windlass.cli import marks
from windlass.cli.graph import Box, cells, layout

# This exceeds every useful error text; the failure of a job has 2,000 characters at most.
ERROR_MAX = 4_000


class Screen:
    """The two output streams, with methods that write tables, pictures, notes and errors."""

    @cached_property
    def out(self) -> Console:
        """Standard output."""
        return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    @cached_property
    def err(self) -> Console:
        """Standard error."""
        return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def line(self, text: str | Text = "") -> None:
        """Write one line of data."""
        self.out.print(text)

    def note(self, text: str | Text) -> None:
        """Write one line about the data, for people, to standard error."""
        self.err.print(text)

    def document(self, value: Any) -> None:
        """Write one JSON document."""
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
        sys.stdout.flush()

    def record(self, value: Any) -> None:
        """Write one JSON document of a stream, on one line."""
        sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
        sys.stdout.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, states: Sequence[str] = ()) -> None:
        """Write rows under headings. The columns named in `states` hold states and show their glyphs and colours."""
        if not self.out.is_terminal:
            for row in rows:
                sys.stdout.write("\t".join(one_line(cell) for cell in row) + "\n")
            sys.stdout.flush()
            return
        body = [[one_line(cell) for cell in row] for row in rows]
        marked = [column in states for column in columns]
        widths = [
            max([len(name), *(len(row[place]) + 2 * marked[place] for row in body)])
            for place, name in enumerate(columns)
        ]
        head = "  ".join(name.upper().ljust(width) for name, width in zip(columns, widths, strict=True))
        self.out.print(Text(head.rstrip(), style="bold"))
        for row in body:
            text = Text()
            for place, cell in enumerate(row):
                if marked[place]:
                    state = cell.partition(" ")[0]
                    text.append(f"{marks.glyph(state)} {cell}".ljust(widths[place]), style=marks.colour(state))
                else:
                    text.append(cell.ljust(widths[place]))
                text.append("  ")
            text.rstrip()
            self.out.print(text)

    def error(self, message: str, remedy: str | None, code: int, frames: str = "") -> None:
        """Write the error and the remedy, with the frames of a traceback, if any, between them."""
        first = Text("error: ", style="bold red").append(many_lines(message), style="not bold default")
        self.err.print(first)
        if frames:
            self.err.print(Text(many_lines(frames.rstrip()), style="bright_black"))
        if remedy:
            self.err.print(Text(f"  {many_lines(remedy)}", style="yellow"))
        self.err.print(Text(f"  exit {code}", style="bright_black"))


def picture(boxes: Sequence[Box]) -> Text:
    """Return the graph in colour."""
    rows = [(line, cells(line)) for line in layout(boxes)]
    widths = [max((len(row[column]) for _, row in rows), default=0) for column in range(4)]
    text = Text(no_wrap=True, overflow="ellipsis")
    for line, row in rows:
        style = marks.colour(line.box.state or "")
        text.append(line.lead, style="bright_black")
        text.append(row[0][len(line.lead) :].ljust(widths[0] - len(line.lead)), style=style)
        for place in (1, 2, 3):
            if widths[place]:
                text.append("  " + row[place].ljust(widths[place]), style=style if place < 3 else "")
        text.append("  " + one_line(row[4]), style="bright_black")
        text.rstrip()
        text.append("\n")
    text.rstrip()
    return text


def one_line(text: str) -> str:
    """Return user text on one line, with a space for each character that could move the cursor or break a column."""
    return "".join(c if c.isprintable() else " " for c in text)


def many_lines(text: str) -> str:
    """Return an error's text with its line breaks. It may quote user text, so it is cut and control characters go."""
    cut = text if len(text) <= ERROR_MAX else f"{text[:ERROR_MAX]}… ({len(text):,} characters)"
    return "\n".join(one_line(line) for line in cut.split("\n"))


def headline(recipe: str, job_id: object, state: str, seconds: float | None) -> Text:
    """Return the line above a job's picture."""
    text = Text(f"{one_line(recipe)} ", style="bold")
    text.append(f"{job_id} ", style="not bold")
    text.append(f"{marks.glyph(state)} {state}", style=f"not bold {marks.colour(state)}")
    text.append(f"  {marks.duration(seconds)}", style="not bold bright_black")
    return text
