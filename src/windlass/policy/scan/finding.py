"""What scanners find: a rule and a place, never the text.

Found     bytes of one text, by offset, inside of a scan only
Finding   what leaves a scan: a rule, a path, an offset, a length and a keyed digest of the text
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from windlass.policy.question import ContentFacts, FindingFact

MARKER = "[REDACTED]"
# The type of a finding that stands for bytes that no scanner has read.
TRUNCATED = "content_truncated"


@dataclass(frozen=True, slots=True)
class Found:
    """Bytes of a text that a rule matches. `start` and `end` are offsets into the UTF-8 of the text."""

    scanner: str
    rule: str
    type: str
    start: int
    end: int
    severity: str = "high"
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, as it is stored and shown."""

    scanner: str
    rule: str
    type: str
    severity: str
    confidence: float
    # The place in JSON, such as `$.mails[0].body`; `$` is the whole content.
    path: str = "$"
    # In bytes of the UTF-8 of the value at the path, or of the content.
    offset: int = 0
    length: int = 0
    # The rule matched a key of an object and not its value.
    in_key: bool = False
    # HMAC-SHA256 of the text, so that equal secrets can be recognised in several places. Empty without a key.
    digest: str = ""

    @property
    def fact(self) -> FindingFact:
        """The finding as rules of policies see it."""
        return FindingFact(self.scanner, self.type, self.severity, self.confidence, self.path)


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """How much of a content is scanned and reported."""

    # Bytes beyond it are not scanned, and that is a finding of its own.
    scan_bytes: int = 2 << 20
    # What archives and base64 inside of the content may unfold to.
    unfolded_bytes: int = 4 << 20
    archive_files: int = 64
    findings_per_rule: int = 10
    findings_per_scanner: int = 32


LIMITS = ScanLimits()


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The answer of a scan."""

    facts: ContentFacts
    findings: tuple[Finding, ...] = ()
    # Part of the content was not scanned: it is too large, or an archive cannot be read.
    is_truncated: bool = False
    # The scanners that did not answer, each with the reason.
    silent: tuple[tuple[str, str], ...] = ()
    # Those of them that will not answer about this content, because it has killed them several times.
    given_up: frozenset[str] = frozenset()
    # The number of matches, also of those beyond the limits of the report.
    matches: int = 0


def digest_of(text: bytes, key: bytes) -> str:
    """Return the keyed digest of a found text. It cannot be guessed without the key."""
    return hmac.new(key, text, hashlib.sha256).hexdigest() if key else ""
