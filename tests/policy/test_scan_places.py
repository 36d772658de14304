"""Where findings are, in which views they are found, and what a redaction leaves."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import io
import json
import zipfile
from typing import Any

import pytest

from windlass.core.errors import BadPolicy
from windlass.policy.content import ScanWants
from windlass.policy.document import ContentMatch
from windlass.policy.scan.finding import MARKER, TRUNCATED, ScanLimits
from windlass.policy.scan.scanners import Scanners

TOKEN = "ghp_" + "a8Kd92LmQx7Zt3Vb6Nw1Ye5Rj0Hs4Pf9Gc2U"
SECRET = ScanWants(frozenset({"secret"}))
ALL = ScanWants(frozenset({"secret", "pii", "injection"}))


@pytest.fixture(scope="module", params=[True, False], ids=["hyperscan", "re2"])
def scanners(request: pytest.FixtureRequest) -> Scanners:
    return Scanners(with_hyperscan=request.param)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def places(scanners: Scanners, value: Any, wants: ScanWants = SECRET) -> list[tuple[str, int, int]]:
    return [(one.path, one.offset, one.length) for one in scanners.scan(encoded(value), wants).findings]


def redacted(scanners: Scanners, value: Any, wants: ScanWants = ALL) -> Any:
    content = scanners.redact(encoded(value), wants).content
    assert content is not None
    return json.loads(content)


def test_a_finding_has_the_path_the_offset_and_the_length_in_the_value(scanners: Scanners) -> None:
    value = {"mails": [{"body": "hello"}, {"body": f"é: {TOKEN}."}]}
    assert places(scanners, value) == [("$.mails[1].body", 4, 40)]


def test_a_finding_has_no_text_but_a_keyed_digest(scanners: Scanners) -> None:
    (finding,) = scanners.scan(TOKEN.encode(), SECRET, key=b"key").findings
    assert TOKEN not in repr(finding)
    assert finding.digest == hmac.new(b"key", TOKEN.encode(), hashlib.sha256).hexdigest()
    assert scanners.scan(TOKEN.encode(), SECRET).findings[0].digest == ""


def test_a_secret_in_a_key_is_found_and_the_path_does_not_show_it(scanners: Scanners) -> None:
    report = scanners.scan(encoded({"a": {TOKEN: {"b": TOKEN}}}), SECRET)
    assert {(one.path, one.in_key) for one in report.findings} == {
        (f"$.a['{MARKER}']", True),
        (f"$.a['{MARKER}'].b", False),
    }


HIDDEN = {
    "escaped": json.dumps({"x": TOKEN}).replace("g", "\\u0067").encode(),
    "after an escape": encoded({"x": f"line\n{TOKEN}\nline"}),
    "JSON inside of JSON": encoded({"x": json.dumps({"y": f"\n{TOKEN}"})}),
    "base64": encoded({"x": base64.b64encode(f"the token is {TOKEN}".encode()).decode()}),
    "base64 in lines": encoded({"x": base64.encodebytes(f"{'-' * 80} {TOKEN} {'-' * 80}".encode()).decode()}),
    "base64 for URLs": encoded({"x": base64.urlsafe_b64encode(f"the token? is {TOKEN}".encode()).decode()}),
    "gzip in base64": encoded({"x": base64.b64encode(gzip.compress(f"token {TOKEN}".encode())).decode()}),
    "zero width": encoded({"x": f"{TOKEN[:9]}\u200b{TOKEN[9:]}"}),
    "full width": encoded({"x": "".join(chr(ord(char) + 0xFEE0) for char in TOKEN)}),
    "UTF-16": TOKEN.encode("utf-16"),
    "UTF-16, big": f"x {TOKEN}".encode("utf-16-be"),
    "UTF-16 in base64": encoded({"x": base64.b64encode(TOKEN.encode("utf-16-le")).decode()}),
    "UTF-16 in text": encoded({"x": TOKEN.encode("utf-16-le").decode()}),
    "gzip": gzip.compress(f"token {TOKEN}".encode()),
    "two gzip members": gzip.compress(b"nothing here") + gzip.compress(f"token {TOKEN}".encode()),
    "parts in a list": encoded({"parts": ["x " + TOKEN[:11], TOKEN[11:22], TOKEN[22:] + " y"]}),
    "outputs of children": encoded([{"n": 1}, f"a{TOKEN[:3]}"[1:], TOKEN[3:]]),
}


@pytest.mark.parametrize("content", HIDDEN.values(), ids=HIDDEN)
def test_a_hidden_secret_is_found(scanners: Scanners, content: bytes) -> None:
    assert "github-token" in {one.rule for one in scanners.scan(content, SECRET).findings}


def zipped(*files: str, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        for at, text in enumerate(files):
            archive.writestr(f"{at}.txt", text)
    return whole.getvalue()


def test_a_secret_in_an_archive_is_found_and_cannot_be_redacted(scanners: Scanners) -> None:
    content = zipped("nothing", f"token {TOKEN}")
    assert [one.rule for one in scanners.scan(content, SECRET).findings] == ["github-token"]
    assert scanners.redact(content, SECRET).content is None


def test_an_archive_that_grows_too_large_is_a_truncated_content(scanners: Scanners) -> None:
    bomb = gzip.compress(b"0" * (64 << 20))
    report = scanners.scan(bomb, SECRET)
    assert report.is_truncated
    assert [one.rule for one in report.findings] == [TRUNCATED]
    assert report.facts.scanners == frozenset()
    assert scanners.scan(encoded({"x": base64.b64encode(bomb).decode()}), SECRET).is_truncated


def test_a_damaged_archive_and_one_with_too_many_files_are_truncated_contents(scanners: Scanners) -> None:
    assert scanners.scan(gzip.compress(TOKEN.encode() * 9)[:-20], SECRET).is_truncated
    assert scanners.scan(b"PK\x03\x04 and nothing else", SECRET).is_truncated
    assert scanners.scan(zipped(*["x"] * 65), SECRET).is_truncated


def test_a_secret_behind_the_limit_makes_every_scanner_unanswered() -> None:
    scanners = Scanners(limits=ScanLimits(scan_bytes=1_000))
    report = scanners.scan(b"x" * 1_000 + TOKEN.encode(), ALL)
    assert {(one.scanner, one.rule, one.offset) for one in report.findings} == {
        (name, TRUNCATED, 1_000) for name in ("secret", "pii", "injection")
    }
    assert report.is_truncated and report.facts.scanners == frozenset()
    assert scanners.redact(b"x" * 1_001, ALL).content is None


def test_all_wanted_scanners_answer_about_a_clean_content(scanners: Scanners) -> None:
    report = scanners.scan(b'{"text": "hello"}', ALL, media_type="application/json")
    assert report.facts.scanners == ALL.scanners
    assert (report.findings, report.facts.findings, report.facts.size_bytes) == ((), (), 17)


def test_findings_are_limited_and_facts_are_not(scanners: Scanners) -> None:
    value = {f"k{at}": f"{TOKEN[:-3]}{at:03}" for at in range(100)}
    report = scanners.scan(encoded(value), SECRET)
    assert (len(report.findings), report.matches, len(report.facts.findings)) == (10, 100, 100)


def test_patterns_and_keywords_of_a_policy_are_found_in_values(scanners: Scanners) -> None:
    wants = ScanWants(patterns=frozenset({r"^PRJ-\d{4}$", r"no\d"}), keywords=frozenset({"Project Falcon", "eagle"}))
    facts = scanners.scan(encoded({"a": ["x", "PRJ-1234"], "b": "the project falcon"}), wants).facts
    assert facts.patterns == {r"^PRJ-\d{4}$"}
    assert facts.keywords == {"Project Falcon"}
    assert facts.findings == ()
    assert scanners.scan(encoded({"a": "x PRJ-1234"}), wants).facts.patterns == frozenset()


def test_a_pattern_that_looks_far_ahead_takes_linear_time(scanners: Scanners) -> None:
    wants = ScanWants(patterns=frozenset({"x.*y|x"}))
    report = scanners.scan(b"x" * 200_000, wants)
    assert report.is_truncated and report.facts.patterns == {"x.*y|x"}


def test_an_unknown_scanner_is_refused(scanners: Scanners) -> None:
    with pytest.raises(BadPolicy, match="no scanner 'secrets'"):
        scanners.scan(b"x", ScanWants(frozenset({"secrets"})))


def test_redacted_json_is_json_and_keeps_everything_else(scanners: Scanners) -> None:
    value = {"a": [1, None, True, {"b": f"x {TOKEN} y {TOKEN}"}], "n": 4242424242424242, "z": 1.5, "é": "ü"}
    assert redacted(scanners, value) == {
        "a": [1, None, True, {"b": f"x {MARKER} y {MARKER}"}],
        "n": MARKER,
        "z": 1.5,
        "é": "ü",
    }


def test_keys_are_redacted_in_their_order_and_no_value_is_lost(scanners: Scanners) -> None:
    value = {"a": 1, TOKEN: {"x": TOKEN}, TOKEN[:-1] + "V": 3, "z": 4}
    content = redacted(scanners, value)
    assert list(content.items()) == [("a", 1), (MARKER, {"x": MARKER}), (f"{MARKER} 2", 3), ("z", 4)]


def test_a_redaction_replaces_what_hides_a_secret(scanners: Scanners) -> None:
    for name in ("base64", "gzip in base64", "zero width", "parts in a list"):
        content = scanners.redact(HIDDEN[name], SECRET).content
        assert content is not None
        assert json.loads(content).keys() == json.loads(HIDDEN[name]).keys()
        assert MARKER.encode() in content
        assert scanners.scan(content, SECRET).findings == ()


def test_a_secret_under_a_key_that_stands_twice_is_found_and_goes_with_the_redaction(scanners: Scanners) -> None:
    content = f'{{"a": "{TOKEN}", "a": "harmless"}}'.encode()
    assert [(one.rule, one.path) for one in scanners.scan(content, SECRET).findings] == [("github-token", "$")]
    assert scanners.redact(content, SECRET).content == b'{"a":"harmless"}'


def test_a_match_is_not_made_by_the_end_of_the_part_that_is_searched(scanners: Scanners) -> None:
    """A key of 36 characters is none if it goes on."""
    for size in range(400, 800):
        text = "ghp_ " + "-" * (size - 5) + TOKEN + "GoesOn"
        assert scanners.scan(text.encode(), SECRET).findings == (), size


def test_a_long_match_is_one_finding_and_one_without_end_was_not_fully_scanned(scanners: Scanners) -> None:
    lines = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj" + chr(10)) * 600
    report = scanners.scan(f"-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n{TOKEN}".encode(), SECRET)
    assert [one.rule for one in report.findings if "begin" not in one.rule] == ["private-key", "github-token"]
    assert not report.is_truncated
    assert scanners.scan(f"-----BEGIN PRIVATE KEY-----\n{lines * 2}".encode(), SECRET).is_truncated


def test_plain_text_is_redacted_in_place(scanners: Scanners) -> None:
    assert scanners.redact(f"a {TOKEN} b".encode(), SECRET).content == f"a {MARKER} b".encode()


def test_a_redaction_for_a_rule_leaves_what_does_not_count_for_it(scanners: Scanners) -> None:
    value = {"shown": "ada@mail.dev", "mails": [{"body": "bob@mail.dev"}]}
    match = ContentMatch(scanners=frozenset({"pii"}), path="$.mails[*].body")
    content = scanners.redact(encoded(value), ScanWants(frozenset({"pii"})), match=match).content
    assert content is not None
    assert json.loads(content) == {"shown": "ada@mail.dev", "mails": [{"body": MARKER}]}


def test_a_pattern_that_matches_the_marker_cannot_be_redacted(scanners: Scanners) -> None:
    redaction = scanners.redact(b'{"a": "b"}', ScanWants(patterns=frozenset({"[A-Z]"}), keywords=frozenset({"b"})))
    assert redaction.content is None
    assert "still matches" in redaction.reason
