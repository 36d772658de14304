"""Scans a stream of text: what it releases has been scanned together with what follows.

The last `HOLD_BYTES` are held back, so that a secret that is cut into chunks is found if it is no longer than that. A
longer match that has begun is held until it ends, up to `HELD_BYTES_MAX`; then it is replaced as it stands.
"""

from __future__ import annotations

from windlass.policy.content import ScanWants
from windlass.policy.scan.finding import MARKER
from windlass.policy.scan.scanners import Scanners

HOLD_BYTES = 4 << 10
HELD_BYTES_MAX = 64 << 10
# Released text that the rules still see before the held text: names and words near a match.
_CONTEXT_BYTES = 256


class StreamScanner:
    """Takes the chunks of one stream, and returns the text that may be shown."""

    def __init__(self, scanners: Scanners, wants: ScanWants, *, hold_bytes: int = HOLD_BYTES) -> None:
        self._scanners = scanners
        self._wants = wants
        self._hold = hold_bytes
        # The text that was released last, and the text that is held.
        self._before = b""
        self._held = b""
        # The rules of what was replaced.
        self.rules: set[str] = set()

    @property
    def has_found(self) -> bool:
        """Whether something was replaced so far."""
        return bool(self.rules)

    def feed(self, chunk: str) -> str:
        """Take a chunk, and return what may be shown now."""
        self._held += chunk.encode("utf-8", "replace")
        if len(self._held) <= self._hold:
            return ""
        return self._released(len(self._held) - self._hold)

    def close(self) -> str:
        """Return the rest of the text."""
        return self._released(len(self._held))

    def _released(self, size: int) -> str:
        """Release the first bytes, or fewer: neither a match nor a character is cut."""
        spans, rules = self._spans()
        is_last = size == len(self._held)
        cut = size
        for start, end in spans:
            if start < cut < end or (start < cut and end == len(self._held) and not is_last):
                cut = len(self._held) if len(self._held) - start > HELD_BYTES_MAX else start
        while 0 < cut < len(self._held) and self._held[cut] & 0xC0 == 0x80:
            cut -= 1
        parts, at = [], 0
        for (start, end), rule in zip(spans, rules, strict=True):
            if start >= cut:
                break
            self.rules.add(rule)
            if end > at:
                parts += [self._held[at : max(at, start)], MARKER.encode()]
                at = end
        parts.append(self._held[min(at, cut) : cut])
        self._before = (self._before + self._held[:cut])[-_CONTEXT_BYTES:]
        self._held = self._held[cut:]
        return b"".join(parts).decode("utf-8", "replace")

    def _spans(self) -> tuple[list[tuple[int, int]], list[str]]:
        """Return what is found in the held text, by offset, with the rules."""
        offset = len(self._before)
        found = []
        for rule, start, end in self._scanners.spans(self._before + self._held, self._wants):
            if end > offset:
                found.append((max(0, start - offset), end - offset, rule))
        found.sort()
        return [(start, end) for start, end, _ in found], [rule for _, _, rule in found]
