"""Test V: the time of one verdict of a policy with 1,000 rules, in process."""

import json
import subprocess
import sys

from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run
from bench.process import ROOT

TYPICAL = "V verdict, 1,000 rules"
TYPICAL_P99 = "V verdict, 1,000 rules, p99"
ONE_TOPIC = "V verdict, all rules of a topic"
ONE_TOPIC_P99 = "V verdict, all rules of a topic, p99"
LOAD = "V a policy of 1,000 rules is read"
RULES = 1_000
COUNT = 100_000
NAMES = {"topics": (TYPICAL, TYPICAL_P99), "topic": (ONE_TOPIC, ONE_TOPIC_P99)}


async def verdict(run: Run) -> None:
    """Measure the microseconds of a verdict: its CPU time on average, and the p99 of its wall time."""
    count = run.count(COUNT, at_least=1_000)
    for _ in range(run.repeats):
        wait_until_quiet(run.patience_s)
        with Watch({}) as watch:
            command = [sys.executable, "-m", "bench.verdicts", str(RULES), str(count)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
        # The measuring process is not a child of a role, so its own core counts as foreign load.
        others = max(0.0, watch.load.others - 1.0)
        for told in (json.loads(line) for line in answer.splitlines()):
            average, p99 = NAMES[told["kind"]]
            run.results.add(average, "windlass", "us of CPU", "lower", told["cpu_us"], others, told)
            run.results.add(p99, "windlass", "us p99", "lower", told["p99_us"], others, told)
            run.say(f"{p99:36} {told['p99_us']:8.1f} us  CPU {told['cpu_us']:.1f} us  others {others:.2f}")
            if told["kind"] == "topics":
                run.results.add(LOAD, "windlass", "s", "lower", told["load_s"], others)
