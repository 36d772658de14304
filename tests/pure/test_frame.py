"""Frames of server-sent events."""

from __future__ import annotations

from windlass.pure.frame import frame


def test_a_frame_has_an_event_an_id_and_a_line() -> None:
    assert frame("patch", "7", b"{}") == b"event: patch\nid: 7\ndata: {}\n\n"


def test_each_line_of_the_data_has_its_own_field() -> None:
    assert frame("patch", "7", b"a\nb") == b"event: patch\nid: 7\ndata: a\ndata: b\n\n"


def test_an_id_and_a_retry_are_sent_where_given() -> None:
    assert frame("open", None, b"{}", 500) == b"retry: 500\nevent: open\ndata: {}\n\n"
