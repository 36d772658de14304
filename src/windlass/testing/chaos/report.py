"""The outcome of a chaos run as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from windlass.testing.chaos.cluster import Cluster
from windlass.testing.chaos.evidence import Evidence
from windlass.testing.chaos.faults import Fault
from windlass.testing.chaos.ledger import Ledger
from windlass.testing.chaos.reckoning import account
from windlass.testing.chaos.recovery import recovery_times
from windlass.testing.chaos.verdict import Violation, undone_claims

VIOLATIONS_SHOWN = 40


def summary(cluster: Cluster, evidence: Evidence, ledger: Ledger) -> str:
    """Return a summary of faults, jobs, attempts and times."""
    server = cluster.server
    processes = recovery_times(evidence, [kill for kill in cluster.kills if not kill.is_machine])
    machines = recovery_times(evidence, [kill for kill in cluster.kills if kill.is_machine])
    starts = [line for line in evidence.journal if line.word == "start"]
    steps = {(line.job_id, line.step, line.index) for line in starts}
    exits = Counter(f"exit {one.code}" for member in cluster.members for one in member.exits)
    lines = [
        f"faults: {sum(cluster.played.values())}",
        *(f"  {cluster.played[fault]:>5}  {fault}" for fault in Fault),
        f"jobs: {len(evidence.jobs)}, of them {len(ledger.accepted)} submitted and accepted",
        *(f"  {count:>5}  {state}" for state, count in _states(evidence)),
        f"callers: {', '.join(f'{count} {what}' for what, count in sorted(ledger.counts.items()))}",
        f"attempts: {len(starts)} began for {len(steps)} steps",
        *account(evidence.outside),
        f"claims undone by a crash of PostgreSQL: {undone_claims(evidence)} begun",
        f"steps of killed worker processes ran again after: {_times(processes)}",
        f"steps of workers killed with their heartbeat ran again after: {_times(machines)}",
        f"PostgreSQL answered again after: {_times(server.outages)}",
        f"processes that ended by themselves: {', '.join(f'{n} with {c}' for c, n in sorted(exits.items())) or 'none'}",
    ]
    return "\n".join(lines)


def verdict_text(violations: Sequence[Violation]) -> str:
    """List the violations by rule, and the first of them in full."""
    by_rule = Counter(violation.rule for violation in violations)
    lines = [f"{len(violations)} VIOLATIONS", *(f"  {count:>5}  {rule}" for rule, count in by_rule.most_common())]
    lines += [f"- {violation}" for violation in violations[:VIOLATIONS_SHOWN]]
    if len(violations) > VIOLATIONS_SHOWN:
        lines.append(f"- and {len(violations) - VIOLATIONS_SHOWN} more")
    return "\n".join(lines)


def _states(evidence: Evidence) -> list[tuple[str, int]]:
    return Counter(str(job.view.state) for job in evidence.jobs.values()).most_common()


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "never seen"
    return f"median {median(seconds):.1f} s, max {max(seconds):.1f} s ({len(seconds)} seen)"
