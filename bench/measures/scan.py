"""Test Y: the speed of the built-in scanners on code, logs, JSON and floods, with hyperscan and without."""

import json
import subprocess
import sys

from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run
from bench.process import ROOT

SECONDS = 2.0
ENGINES = ("hyperscan", "re2")
KINDS = {
    "code": "code",
    "logs": "logs",
    "json": "JSON",
    "small": "JSON of 1 KB",
    "worst": "the slowest flood",
}


def scanned(engine: str, kind: str) -> str:
    """Return the name of the test of an engine and a kind of content."""
    return f"Y scan, {KINDS[kind]}, {engine}"


async def scan(run: Run) -> None:
    """Measure megabytes a second of CPU time, by all three built-in scanners together."""
    seconds = SECONDS * min(1.0, run.count(100) / 100)
    for _ in range(run.repeats):
        wait_until_quiet(run.patience_s)
        with Watch({}) as watch:
            command = [sys.executable, "-m", "bench.scans", str(seconds)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
        # The measuring process is not a child of a role, so its own core counts as foreign load.
        others = max(0.0, watch.load.others - 1.0)
        for told in (json.loads(line) for line in answer.splitlines()):
            name = scanned(told["engine"], told["kind"])
            run.results.add(name, "windlass", "MB/s of CPU", "higher", told["mb_s"], others, told)
            run.say(f"{name:44} {told['mb_s']:8.1f} MB/s {told.get('flood', '')}  others {others:.2f}")
