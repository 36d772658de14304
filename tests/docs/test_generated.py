"""The generated parts of the docs are what the code says now."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.docs.blocks import ROOT
from windlass.core.states import JobState, StepState

ROOMS = ("core", "engine", "store")


def test_no_generated_part_is_stale() -> None:
    done = subprocess.run(
        [sys.executable, "docs/make.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make docs`; stale: {done.stdout.split()} {done.stderr}"


def test_every_state_has_a_meaning() -> None:
    text = (ROOT / "docs/concepts/states.md").read_text(encoding="utf-8")
    assert [state for state in (*JobState, *StepState) if f"| {state} |" not in text] == []


def test_every_event_type_is_documented() -> None:
    """Events whose names are literals in the code; the other names are made from states."""
    named = set()
    for path in (ROOT / "src/windlass").rglob("*"):
        if path.suffix in (".py", ".sql") and path.relative_to(ROOT / "src/windlass").parts[0] in ROOMS:
            named.update(re.findall(r"""["']((?:job|step)\.[a-z]+)["']""", path.read_text(encoding="utf-8")))
    assert named, "no event types were found"
    text = (ROOT / "docs/reference/events.md").read_text(encoding="utf-8")
    assert sorted(name for name in named if f"`{name}`" not in text) == []
