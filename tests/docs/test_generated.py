"""The generated parts of the docs are what the code says now."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.blocks import ROOT
from windlass.core.states import JobState, StepState


def test_no_generated_part_is_stale() -> None:
    done = subprocess.run(
        [sys.executable, "docs/make.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make docs`; stale: {done.stdout.split()} {done.stderr}"


def test_every_state_has_a_meaning() -> None:
    text = (ROOT / "docs/concepts/states.md").read_text(encoding="utf-8")
    assert [state for state in (*JobState, *StepState) if f"| {state} |" not in text] == []
