"""What a stream shows has been scanned together with what follows, however its text is cut into chunks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.policy.content import ScanWants
from windlass.policy.scan.finding import MARKER
from windlass.policy.scan.scanners import Scanners
from windlass.policy.scan.stream import HELD_BYTES_MAX, HOLD_BYTES, StreamScanner

TOKEN = "ghp_" + "a8Kd92LmQx7Zt3Vb6Nw1Ye5Rj0Hs4Pf9Gc2U"
SCANNERS = Scanners()
WANTS = ScanWants(frozenset({"secret", "pii"}))
TEXT = f"Dear é, the token is {TOKEN}; the password = 'Tr0ub4dor&3x' and the card 4242 4242 4242 4242. " + "Bye. " * 40
SAFE = f"Dear é, the token is {MARKER}; the password = '{MARKER}' and the card {MARKER}. " + "Bye. " * 40


def streamed(chunks: list[str], hold_bytes: int = HOLD_BYTES) -> tuple[list[str], StreamScanner]:
    stream = StreamScanner(SCANNERS, WANTS, hold_bytes=hold_bytes)
    return [*(stream.feed(chunk) for chunk in chunks), stream.close()], stream


@given(st.lists(st.integers(1, len(TEXT) - 1), max_size=12), st.sampled_from([80, 200, HOLD_BYTES]))
@settings(max_examples=150, deadline=None)
def test_a_text_is_redacted_however_it_is_cut(cuts: list[int], hold_bytes: int) -> None:
    places = [0, *sorted(set(cuts)), len(TEXT)]
    chunks = [TEXT[start:end] for start, end in pairwise(places)]
    parts, stream = streamed(chunks, hold_bytes)
    assert "".join(parts) == SAFE
    assert stream.has_found


def test_one_character_at_a_time_is_enough() -> None:
    parts, stream = streamed(list(TEXT), 100)
    assert "".join(parts) == SAFE
    assert {"github-token", "card-number", "assigned-secret"} <= stream.rules


def test_clean_text_is_shown_as_it_is_but_for_the_held_end() -> None:
    text = "plain words, ünd öthers. " * 1_000
    parts, stream = streamed([text[at : at + 700] for at in range(0, len(text), 700)])
    assert "".join(parts) == text
    assert len("".join(parts[:-1]).encode()) >= len(text.encode()) - HOLD_BYTES - 4
    assert not stream.has_found


def test_a_secret_that_is_longer_than_the_held_end_is_not_shown() -> None:
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj" for _ in range(120))
    pem = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    text = f"the key: {pem} and more"
    parts, _ = streamed([text[at : at + 500] for at in range(0, len(text), 500)])
    shown = "".join(parts)
    assert "MIIEvQ" not in shown
    assert shown.startswith(f"the key: {MARKER}") and shown.endswith(" and more")


def test_a_match_without_end_is_replaced_and_the_stream_goes_on() -> None:
    head = "-----BEGIN PRIVATE KEY-----\n"
    chunks = [head, *["QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo3ODkw" * 100] * (HELD_BYTES_MAX // 2_000)]
    stream = StreamScanner(SCANNERS, WANTS)
    shown = [stream.feed(chunk) for chunk in chunks]
    assert any(MARKER in part for part in shown)
    assert "QUJDREVG" not in "".join(shown[: HELD_BYTES_MAX // 4_100])
