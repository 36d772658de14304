"""Callback tokens: each speaks for one attempt, and only as it was made."""

from __future__ import annotations

import hmac
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadSignature
from windlass.pure.token import Token, make_token, parse_token

NEW, OLD, FOREIGN = b"new", b"old", b"foreign"
TOKEN = Token(UUID(int=7), 3, 2, 2_000)


def mac(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")


TEXT = make_token(TOKEN, lambda body: mac(NEW, body))


def macs(body: bytes) -> list[bytes]:
    return [mac(NEW, body), mac(OLD, body)]


@given(
    st.builds(
        Token,
        st.uuids(),
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**31 - 1),
        st.integers(1, 2**40),
    ),
    st.sampled_from([NEW, OLD]),
)
def test_a_token_says_what_it_was_made_for(token: Token, key: bytes) -> None:
    text = make_token(token, lambda body: mac(key, body))
    assert text.startswith("wlc_")
    assert parse_token(text, macs, now_s=token.expires_s - 0.5) == token


@given(st.integers(0, len(TEXT) - 1), st.sampled_from("AZaz09_-.= "))
def test_a_token_that_was_changed_is_none(place: int, letter: str) -> None:
    changed = TEXT[:place] + letter + TEXT[place + 1 :]
    if changed != TEXT:
        with pytest.raises(BadSignature):
            parse_token(changed, macs, now_s=0)


@pytest.mark.parametrize("text", ["", "wlc_", "wlc_.", TEXT + "\n", TEXT[:-1], TEXT[4:], TEXT + "A", "wlc_" + "ä" * 87])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(BadSignature):
        parse_token(text, macs, now_s=0)


def test_a_token_of_another_installation_and_one_that_is_over_read_the_same() -> None:
    foreign = make_token(TOKEN, lambda body: mac(FOREIGN, body))
    texts = set()
    for text, now_s in ((foreign, 0.0), (TEXT, 2_000.0), (TEXT, 9_999.0), ("junk", 0.0)):
        with pytest.raises(BadSignature) as caught:
            parse_token(text, macs, now_s=now_s)
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert parse_token(TEXT, macs, now_s=1_999.9) == TOKEN
