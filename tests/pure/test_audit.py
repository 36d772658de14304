from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.pure.audit import GENESIS, Flaw, Record, canonical, chain_hash, payload_text, verify

AT = datetime(2030, 1, 31, 23, 59, 59, 120, tzinfo=UTC)
JOB = UUID("0199aaaa-0000-7000-8000-000000000001")
FULL = Record(7, AT, "job_failed", "ada", "user", "pro", JOB, "r-1", '{"state":"FAILED"}')
EMPTY = Record(7, AT, "auth_rejected", None, None, None, None, None, "{}")


def chain(count: int, before: bytes = GENESIS, first_no: int = 1) -> list[tuple[Record, bytes]]:
    made = []
    for no in range(first_no, first_no + count):
        record = replace(FULL, no=no, at=AT + timedelta(seconds=no), payload=payload_text({"n": no}))
        before = chain_hash(before, record)
        made.append((record, before))
    return made


def test_the_bytes_are_those_that_are_documented() -> None:
    assert canonical(FULL) == (
        b"1:7,27:2030-01-31T23:59:59.000120Z,10:job_failed,3:ada,4:user,3:pro,"
        b'36:0199aaaa-0000-7000-8000-000000000001,3:r-1,18:{"state":"FAILED"},'
    )
    assert canonical(EMPTY) == b"1:7,27:2030-01-31T23:59:59.000120Z,13:auth_rejected,-,-,-,-,-,2:{},"
    assert chain_hash(GENESIS, EMPTY) == sha256(bytes(32) + canonical(EMPTY)).digest()


def test_a_moment_is_the_same_wherever_it_is_told() -> None:
    assert canonical(replace(FULL, at=AT.astimezone(timezone(timedelta(hours=5))))) == canonical(FULL)


FIELDS = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=4))


@given(st.tuples(FIELDS, FIELDS, FIELDS, FIELDS), st.tuples(FIELDS, FIELDS, FIELDS, FIELDS))
def test_no_two_records_have_the_same_bytes(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    """Also when text moves from one field to the next, or is nothing instead of empty."""
    names = ("caller", "caller_type", "tier", "request_id")
    first = replace(EMPTY, **dict(zip(names, one, strict=True)))  # type: ignore[arg-type]
    second = replace(EMPTY, **dict(zip(names, other, strict=True)))  # type: ignore[arg-type]
    assert (canonical(first) == canonical(second)) == (one == other)


def test_equal_payloads_have_equal_texts() -> None:
    assert payload_text({"b": 1, "a": {"d": "é", "c": None}}) == '{"a":{"c":null,"d":"é"},"b":1}'
    assert payload_text({"a": {"c": None, "d": "é"}, "b": 1}) == payload_text({"b": 1, "a": {"d": "é", "c": None}})


def test_a_chain_that_nobody_touched_is_whole() -> None:
    whole = chain(5)
    assert verify(whole, GENESIS, 1) is None
    assert verify(whole[2:], whole[1][1], 3) is None
    assert verify([], GENESIS, 1) is None


CHANGES = {
    "at": AT + timedelta(microseconds=1),
    "event": "job_completed",
    "caller": "eve",
    "caller_type": None,
    "tier": "",
    "job_id": None,
    "request_id": "r-2",
    "payload": "{}",
}


@pytest.mark.parametrize("field", sorted(CHANGES))
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_record_that_was_changed_is_found(field: str, place: int) -> None:
    found = chain(5)
    record, stored = found[place]
    found[place] = (replace(record, **{field: CHANGES[field]}), stored)  # type: ignore[arg-type]
    flaw = verify(found, GENESIS, 1)
    assert flaw is not None
    assert flaw.no == place + 1
    assert "changed" in flaw.reason


@pytest.mark.parametrize("place", [0, 2])
def test_a_record_that_was_changed_with_its_hash_is_found_at_the_next(place: int) -> None:
    found = chain(5)
    forged = replace(found[place][0], caller="eve")
    found[place] = (forged, chain_hash(found[place - 1][1] if place else GENESIS, forged))
    flaw = verify(found, GENESIS, 1)
    assert flaw is not None
    assert flaw.no == place + 2


@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_record_that_was_removed_is_found(place: int) -> None:
    found = chain(5)
    del found[place]
    flaw = verify(found, GENESIS, 1)
    assert flaw == Flaw(place + 1, f"record {place + 1} is missing: record {place + 2} is in its place")


def test_a_record_that_was_slipped_in_is_found() -> None:
    found = chain(5)
    slipped = replace(found[2][0], caller="eve")
    for number in (2, 3):
        forged = replace(slipped, no=number + 1)
        attempt = [*found[:number], (forged, chain_hash(found[number - 1][1], forged)), *found[number:]]
        assert verify(attempt, GENESIS, 1) is not None


def test_two_records_that_changed_places_are_found() -> None:
    found = chain(5)
    (one, one_hash), (two, two_hash) = found[1], found[2]
    found[1], found[2] = (replace(two, no=2), one_hash), (replace(one, no=3), two_hash)
    flaw = verify(found, GENESIS, 1)
    assert flaw is not None
    assert flaw.no == 2
