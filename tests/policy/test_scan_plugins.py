"""A scanner of a plug-in that hangs, dies, eats memory or answers nonsense did not answer, and harms nobody."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from windlass.core.errors import BadPolicy, BadSetting
from windlass.policy.content import ScanWants
from windlass.policy.output import judge_output
from windlass.policy.reader import read_policy, read_question
from windlass.policy.rules import compile_policy
from windlass.policy.scan import names
from windlass.policy.scan.installed import installed_scanners
from windlass.policy.scan.plugin import PluginLimits, PluginScanner
from windlass.policy.scan.port import ScannerSilent, ScanText
from windlass.policy.scan.scanners import Scanners

LIMITS = PluginLimits(start_s=120.0, cpu_s=1.0, wall_s=60.0, memory_bytes=1 << 30)
# The processor's time is the limit here: it does not pass while the machine is busy with other work.
WANTS = ScanWants(frozenset({"hostile", "secret"}))


@pytest.fixture
def hostile() -> Iterator[PluginScanner]:
    scanner = PluginScanner("hostile", "tests.policy.scan_plugins:Hostile", LIMITS)
    yield scanner
    scanner.close()


@pytest.mark.parametrize("text", ["hang", "die", "eat", "exit", "raise", "outside", "flood"])
def test_a_plugin_that_fails_did_not_answer_and_answers_the_next_text(hostile: PluginScanner, text: str) -> None:
    with pytest.raises(ScannerSilent) as error:
        hostile.scan(ScanText(text.encode()))
    assert "secret" not in str(error.value)
    assert [one.rule for one in hostile.scan(ScanText(b"TICKET-1"))] == ["ticket"]


def test_what_a_plugin_prints_does_not_disturb_its_answers(hostile: PluginScanner) -> None:
    assert hostile.scan(ScanText(b"print")) == []
    assert len(hostile.scan(ScanText(b"TICKET-1 TICKET-2"))) == 2


def test_a_plugin_does_not_see_the_settings_of_windlass(
    hostile: PluginScanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_SECRET", "x")
    assert hostile.scan(ScanText(b"environment")) == []


def test_a_content_that_has_killed_a_plugin_three_times_is_not_given_to_it_again(hostile: PluginScanner) -> None:
    scanners = Scanners([hostile])
    told = [scanners.scan(b"die", WANTS) for _ in range(4)]
    assert [sorted(one.given_up) for one in told] == [[], [], ["hostile"], ["hostile"]]
    assert "died 3 times" in told[3].silent[0][1]
    assert all(one.facts.scanners == {"secret"} for one in told)
    assert scanners.scan(b"other", WANTS).silent == ()


def test_a_silent_plugin_is_never_a_clean_answer(hostile: PluginScanner) -> None:
    """The judge cannot decide, and quarantines."""
    text = "output_rules: [{id: r, match: {scanners: [hostile]}, decision: redact}]"
    policy = compile_policy(read_policy(text, scanners={"hostile"}))
    question = read_question({"edge": "output", "topic": "job.a.b"})

    def judged(content: bytes) -> str:
        facts = Scanners([hostile]).scan(content, ScanWants(frozenset({"hostile"}))).facts
        return judge_output(policy, replace(question, content=facts)).verdict.decision

    assert [judged(b"raise"), judged(b"TICKET-1"), judged(b"clean")] == ["quarantine", "redact", "allow"]


def test_findings_of_a_plugin_have_places_in_json_and_are_redacted(hostile: PluginScanner) -> None:
    scanners = Scanners([hostile])
    content = b'{"a": ["x", "see TICKET-4711"]}'
    assert [(one.path, one.offset) for one in scanners.scan(content, WANTS).findings] == [("$.a[1]", 4)]
    assert scanners.redact(content, WANTS).content == b'{"a":["x","see [REDACTED]"]}'
    assert scanners.redact(b"raise", WANTS).content is None


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("tests.policy.scan_plugins:Misnamed", "its name 'other'"),
        ("tests.policy.scan_plugins:broken", "cannot be loaded|did not start|died"),
        ("tests.policy.nothing:Scanner", "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_says_why(reference: str, reason: str) -> None:
    scanner = PluginScanner("tickets", reference, LIMITS)
    with pytest.raises(ScannerSilent, match=reason):
        scanner.scan(ScanText(b"x"))
    scanner.close()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the entry points of an installed package."""
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names.entry_points.cache_clear()
    yield info
    names.entry_points.cache_clear()


def test_an_installed_plugin_is_known_to_policies_by_its_entry_point(site: Path) -> None:
    (site / "entry_points.txt").write_text("[windlass.scanners]\ntickets = tests.policy.scan_plugins:Tickets\n")
    document = read_policy("output_rules: [{id: r, match: {scanners: [tickets]}, decision: redact}]")
    assert document.output_rules[0].match.scanners == {"tickets"}
    with pytest.raises(BadPolicy, match=r"no scanner 'ticket'.*tickets"):
        read_policy("output_rules: [{id: r, match: {scanners: [ticket]}, decision: redact}]")
    scanners = installed_scanners(plugin_limits=LIMITS)
    try:
        assert scanners.names == {"secret", "pii", "injection", "tickets"}
        assert scanners.scan(b"TICKET-1", ScanWants(frozenset({"tickets"}))).facts.findings[0].type == "ticket"
    finally:
        scanners.close()


def test_a_plugin_cannot_take_the_name_of_a_built_in_scanner(site: Path) -> None:
    (site / "entry_points.txt").write_text("[windlass.scanners]\nsecret = tests.policy.scan_plugins:Tickets\n")
    with pytest.raises(BadSetting, match=r"'secret' of acme 1\.0"):
        names.installed_names()
