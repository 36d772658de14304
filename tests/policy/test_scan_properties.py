"""Properties of scanning: it is total, a redaction keeps JSON JSON and leaves no finding, and both engines agree."""

from __future__ import annotations

import base64
import gzip
import json
import random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.policy.scan_corpus import INJECTIONS, TOKENS, filled, people
from windlass.policy.content import ScanWants
from windlass.policy.scan.finding import MARKER
from windlass.policy.scan.scanners import Scanners

FAST, PLAIN = Scanners(with_hyperscan=True), Scanners(with_hyperscan=False)
ALL = ScanWants(frozenset({"secret", "pii", "injection"}))
SECRET = ScanWants(frozenset({"secret"}))
_RNG = random.Random(11)
SECRETS = [filled(form, _RNG) for form in TOKENS for _ in range(2)]
LEAKS = st.sampled_from([*SECRETS, *INJECTIONS, *(datum for _, datum, _ in people(count=3))])
ORDINARY = st.text(st.characters(codec="utf-8"), max_size=40)
DISGUISES = st.sampled_from(
    [
        lambda text: text,
        lambda text: f"before {text} after",
        lambda text: f'"{text}"\n',
        lambda text: base64.b64encode(f"text: {text} end".encode()).decode(),
        lambda text: base64.b64encode(gzip.compress(f"text: {text} end".encode())).decode(),
        lambda text: "\u200b".join((text[:5], text[5:])),
        lambda text: json.dumps({"inner": text}),
    ]
)
LEAKING = st.builds(lambda disguise, text: disguise(text), DISGUISES, LEAKS)
TEXTS = st.one_of(ORDINARY, LEAKING)
KEYS = st.one_of(st.sampled_from(["a", "password", "api_key", "b c", ""]), ORDINARY, LEAKS)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e9, 1e9), TEXTS),
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(KEYS, below, max_size=4)),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """What a redaction keeps: the containers, and how many items each has."""
    match value:
        case dict():
            return ("object", [shape(item) for item in value.values()])
        case list():
            return ("list", [shape(item) for item in value])
        case str() | int() | float() if not isinstance(value, bool):
            return "value"
        case _:
            return value


@given(VALUES, st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_redaction_keeps_json_json_and_leaves_no_finding(value: Any, is_ascii: bool) -> None:
    content = json.dumps(value, ensure_ascii=is_ascii).encode()
    redaction = PLAIN.redact(content, ALL, media_type="application/json")
    if redaction.content is None:
        # The caller then quarantines the content. It must be rare, or the property says nothing.
        assume(False)
        raise AssertionError
    assert shape(json.loads(redaction.content)) == shape(value)
    report = PLAIN.scan(redaction.content, ALL, media_type="application/json")
    assert (report.findings, report.is_truncated) == ((), False)


@given(st.lists(TEXTS, min_size=1, max_size=5).map(" | ".join))
@settings(max_examples=150, deadline=None)
def test_a_redacted_text_has_no_finding(text: str) -> None:
    content = PLAIN.redact(text.encode(), ALL, media_type="text/plain").content
    assume(content is not None)
    assert content is not None
    assert PLAIN.scan(content, ALL, media_type="text/plain").findings == ()


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_both_engines_find_the_same(value: Any) -> None:
    content = json.dumps(value).encode()
    assert FAST.scan(content, ALL).findings == PLAIN.scan(content, ALL).findings


@given(st.one_of(st.binary(max_size=2_000), st.text(max_size=500).map(lambda text: text.encode("utf-16"))))
@settings(max_examples=200, deadline=None)
def test_any_bytes_get_an_answer_and_findings_lie_inside_of_them(content: bytes) -> None:
    report = FAST.scan(content, ALL)
    assert report.facts.size_bytes == len(content)
    for one in report.findings:
        assert 0 <= one.offset <= one.offset + one.length <= len(content)


@given(VALUES, st.sampled_from(SECRETS), st.sampled_from(["$.x", "$.list[0]", "$.deep.deep"]))
@settings(max_examples=150, deadline=None)
def test_a_secret_is_found_wherever_it_stands(value: Any, secret: str, path: str) -> None:
    holder: dict[str, Any] = {"value": value}
    match path:
        case "$.x":
            holder["x"] = secret
        case "$.list[0]":
            holder["list"] = [secret]
        case _:
            holder["deep"] = {"deep": f"see {secret} there"}
    facts = FAST.scan(json.dumps(holder).encode(), SECRET).facts
    assert path in {one.path for one in facts.findings}


@given(VALUES, st.sampled_from(SECRETS))
@settings(max_examples=100, deadline=None)
def test_no_finding_and_no_path_shows_a_secret(value: Any, secret: str) -> None:
    report = FAST.scan(json.dumps({secret: {"inner": value, "other": secret}}).encode(), SECRET, key=b"k")
    assert secret not in repr(report)


def test_the_marker_is_harmless() -> None:
    assert FAST.scan(json.dumps({"password": MARKER, MARKER: [MARKER, MARKER]}).encode(), ALL).findings == ()
