"""Scanners as plug-ins write them: a good one, and those that hang, die, eat memory or answer nonsense."""

from __future__ import annotations

import os
import re

from windlass.policy.scan.finding import Found
from windlass.policy.scan.port import ScanText


class Tickets:
    """Finds the names of tickets."""

    name = "tickets"

    def scan(self, text: ScanText) -> list[Found]:
        return [
            Found(self.name, "ticket", "ticket", match.start(), match.end(), "medium", 0.9)
            for match in re.finditer(rb"TICKET-\d+", text.data)
        ]


class Hostile(Tickets):
    """Does what the text says."""

    name = "hostile"

    def scan(self, text: ScanText) -> list[Found]:
        match text.data:
            case b"hang":
                while True:
                    pass
            case b"die":
                os.abort()
            case b"exit":
                raise SystemExit(0)
            case b"eat":
                return [Found(self.name, "x" * (4 << 30), "x", 0, 1)]
            case b"raise":
                raise ValueError(f"the secret is {text.text}")
            case b"outside":
                return [Found(self.name, "rule", "type", 0, 100)]
            case b"print":
                print("noise on standard output", flush=True)
                os.write(1, b"\xff\xff\xff\xff")
                return []
            case b"flood":
                return [Found(self.name, "rule", "type", 0, 1)] * 20_000
            case b"environment":
                return [Found(self.name, "rule", name, 0, 1) for name in os.environ if name.startswith("WINDLASS_")]
        return super().scan(text)


class Misnamed(Tickets):
    """Has another name than its entry point."""

    name = "other"


def broken() -> None:
    """A factory is not a scanner."""
