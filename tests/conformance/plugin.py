"""A pytest plugin that runs the tests with a `covers` mark and reports which requirements they show.

    python -m pytest -p tests.conformance.plugin

A requirement counts if it has a test and all of its tests passed. A skipped test shows nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.conformance.requirements import Family, families, is_marked, tests_by_id

Outcomes = Mapping[str, set[str]]
_outcomes: dict[str, set[str]] = defaultdict(set)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Skip the import of files that hold no mark."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if is_test and not is_marked(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the marked tests only."""
    other = [item for item in items if item.get_closest_marker("covers") is None]
    config.hook.pytest_deselected(items=other)
    items[:] = [item for item in items if item.get_closest_marker("covers") is not None]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a phase of a test; all parameters of a test are one test."""
    if report.when == "call" or not report.passed:
        _outcomes[report.nodeid.partition("[")[0]].add(report.outcome)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the requirements without a passing test, then the counts."""
    terminalreporter.section("conformance")
    for line in summary(families(config.rootpath), tests_by_id(config.rootpath), _outcomes):
        terminalreporter.line(line)


def failing(tests: Sequence[str], outcomes: Outcomes) -> list[str]:
    """Return the tests that ran or should have run and did not pass."""
    return [test for test in tests if outcomes.get(test) != {"passed"}]


def summary(found: Sequence[Family], tests: Mapping[str, Sequence[str]], outcomes: Outcomes) -> Iterator[str]:
    """Describe the requirements without a passing test by family, then the counts of each family and of all."""
    shown = {key for key, names in tests.items() if names and not failing(names, outcomes)}
    for family in found:
        rest = {key: text for key, text in family.sentences.items() if key not in shown}
        if rest:
            yield f"{family.name}, without a passing test:"
        for key, text in rest.items():
            yield f"  {key}  {text}"
            for test in failing(tests.get(key, ()), outcomes):
                yield f"    did not {'pass' if test in outcomes else 'run'}: {test}"
    yield "Requirements with a passing test:"
    for family in found:
        count = sum(key in shown for key in family.sentences)
        yield f"  {family.prefix:4}{count:4} of {len(family.sentences):3}  {family.name}"
    total = [key for family in found for key in family.sentences]
    yield f"  {'all':4}{sum(key in shown for key in total):4} of {len(total):3}"
