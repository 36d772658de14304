"""The benchmark itself, very small and without peers: does it start, measure and report? Never: how fast."""

import json
import subprocess
import sys

import pytest

from bench.process import ROOT


def bench(*arguments):
    return subprocess.run(
        [sys.executable, "bench/run.py", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_windlass_is_measured_beside_the_limit(tmp_path):
    out = tmp_path / "figures.json"
    ran = bench("--only", "LACDB", "--peers", "none", "--scale", "0.001", "--repeats", "1", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(out.read_text())
    notes = {(figure["test"], figure["system"]): figure["note"] for figure in told["figures"]}
    assert not any(notes.values()), ran.stderr
    assert "one-step jobs / bare SQL" in {ratio["title"] for ratio in told["ratios"]}
    assert "Ratios" in ran.stdout


@pytest.mark.slow
def test_an_earlier_version_is_measured_in_turn(tmp_path):
    out = tmp_path / "figures.json"
    options = ("--only", "AK", "--peers", "none", "--scale", "0.001", "--repeats", "2", "--before", str(ROOT))
    ran = bench(*options, "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(out.read_text())
    systems = [figure["system"] for figure in told["figures"] if figure["test"] == "A one-step jobs"]
    assert systems == ["before", "windlass"]
    assert {"one-step jobs / before", "behind 100,000 held steps / none"} <= {one["title"] for one in told["ratios"]}
    assert not any(figure["note"] for figure in told["figures"]), ran.stderr


def test_what_is_no_checkout_is_refused(tmp_path):
    ran = bench("--before", str(tmp_path))
    assert ran.returncode == 2
    assert "is not a checkout of Windlass" in ran.stderr


@pytest.mark.slow
def test_the_service_is_measured(tmp_path):
    out = tmp_path / "figures.json"
    ran = bench("--only", "SEG", "--peers", "none", "--scale", "0.001", "--repeats", "1", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(out.read_text())
    assert not any(figure["note"] for figure in told["figures"]), ran.stderr
    [missed] = [figure["runs"] for figure in told["figures"] if figure["test"] == "E events missed"]
    assert missed == [0]
    indexes = {figure["details"][0].get("index") for figure in told["figures"] if figure["test"].startswith("G ")}
    # Of a few jobs that failed, the planner may as well read all.
    assert indexes - {"jobs_failed"} >= {"jobs_caller", "jobs_caller_trouble", "jobs_label_corpus"}
    assert indexes & {"jobs_failed", "jobs_failed_step"}


@pytest.mark.slow
def test_work_at_a_provider_is_measured(tmp_path):
    out = tmp_path / "figures.json"
    ran = bench("--only", "MXWQ", "--peers", "none", "--scale", "0.001", "--repeats", "1", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(out.read_text())
    assert not any(figure["note"] for figure in told["figures"]), ran.stderr
    assert {figure["test"][0] for figure in told["figures"]} == set("MXWQ")
    [requests] = [figure["runs"] for figure in told["figures"] if figure["test"].startswith("Q requests")]
    assert requests == [20]  # each piece of work is asked for once in a round


@pytest.mark.slow
def test_verdicts_are_measured(tmp_path):
    out = tmp_path / "figures.json"
    ran = bench("--only", "V", "--peers", "none", "--scale", "0.001", "--repeats", "1", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(out.read_text())
    assert not any(figure["note"] for figure in told["figures"]), ran.stderr
    assert len(told["figures"]) == 5


def test_an_unknown_test_or_peer_is_refused_before_anything_starts():
    for arguments in (("--only", "Z"), ("--peers", "rabbit")):
        ran = bench(*arguments)
        assert ran.returncode == 2
        assert "known:" in ran.stderr
