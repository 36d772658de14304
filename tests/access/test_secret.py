from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.access.secret import Secret
from windlass.core.errors import BadSetting, Broken

ONE = "one-secret-of-thirty-two-letters"
TWO = "two-secret-of-thirty-two-letters"


def test_a_short_secret_is_refused_and_not_repeated() -> None:
    for texts in ([], ["short"], [ONE, "short"]):
        with pytest.raises(BadSetting) as refused:
            Secret.of(texts)
        assert "short" not in str(refused.value)


def test_digests_differ_by_purpose_secret_and_data() -> None:
    one, two = Secret.of([ONE]), Secret.of([TWO])
    found = [one.digest("key", b"a"), one.digest("ticket", b"a"), two.digest("key", b"a"), one.digest("key", b"b")]
    assert len(set(found)) == 4
    assert {len(digest) for digest in found} == {32}
    assert one.digest("key", b"a") == Secret.of([ONE]).digest("key", b"a")


def test_subkeys_are_those_of_the_standard() -> None:
    """RFC 5869 with the salt `windlass`, the purpose as info, one block."""
    extracted = hmac.digest(b"windlass", ONE.encode(), "sha256")
    expanded = hmac.digest(extracted, b"key\x01", "sha256")
    assert Secret.of([ONE]).digest("key", b"a") == hmac.digest(expanded, b"a", "sha256")


def test_the_first_secret_makes_and_all_are_accepted() -> None:
    both = Secret.of([TWO, ONE])
    assert both.digest("key", b"a") == Secret.of([TWO]).digest("key", b"a")
    assert both.digests("key", b"a") == [Secret.of([TWO]).digest("key", b"a"), Secret.of([ONE]).digest("key", b"a")]


@given(st.binary(max_size=200))
def test_what_is_sealed_can_be_opened_after_the_secret_changed(plain: bytes) -> None:
    sealed = Secret.of([ONE]).seal(plain)
    assert Secret.of([TWO, ONE]).open(sealed) == plain
    assert Secret.of([ONE, TWO]).open(sealed) == plain
    assert len(plain) < 8 or plain not in sealed


def test_sealing_twice_gives_two_texts() -> None:
    secret = Secret.of([ONE])
    assert secret.seal(b"a") != secret.seal(b"a")


def test_another_secret_opens_nothing_and_says_what_to_do() -> None:
    with pytest.raises(BadSetting, match="WINDLASS_SECRET"):
        Secret.of([TWO]).open(Secret.of([ONE]).seal(b"a"))


def test_a_change_is_seen_wherever_it_is() -> None:
    secret = Secret.of([ONE])
    sealed = secret.seal(b"plain")
    for place in range(4, len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(Broken):
            secret.open(changed)
    with pytest.raises(Broken):
        secret.open(sealed[:6])


def test_a_secret_is_not_shown() -> None:
    secret = Secret.of([ONE, TWO])
    secret.digest("key", b"a")
    assert repr(secret) == str(secret) == "Secret(2)"
