"""The tests that every scanner must pass, for pytest: derive a class that makes the scanner and a text that it finds.

```python
from windlass.testing.scanner_conformance import ScannerConformance

class TestTickets(ScannerConformance):
    def scanner(self):                   # a new scanner
        return TicketScanner()

    def example(self):                   # a text in which it finds something
        return "the secret project TICKET-4711"
```

Each test states one promise of `windlass.policy.scan.port.Scanner`.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from windlass.policy.keys import SEVERITIES
from windlass.policy.scan.finding import MARKER, Found
from windlass.policy.scan.port import Scanner, ScanText

# Texts that have broken scanners: nothing, zeros, halves of characters, long lines, nested signs, base64.
HARD_TEXTS = (
    b"",
    b"\0",
    b"\0" * 10_000,
    b"\xff\xfe\xfd",
    "é".encode() * 3_000 + b"\xc3",
    "\u200b\ufeff\U000e0041".encode() * 500,
    b"a" * 50_000,
    b'"\\' * 10_000,
    b"[{" * 5_000,
    b"key=" * 5_000,
    b"-----BEGIN " * 2_000,
    b"QUFB" * 10_000,
    b"(((((((((((((((" * 1_000,
    b"%s%n{}{0}$HOME`id`",
)
_ROUNDS_MAX = 4


class ScannerConformance:
    """Derive a class from it that implements `scanner` and `example`; the module shows how."""

    def scanner(self) -> Scanner:
        """Make a scanner."""
        raise NotImplementedError

    def example(self) -> str:
        """Return a text in which the scanner finds something."""
        raise NotImplementedError

    def test_it_finds_something_in_its_example(self) -> None:
        """The other promises would mean nothing for a scanner that finds nothing."""
        assert self.scanner().scan(_text(self.example().encode()))

    def test_any_bytes_get_an_answer(self) -> None:
        """Bytes that are no text, long lines and no bytes at all are scanned like everything else."""
        scanner = self.scanner()
        noise = random.Random(4711)
        for data in (*HARD_TEXTS, *(noise.randbytes(size) for size in (1, 100, 10_000))):
            for media_type in ("", "text/plain", "application/octet-stream"):
                _check(scanner, data, scanner.scan(ScanText(data, media_type)))

    def test_findings_lie_inside_of_the_text_and_are_named(self) -> None:
        """A finding has the scanner's name, a rule, a type, a severity and a confidence."""
        scanner = self.scanner()
        data = self.example().encode()
        _check(scanner, data, scanner.scan(_text(data)))

    def test_one_text_always_gets_one_answer(self) -> None:
        """The answer does not depend on what was scanned before."""
        scanner, data = self.scanner(), self.example().encode()
        first = _plain(scanner.scan(_text(data)))
        for other in HARD_TEXTS[:6]:
            scanner.scan(_text(other))
        assert _plain(scanner.scan(_text(data))) == first
        assert _plain(self.scanner().scan(_text(data))) == first

    def test_it_answers_on_any_thread(self) -> None:
        """Threads that scan at a time get the answers that one would get."""
        scanner, data = self.scanner(), self.example().encode()
        first = _plain(scanner.scan(_text(data)))
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda _: _plain(scanner.scan(_text(data))), range(16)))
        assert all(answer == first for answer in answers)

    def test_harmless_text_around_it_hides_nothing(self) -> None:
        """A finding moves with the text before it, and stays."""
        scanner, data = self.scanner(), self.example().encode()
        rules = {one.rule for one in scanner.scan(_text(data))}
        for before, after in (
            (b"Hello, world.\n", b""),
            (b"", b"\nThat is all."),
            (b"Hello.\n" * 1_000, b"\nBye." * 1_000),
        ):
            found = scanner.scan(_text(before + data + after))
            assert rules <= {one.rule for one in found if one.start < len(before) + len(data) and one.end > len(before)}

    def test_nothing_is_found_after_a_redaction(self) -> None:
        """If its findings are replaced by the marker, again if necessary, the scanner finds nothing."""
        scanner, data = self.scanner(), self.example().encode()
        found = scanner.scan(_text(data))
        for _ in range(_ROUNDS_MAX):
            for one in sorted(found, key=lambda one: one.start, reverse=True):
                data = data[: one.start] + MARKER.encode() + data[one.end :]
            found = scanner.scan(_text(data))
        assert not found, f"still found after {_ROUNDS_MAX} redactions: {sorted({one.rule for one in found})}"


def _text(data: bytes) -> ScanText:
    return ScanText(data, "text/plain")


def _plain(found: object) -> list[Found]:
    assert isinstance(found, list | tuple)
    return sorted(found, key=lambda one: (one.start, one.end, one.rule))


def _check(scanner: Scanner, data: bytes, found: object) -> None:
    for one in _plain(found):
        assert one.scanner == scanner.name
        assert one.rule and one.type
        assert one.severity in SEVERITIES
        assert 0 <= one.confidence <= 1
        assert 0 <= one.start < one.end <= len(data)
