"""Judges questions by a policy with many rules: `python -m bench.verdicts RULES COUNT`.

Prints one line of JSON for each kind of policy. `topics` has a topic for each rule; `topic` has one topic for all,
so that the index cannot help, and the last rule decides. Rules have labels and a tenant; the rules of `topics` have
a condition in CEL too.
"""

import json
import sys
import time
from collections.abc import Callable

from windlass.core.verdict import Edge
from windlass.policy.judge import judge
from windlass.policy.question import CallerFacts, Question, topic_of
from windlass.policy.reader import read_policy
from windlass.policy.rules import compile_policy

TOPICS = """- id: r{at}
  match: {{topics: ["job.app{at}.*"], tenants: [acme], labels: {{env: prod}}}}
  when: job.inputs.count > 100 && caller.tier != "gold"
  decision: deny
"""
TOPIC = """- id: r{at}
  match: {{topics: ["job.app*"], tenants: [t{at}], labels: {{env: prod}}}}
  decision: deny
"""


def question(at: int, tenant: str) -> Question:
    """A question that the rule of this number decides."""
    return Question(
        Edge.SUBMIT,
        topic_of(f"app{at}", "send"),
        recipe=f"app{at}",
        tenant=tenant,
        caller=CallerFacts("ada", "user", "silver"),
        labels={"env": "prod", "team": "blue"},
        inputs={"count": 101, "text": "x" * 1_000},
    )


def measure(kind: str, rule: str, rules: int, questions: list[Question], count: int) -> None:
    """Print how long one verdict takes."""
    text = "default_decision: allow\nrules:\n" + "".join(rule.format(at=at) for at in range(rules))
    begun_s = time.perf_counter()
    policy = compile_policy(read_policy(text))
    load_s = time.perf_counter() - begun_s
    for asked in questions:
        assert judge(policy, asked).verdict.rule == asked.recipe.replace("app", "r")
    clock: Callable[[], int] = time.perf_counter_ns
    times = []
    cpu_s = time.process_time()
    for at in range(count):
        asked = questions[at % len(questions)]
        start = clock()
        judge(policy, asked)
        times.append(clock() - start)
    cpu_us = (time.process_time() - cpu_s) / count * 1e6
    times.sort()
    found = {"kind": kind, "load_s": load_s, "cpu_us": cpu_us}
    found |= {f"p{share:g}_us": times[min(count - 1, int(count * share / 100))] / 1000 for share in (50, 99, 99.9)}
    print(json.dumps(found), flush=True)


def main(rules: int, count: int) -> None:
    """Measure both kinds."""
    measure("topics", TOPICS, rules, [question(at, "acme") for at in range(0, rules, max(1, rules // 100))], count)
    measure("topic", TOPIC, rules, [question(rules - 1, f"t{rules - 1}")], max(100, count // 50))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
