from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.pure.key import KeyText, make_key, parse_key

KEY = make_key(bytes(range(9)), bytes(range(32)))
SECRET_PART = KEY.text[len("wl_") + 12 + 1 :]


@given(st.binary(min_size=9, max_size=9), st.binary(min_size=32, max_size=32))
def test_a_key_that_was_made_is_read_back(id_bytes: bytes, secret_bytes: bytes) -> None:
    key = make_key(id_bytes, secret_bytes)
    assert parse_key(key.text) == key
    assert key.text.startswith(f"wl_{key.id}_")
    assert len(key.text) == 3 + 12 + 1 + 43 + 6


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_other_random_bytes_give_another_key(one: bytes, other: bytes) -> None:
    assert (make_key(bytes(9), one).text == make_key(bytes(9), other).text) == (one == other)


def test_the_greatest_bytes_fit() -> None:
    assert parse_key(make_key(b"\xff" * 9, b"\xff" * 32).text) is not None


@pytest.mark.parametrize("place", range(len(KEY.text)))
def test_one_wrong_letter_is_seen_wherever_it_is(place: int) -> None:
    for letter in string.ascii_letters + string.digits:
        if letter != KEY.text[place]:
            assert parse_key(KEY.text[:place] + letter + KEY.text[place + 1 :]) is None


@pytest.mark.parametrize(
    "junk",
    ["", "wl_", KEY.text[:-1], KEY.text + "0", f" {KEY.text}", f"{KEY.text}\n", KEY.text.upper(), "sk-123", "\x00",
     KEY.text.replace("0", "٠"), "\ud800", "wl_" + "0" * 10_000],
)  # fmt: skip
def test_junk_is_no_key(junk: str) -> None:
    assert parse_key(junk) is None


@pytest.mark.parametrize(("id_bytes", "secret_bytes"), [(bytes(8), bytes(32)), (bytes(9), bytes(31))])
def test_too_few_random_bytes_make_no_key(id_bytes: bytes, secret_bytes: bytes) -> None:
    with pytest.raises(ValueError, match="9 and 32 bytes"):
        make_key(id_bytes, secret_bytes)


def test_a_key_shows_its_id_only() -> None:
    assert isinstance(KEY, KeyText)
    for shown in (repr(KEY), str(KEY), f"{[KEY]}"):
        assert KEY.id in shown
        assert KEY.text not in shown
        assert SECRET_PART not in shown
