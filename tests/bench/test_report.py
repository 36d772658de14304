from bench.report import BARS, document, ratios
from bench.results import Results
from bench.roster import BEFORE, PEERS, WINDLASS


def measured(**rates: float) -> Results:
    results = Results()
    for system, rate in rates.items():
        for share in (0.5, 1.0, 0.8):
            results.add("A one-step jobs", system, "jobs/s", "higher", rate * share, 0.1)
    return results


def test_a_ratio_compares_best_runs_and_medians():
    (ratio,) = ratios(measured(windlass=1000, dbos=50))
    assert (ratio.best, ratio.median) == (20, 20)
    assert ratio.bar == ">= 10"
    assert ratio.is_met


def test_a_bar_that_is_not_reached_is_missed():
    (ratio,) = ratios(measured(windlass=100, dbos=50))
    assert not ratio.is_met


def test_a_figure_where_less_is_better_takes_its_smallest_run_as_the_best():
    results = Results()
    for value in (3.0, 2.0, 5.0):
        results.add("F lost machine's step", "windlass", "s", "lower", value, 0.0)
    (ratio,) = ratios(results)
    assert (ratio.best, ratio.median) == (2.0, 3.0)
    assert ratio.is_met


def test_a_system_that_failed_has_a_reason_and_no_ratio():
    results = measured(windlass=1000)
    results.fail("A one-step jobs", "dbos", "it did not start")
    assert ratios(results) == []
    told = {figure["system"]: figure["note"] for figure in document(results, {})["figures"]}
    assert told == {"windlass": "", "dbos": "it did not start"}


def test_every_bar_names_a_system_that_is_measured():
    known = {peer.name for peer in PEERS} | {WINDLASS.name, BEFORE, "bare SQL", "postgresql", "in process"}
    for bar in BARS:
        for _, system in filter(None, (bar.ours, bar.theirs)):
            assert system in known, bar.title


def test_a_run_too_small_to_take_any_cpu_time_has_a_ratio():
    (ratio,) = ratios(measured(windlass=1000, dbos=0))
    assert ratio.best == ratio.median == float("inf")
    (ratio,) = ratios(measured(windlass=0, dbos=0))
    assert ratio.best == ratio.median == 1.0
