"""The port of scanners: what Windlass's own scanners and plug-ins have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from windlass.policy.scan.finding import Found


@dataclass(frozen=True, slots=True)
class ScanText:
    """The text that a scanner reads. JSON is given without its escapes: a line for each key and for each value."""

    data: bytes
    media_type: str = ""

    @property
    def text(self) -> str:
        """The text as characters. Offsets of findings count bytes of `data`, and not these."""
        return self.data.decode("utf-8", "replace")


class ScannerSilent(Exception):
    """A scanner did not answer. The text is the reason, and has nothing of the content."""

    def __init__(self, reason: str, *, has_given_up: bool = False) -> None:
        super().__init__(reason)
        # Asking again about this content is of no use.
        self.has_given_up = has_given_up


@runtime_checkable
class Closeable(Protocol):
    """Something that holds a process or a file."""

    def close(self) -> None:
        """Let go of it."""
        ...


class Scanner(Protocol):
    """Looks for one kind of thing in texts.

    Its promises, each of which `windlass.testing.scanner_conformance` tests:

    - *Total*: any bytes get an answer, also bytes that are no text, and no bytes at all.
    - *Placed*: a finding lies inside of the text: `0 <= start < end <= len(data)`.
    - *Named*: a finding has the scanner's name, a rule, a type, a known severity and a confidence from 0 to 1.
    - *Stable*: the same text gets the same findings, whatever was scanned before, and on any thread.
    - *Local*: a finding does not go away because harmless text stands before or after it.
    - *Clean after redaction*: if its findings are replaced by `[REDACTED]`, the scanner finds nothing.
    """

    @property
    def name(self) -> str:
        """The name by which rules of policies know the scanner."""
        ...

    def scan(self, text: ScanText) -> Sequence[Found]:
        """Return what is found in a text."""
        ...
