"""Signatures as the reference library makes them, secrets, and what comes of a try."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from uuid import UUID

import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadInput
from windlass.core.states import JobState
from windlass.pure.webhook import (
    JITTER,
    RETRY_AFTER_S,
    Again,
    Dead,
    Delivered,
    after_try,
    delivery_id,
    parse_secret,
    sign,
    verify,
)

SECRET = bytes(range(32))
NOW = 1_700_000_000
BODY = '{"type":"job.completed","data":{"label":"größer"}}'.encode()


def text_of(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


def signed(body: bytes = BODY, at: int = NOW, secret: bytes = SECRET) -> dict[str, str]:
    return {"Webhook-Id": "m1", "WEBHOOK-TIMESTAMP": str(at), "webhook-signature": sign(secret, "m1", at, body)}


@given(
    st.binary(min_size=24, max_size=64),
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1),
    st.integers(0, 4_000_000_000),
    st.text(),
)
def test_a_signature_is_what_the_reference_library_makes(secret: bytes, id: str, at: int, body: str) -> None:
    theirs = standardwebhooks.Webhook(text_of(secret)).sign(id, datetime.fromtimestamp(at, UTC), body)
    assert sign(secret, id, at, body.encode("utf-8", "surrogatepass")) == theirs


def test_the_reference_library_takes_what_we_sign_now() -> None:
    at = int(datetime.now(UTC).timestamp())
    standardwebhooks.Webhook(text_of(SECRET)).verify(BODY, signed(at=at), json_parse=False)


@given(st.binary(min_size=24, max_size=64))
def test_a_secret_is_read_with_and_without_padding(secret: bytes) -> None:
    assert parse_secret(text_of(secret)) == secret
    assert parse_secret(text_of(secret).rstrip("=")) == secret


@pytest.mark.parametrize(
    "text",
    [
        "", "whsec_", "secret", text_of(bytes(23)), text_of(bytes(65)), "whsec_" + "!" * 40, text_of(SECRET)[6:],
        "WHSEC_" + text_of(SECRET)[6:], text_of(SECRET) + "\n", "whsec_" + "A" * 41, "whsec_" + "ä" * 40,
    ],
)  # fmt: skip
def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_secret(text)
    assert "whsec_" in str(caught.value)
    assert len(text) < 8 or text not in str(caught.value)


def test_a_signature_holds_for_its_body_its_time_and_its_secret() -> None:
    assert verify([SECRET], signed(), BODY, NOW)
    assert verify([bytes(32), SECRET], signed(), BODY, NOW)
    assert not verify([], signed(), BODY, NOW)
    assert not verify([bytes(32)], signed(), BODY, NOW)
    assert not verify([SECRET], signed(), BODY + b" ", NOW)
    assert not verify([SECRET], signed() | {"Webhook-Id": "m2"}, BODY, NOW)
    assert not verify([SECRET], signed() | {"WEBHOOK-TIMESTAMP": str(NOW + 1)}, BODY, NOW)


def test_one_of_several_signatures_is_enough() -> None:
    headers = signed()
    headers["webhook-signature"] = f"v1a,xyz {sign(bytes(32), 'm1', NOW, BODY)} {headers['webhook-signature']}"
    assert verify([SECRET], headers, BODY, NOW)


@pytest.mark.parametrize(("late_s", "is_taken"), [(300, True), (301, False), (-300, True), (-301, False)])
def test_an_old_or_an_early_one_is_refused(late_s: int, is_taken: bool) -> None:
    assert verify([SECRET], signed(), BODY, NOW + late_s) is is_taken


@pytest.mark.parametrize("missing", ["Webhook-Id", "WEBHOOK-TIMESTAMP", "webhook-signature"])
def test_a_missing_header_is_a_refusal(missing: str) -> None:
    assert not verify([SECRET], {k: v for k, v in signed().items() if k != missing}, BODY, NOW)


@pytest.mark.parametrize("stamp", ["", "now", "-1", "1e9", "١٢٣", "1" * 5000])
def test_a_time_that_is_none_is_a_refusal(stamp: str) -> None:
    assert not verify([SECRET], signed() | {"WEBHOOK-TIMESTAMP": stamp}, BODY, NOW)


def test_an_id_has_no_full_stop_and_is_the_same_on_every_try() -> None:
    job = UUID(int=7)
    assert delivery_id(job, JobState.COMPLETED) == f"{job}_COMPLETED"
    assert "." not in delivery_id(job, JobState.OUTPUT_QUARANTINED)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_2xx_is_a_delivery(status: int) -> None:
    assert after_try(8, status, None, 0.5) == Delivered()


@pytest.mark.parametrize("status", [101, 300, 301, 302, 307, 400, 401, 404, 413, 429, 500, 503])
def test_every_other_answer_is_a_failure(status: int) -> None:
    assert after_try(0, status, None, 0.5) == Again(5.0, f"http_{status}")


def test_the_schedule_is_gone_through_and_then_it_is_dead() -> None:
    outcomes = [after_try(n, None, "timeout", 0.5) for n in range(len(RETRY_AFTER_S))]
    assert outcomes == [Again(pytest.approx(wait), "timeout") for wait in RETRY_AFTER_S]
    assert after_try(len(RETRY_AFTER_S), None, "timeout", 0.5) == Dead("timeout")
    assert after_try(99, 500, None, 0.5) == Dead("http_500")


def test_gone_is_dead_at_once() -> None:
    assert after_try(0, 410, None, 0.5) == Dead("http_410")


@given(st.integers(0, 7), st.floats(0, 1, exclude_max=True))
def test_the_spread_moves_a_wait_by_a_tenth_at_most(failures: int, spread: float) -> None:
    outcome = after_try(failures, 500, None, spread)
    assert isinstance(outcome, Again)
    assert abs(outcome.after_s / RETRY_AFTER_S[failures] - 1) <= JITTER + 1e-9


@pytest.mark.parametrize(
    ("status", "asked_s", "after_s"),
    [(429, 60.0, 60.0), (503, 60.0, 60.0), (429, 1.0, 5.0), (503, 1e9, 72_000.0), (500, 60.0, 5.0), (429, None, 5.0)],
)
def test_a_receiver_may_ask_for_more_time_within_reason(status: int, asked_s: float | None, after_s: float) -> None:
    assert after_try(0, status, None, 0.5, asked_s) == Again(after_s, f"http_{status}")
