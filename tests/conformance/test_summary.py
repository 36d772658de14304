"""The report of `make conformance`: a requirement counts if all of its tests passed, and none ran in vain."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.plugin import summary
from tests.conformance.requirements import ROOT, Family, families

FOUND = (Family("AB", "Alpha", {"One": {"AB-01": "First.", "AB-02": "Second."}, "Two": {"AB-03": "Third."}}),)
TESTS = {"AB-01": ["t.py::test_a"], "AB-02": ["t.py::test_a", "t.py::test_b"]}
PYPROJECT = """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["--strict-markers", "--import-mode=importlib"]
markers = ["covers(id, ...): shows requirements"]
"""
REQUIREMENTS = """
[families]
AB = "Alpha"

[AB."One"]
AB-01 = "Passes."
AB-02 = "Fails for one parameter."
AB-03 = "Fails in its teardown."
AB-04 = "Is skipped."
AB-05 = "Kills its process."
AB-06 = "Has no test."
"""
MARKED = """
import os, pytest

@pytest.fixture
def breaks():
    yield
    raise RuntimeError

@pytest.mark.covers("AB-01")
def test_passes(): ...

@pytest.mark.covers("AB-02")
@pytest.mark.parametrize("number", [1, 2])
def test_fails(number): assert number == 1

@pytest.mark.covers("AB-03")
def test_ends_badly(breaks): ...

@pytest.mark.covers("AB-04")
@pytest.mark.skip
def test_skipped(): ...

def test_unmarked(): raise AssertionError("an unmarked test ran")

@pytest.mark.covers("AB-05")
def test_dies(): os._exit(1)
"""


def test_all_tests_of_a_requirement_must_pass() -> None:
    outcomes = {"t.py::test_a": {"passed"}, "t.py::test_b": {"passed", "failed"}}
    assert list(summary(FOUND, TESTS, outcomes)) == [
        "Alpha, without a passing test:",
        "  AB-02  Second.",
        "    did not pass: t.py::test_b",
        "  AB-03  Third.",
        "Requirements with a passing test:",
        "  AB     1 of   3  Alpha",
        "  all    1 of   3",
    ]


@pytest.mark.parametrize("outcome", [set(), {"skipped"}, {"failed"}, {"passed", "skipped"}])
def test_what_did_not_run_to_its_end_shows_nothing(outcome: set[str]) -> None:
    assert "  all    0 of   3" in summary(FOUND, TESTS, {"t.py::test_a": outcome})


def test_only_marked_tests_run_and_their_outcomes_cross_processes(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": PYPROJECT,
        "docs/reference/requirements.toml": REQUIREMENTS,
        "tests/test_marked.py": MARKED,
        "tests/test_other.py": "raise RuntimeError('a file without a mark was imported')",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "tests.conformance.plugin"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = ran.stdout.partition("without a passing test:")[2]
    assert [line.split()[0] for line in report.splitlines() if line.startswith("  AB-")] == [
        f"AB-{number:02}" for number in range(2, 7)
    ]
    assert "did not pass: tests/test_marked.py::test_ends_badly" in report
    assert "  all    1 of   6" in report
    assert "was imported" not in ran.stdout and "an unmarked test ran" not in ran.stdout


def test_a_family_without_a_name_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "docs/reference"
    folder.mkdir(parents=True)
    (folder / "requirements.toml").write_text('[families]\nAB = "Alpha"\n[CD."One"]\nCD-01 = "First."\n')
    with pytest.raises(ValueError, match=r"AB.*CD"):
        families(tmp_path)
