"""The parser of streams: the same frames, wherever the bytes are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.client import frames
from windlass.client.frames import Frame, Frames
from windlass.core.errors import Broken

STREAM = (
    "retry: 2000\nevent: open\nid: 3\ndata: {}\n\n: heartbeat\n\n"
    'event: step\nid: 4\ndata: {"a":\ndata: "ü"}\n\r\nevent: bye\r\rdata:two\r\ndata:  lines\r\n\r\n'
).encode()
FOUND = [
    Frame("open", "3", "{}", 2000),
    Frame("step", "4", '{"a":\n"ü"}'),
    Frame("bye"),
    Frame("message", None, "two\n lines"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_it_does_not_matter_where_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    parser = Frames()
    found = [f for a, b in itertools.pairwise(places) for f in parser.feed(STREAM[a:b])]
    assert found == FOUND


def test_byte_by_byte_is_the_same_too() -> None:
    parser = Frames()
    assert [f for byte in STREAM for f in parser.feed(bytes([byte]))] == FOUND


def test_a_mark_at_the_beginning_and_unknown_fields_are_left_alone() -> None:
    assert Frames().feed(b"\xef\xbb\xbfdata: x\nfoo: y\nretry: soon\nid: a\x00b\nlonely\n\n") == [Frame(data="x")]


def test_what_is_not_complete_is_not_given() -> None:
    parser = Frames()
    assert parser.feed(b"event: job\nid: 7\ndata: {}\n") == []
    assert parser.feed(b"\n") == [Frame("job", "7", "{}")]


def test_a_frame_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FRAME_MAX_BYTES", 100)
    parser = Frames()
    for _ in range(9):
        parser.feed(b"data: 4567\n")
    with pytest.raises(Broken):
        parser.feed(b"data: 4567\n")
        parser.feed(b"data: 4567\n")


@given(st.one_of(st.binary(max_size=300), st.text("abdeit: \r\n0", max_size=200).map(str.encode)))
def test_no_bytes_break_it_and_how_they_are_cut_does_not_matter(noise: bytes) -> None:
    whole, by_byte = Frames(), Frames()
    one_by_one = [frame for at in range(len(noise)) for frame in by_byte.feed(noise[at : at + 1])]
    assert whole.feed(noise) == one_by_one
