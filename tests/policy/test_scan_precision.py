"""The figures of the shipped scanners on corpora that are made here: counts, no timings.

`python -m pytest tests/policy/test_scan_precision.py -s -n 0` prints them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.policy.scan_corpus import INJECTIONS, ordinary_logs, ordinary_texts, people, secrets
from windlass.policy.content import ScanWants
from windlass.policy.scan.finding import Finding
from windlass.policy.scan.scanners import Scanners


@pytest.fixture(scope="module", params=[True, False], ids=["hyperscan", "re2"])
def scanners(request: pytest.FixtureRequest) -> Scanners:
    return Scanners(with_hyperscan=request.param)


def found(scanners: Scanners, text: str, name: str) -> tuple[Finding, ...]:
    return scanners.scan(text.encode(), ScanWants(frozenset({name}))).findings


def told(what: str, hits: int, count: int, missed: Iterable[str]) -> None:
    print(f"\n{what}: {hits:,} of {count:,} ({hits / count:.2%}); {Counter(missed).most_common(8)}")


def test_at_least_95_of_100_secrets_are_found(scanners: Scanners) -> None:
    cases = list(secrets())
    missed = [kind for kind, _, text in cases if not found(scanners, text, "secret")]
    told("secrets found", len(cases) - len(missed), len(cases), missed)
    assert len(missed) <= 0.05 * len(cases), Counter(missed)


def test_at_most_2_of_100_ordinary_texts_raise_a_false_alarm(scanners: Scanners) -> None:
    texts = [*ordinary_texts(), *ordinary_logs()]
    alarms = [
        (one.rule, text[one.offset : one.offset + one.length])
        for text in texts
        for one in found(scanners, text, "secret")[:1]
    ]
    told("false alarms about secrets", len(alarms), len(texts), (f"{rule} {text[:40]}" for rule, text in alarms))
    assert len(alarms) <= 0.02 * len(texts), alarms[:40]


def test_at_least_95_of_100_data_about_people_are_found(scanners: Scanners) -> None:
    cases = list(people())
    missed = [rule for rule, _, text in cases if rule not in {one.rule for one in found(scanners, text, "pii")}]
    told("data about people found", len(cases) - len(missed), len(cases), missed)
    assert len(missed) <= 0.05 * len(cases), Counter(missed)


def test_numbers_with_wrong_check_digits_are_not_data_about_people(scanners: Scanners) -> None:
    wrong = []
    for rule, datum, text in people():
        if rule in ("card-number", "iban"):
            digit = datum[-1]
            other = str((int(digit) + 1) % 10) if digit.isdigit() else digit
            changed = datum[:-1] + other
            wrong += [one.rule for one in found(scanners, text.replace(datum, changed), "pii") if one.rule == rule]
    assert wrong == []


def test_ordinary_logs_have_hardly_any_data_about_people(scanners: Scanners) -> None:
    texts = list(ordinary_logs(300))
    alarms = [one.rule for text in texts for one in found(scanners, text, "pii")[:1]]
    told("false alarms about people in logs", len(alarms), len(texts), alarms)
    assert len(alarms) <= 0.02 * len(texts), Counter(alarms)


def test_numbers_of_measurements_are_not_data_about_people(scanners: Scanners) -> None:
    rng = random.Random(6)
    text = json.dumps(
        [{"score": rng.random(), "at": rng.random() * 1e9, "id": f"v0.{rng.random()}"} for _ in range(3_000)]
    )
    assert [one.rule for one in found(scanners, text, "pii")] == []


def test_at_least_95_of_100_injections_are_found(scanners: Scanners) -> None:
    missed = [text for text in INJECTIONS if not found(scanners, text, "injection")]
    told("injections found", len(INJECTIONS) - len(missed), len(INJECTIONS), missed)
    assert len(missed) <= 0.05 * len(INJECTIONS), missed


def test_at_most_2_of_100_ordinary_texts_look_like_an_injection(scanners: Scanners) -> None:
    texts = [*ordinary_texts(), *ordinary_logs()]
    alarms = [
        (one.rule, text[one.offset : one.offset + one.length])
        for text in texts
        for one in found(scanners, text, "injection")[:1]
    ]
    told("false alarms about injections", len(alarms), len(texts), (f"{rule} {text[:40]}" for rule, text in alarms))
    assert len(alarms) <= 0.02 * len(texts), alarms[:40]
