"""The client that blocks is made from the other one."""

from __future__ import annotations

import subprocess
import sys

from tests.tidy.sources import ROOT


def test_the_client_that_blocks_is_what_the_script_makes() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "unasync.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, f"run scripts/unasync.py: {done.stdout}{done.stderr}"
