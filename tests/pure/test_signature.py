"""Signatures of four kinds: a signed message holds, a changed message does not; refusals do not tell the mistake."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadInput, BadSignature, Unauthenticated
from windlass.pure.signature import ID_LENGTH_MAX, SignatureProfile, digest_id, secret_of, sign, verify

SECRET = b"0123456789abcdef0123456789abcdef"
OTHER = b"ffffffffffffffffffffffffffffffff"
BODY = '{"id":"ext-1","status":"größer"}'.encode()
NOW = 1_700_000_000.5
STAMPED = (SignatureProfile.STANDARD, SignatureProfile.STRIPE)
PROFILES = tuple(SignatureProfile)


def signed(profile: SignatureProfile, *, secret: bytes = SECRET, body: bytes = BODY, at: float = NOW) -> dict[str, str]:
    return sign(profile, secret, body, now_s=at, id="msg_1")


@pytest.mark.parametrize("profile", PROFILES)
@given(body=st.binary(max_size=200), secret=st.binary(min_size=16, max_size=64), is_upper=st.booleans())
def test_what_a_provider_signs_is_taken(profile: SignatureProfile, body: bytes, secret: bytes, is_upper: bool) -> None:
    headers = signed(profile, secret=secret, body=body)
    cased = {(name.upper() if is_upper else name.lower()): value for name, value in headers.items()}
    id = verify(profile, [OTHER, secret], cased, body, now_s=NOW)
    assert id == ("msg_1" if profile is SignatureProfile.STANDARD else hashlib.sha256(body).hexdigest())


@pytest.mark.parametrize("profile", PROFILES)
def test_every_refusal_reads_the_same(profile: SignatureProfile) -> None:
    good = signed(profile)
    good.pop("X-GitHub-Delivery", None)
    attempts: list[tuple[list[bytes], dict[str, str], bytes, float]] = [
        ([SECRET], good, BODY + b" ", NOW),
        ([OTHER], good, BODY, NOW),
        ([], good, BODY, NOW),
        ([SECRET], {}, BODY, NOW),
        *(([SECRET], good | {name: ""}, BODY, NOW) for name in good),
        *(([SECRET], good | {name: "ä=ö,§"}, BODY, NOW) for name in good),
        *(([SECRET], good | {name: "0" * 5000}, BODY, NOW) for name in good),
    ]
    if profile in STAMPED:
        attempts += [([SECRET], good, BODY, NOW + 302), ([SECRET], good, BODY, NOW - 302)]
    texts = set()
    for secrets, headers, body, now_s in attempts:
        with pytest.raises(BadSignature) as caught:
            verify(profile, secrets, headers, body, now_s=now_s)
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert isinstance(caught.value, Unauthenticated)


@pytest.mark.parametrize("profile", STAMPED)
@pytest.mark.parametrize("late_s", [-299, 0, 299])
def test_a_signature_holds_five_minutes_both_ways(profile: SignatureProfile, late_s: int) -> None:
    verify(profile, [SECRET], signed(profile), BODY, now_s=NOW + late_s)
    with pytest.raises(BadSignature):
        verify(profile, [SECRET], signed(profile), BODY, now_s=NOW + 12, tolerance_s=10)


@pytest.mark.parametrize("profile", [SignatureProfile.GITHUB, SignatureProfile.PLAIN])
def test_an_id_that_is_not_signed_is_none(profile: SignatureProfile) -> None:
    headers = signed(profile) | {"X-GitHub-Delivery": "another", "webhook-id": "another"}
    assert verify(profile, [SECRET], headers, BODY, now_s=NOW) == digest_id(BODY)


def test_a_standard_id_is_signed_and_short() -> None:
    def taken(id: str) -> str:
        headers = sign(SignatureProfile.STANDARD, SECRET, BODY, now_s=NOW, id=id)
        return verify(SignatureProfile.STANDARD, [SECRET], headers, BODY, now_s=NOW)

    assert taken("x" * ID_LENGTH_MAX) == "x" * ID_LENGTH_MAX
    for bad in ("", "x" * (ID_LENGTH_MAX + 1), "ä", "a\x00b"):
        with pytest.raises(BadSignature):
            taken(bad)
    with pytest.raises(BadSignature):
        headers = signed(SignatureProfile.STANDARD) | {"webhook-id": "msg_2"}
        verify(SignatureProfile.STANDARD, [SECRET], headers, BODY, now_s=NOW)


def test_one_of_several_signatures_is_enough() -> None:
    standard = signed(SignatureProfile.STANDARD)
    old = signed(SignatureProfile.STANDARD, secret=OTHER)["webhook-signature"]
    both = standard | {"webhook-signature": f"{old} v2,x {standard['webhook-signature']}"}
    verify(SignatureProfile.STANDARD, [SECRET], both, BODY, now_s=NOW)

    stamp, _, good = signed(SignatureProfile.STRIPE)["Stripe-Signature"].partition(",")
    header = f"{stamp},v0={good[3:]},v1={'0' * 64}, {good}"
    verify(SignatureProfile.STRIPE, [SECRET], {"Stripe-Signature": header}, BODY, now_s=NOW)
    for bad in (f"{stamp},v0={good[3:]}", good, f"{stamp},{stamp},{good}", f"t=,{good}", f"t=١,{good}", f"t=-1,{good}"):
        with pytest.raises(BadSignature):
            verify(SignatureProfile.STRIPE, [SECRET], {"Stripe-Signature": bad}, BODY, now_s=NOW)


def test_the_signatures_are_those_that_the_providers_document() -> None:
    def hexed(signed: bytes) -> str:
        return hmac.new(SECRET, signed, "sha256").hexdigest()

    stripe = {"Stripe-Signature": f"t=1700000000,v1={hexed(b'1700000000.' + BODY)}"}
    assert signed(SignatureProfile.STRIPE) == stripe
    assert signed(SignatureProfile.GITHUB) == {
        "X-Hub-Signature-256": f"sha256={hexed(BODY)}",
        "X-GitHub-Delivery": "msg_1",
    }
    assert sign(SignatureProfile.GITHUB, SECRET, BODY, now_s=NOW) == {"X-Hub-Signature-256": f"sha256={hexed(BODY)}"}
    assert sign(SignatureProfile.PLAIN, SECRET, BODY, now_s=NOW, header="X-Mine") == {"X-Mine": hexed(BODY)}


def test_a_plain_signature_stands_in_the_header_that_was_chosen() -> None:
    digest = hmac.new(SECRET, BODY, "sha256").hexdigest()
    for text in (digest, digest.upper(), f"sha256={digest}", f" {digest} "):
        verify(SignatureProfile.PLAIN, [SECRET], {"x-MINE": text}, BODY, now_s=NOW, header="X-Mine")
    with pytest.raises(BadSignature):
        verify(SignatureProfile.PLAIN, [SECRET], {"X-Signature": digest}, BODY, now_s=NOW, header="X-Mine")


def test_githubs_own_example() -> None:
    headers = {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    verify(SignatureProfile.GITHUB, [b"It's a Secret to Everybody"], headers, b"Hello, World!", now_s=NOW)
    with pytest.raises(BadSignature):
        bare = {"X-Hub-Signature-256": headers["X-Hub-Signature-256"].removeprefix("sha256=")}
        verify(SignatureProfile.GITHUB, [b"It's a Secret to Everybody"], bare, b"Hello, World!", now_s=NOW)


def test_a_secret_is_read_as_its_profile_writes_it() -> None:
    text = "whsec_" + base64.b64encode(SECRET).decode()
    assert secret_of(SignatureProfile.STANDARD, text) == SECRET
    assert secret_of(SignatureProfile.STRIPE, text) == text.encode()
    assert secret_of(SignatureProfile.PLAIN, SECRET.decode()) == SECRET
    for profile in PROFILES:
        with pytest.raises(BadInput) as caught:
            secret_of(profile, "too-short")
        assert "too-short" not in str(caught.value)
