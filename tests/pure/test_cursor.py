"""Where a reader stands, in pages and in the feed."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadRequest
from windlass.pure.cursor import (
    ORIGIN,
    FeedAt,
    Place,
    arrange,
    below,
    decode_page,
    encode_page,
    feed_id,
    parse_feed_id,
    rest,
)

J, K, L = (UUID(int=n) for n in (1, 2, 3))


def own(row: FeedAt) -> FeedAt:
    return row


def told(rows: list[FeedAt], start: FeedAt = ORIGIN) -> list[FeedAt]:
    return [row for row, _ in arrange(rows, own, start)]


def is_whole(rows: list[FeedAt], cut: int) -> bool:
    """Whether of no job an event is before the cut while an earlier one is not."""
    return not any(a.job_id == b.job_id and a.seq < b.seq and a.txid >= cut > b.txid for a in rows for b in rows)


@st.composite
def feeds(draw: st.DrawFn) -> list[FeedAt]:
    """Events of three jobs; each transaction writes to some of them, in an order of commits that is not its own."""
    seqs: dict[UUID, int] = defaultdict(int)
    rows = []
    for txid in draw(st.permutations(range(1, draw(st.integers(1, 9)) + 1))):
        for job in draw(st.lists(st.sampled_from([J, K, L]), min_size=1, max_size=4)):
            seqs[job] += 1
            rows.append(FeedAt(txid, job, seqs[job]))
    return sorted(rows)


def test_events_that_are_in_order_stay_where_they_are() -> None:
    rows = [FeedAt(7, J, 1), FeedAt(7, K, 1), FeedAt(8, J, 2)]
    assert arrange(rows, own, ORIGIN) == [(row, Place(row)) for row in rows]


def test_a_job_is_told_in_its_own_order() -> None:
    late, other, early = FeedAt(100, J, 6), FeedAt(101, K, 2), FeedAt(105, J, 5)
    assert arrange([late, other, early], own, FeedAt(99, K, 1)) == [
        (early, Place(FeedAt(99, K, 1), late)),
        (other, Place(FeedAt(99, K, 1), other)),
        (late, Place(early)),
    ]


@given(feeds())
def test_every_event_is_told_once_and_each_job_in_order(rows: list[FeedAt]) -> None:
    order = told(rows)
    assert sorted(order) == rows
    for job in (J, K, L):
        seqs = [row.seq for row in order if row.job_id == job]
        assert seqs == sorted(seqs)


@given(feeds(), st.data())
def test_a_reader_who_comes_back_is_given_exactly_the_rest(rows: list[FeedAt], data: st.DataObject) -> None:
    cut = data.draw(st.sampled_from([cut for cut in range(12) if is_whole(rows, cut)]))
    first = arrange([row for row in rows if row.txid < cut], own, ORIGIN)
    assert [row for row, _ in first] == told(rows)[: len(first)], "a later part changes nothing of an earlier one"
    for number, (_, place) in enumerate(first, 1):
        seen = [row for row in rows if row > place.at]
        assert [row for row, _ in rest(seen, own, place)] == told(rows)[number:]


@given(feeds())
def test_a_place_means_the_same_to_a_reader_of_fewer_jobs(rows: list[FeedAt]) -> None:
    order = told(rows)
    for number, (_, place) in enumerate(arrange(rows, own, ORIGIN), 1):
        seen = [row for row in rows if row > place.at and row.job_id != J]
        wanted = [row for row in order[number:] if row.job_id != J]
        assert [row for row, _ in rest(seen, own, place)] == wanted


@given(feeds())
def test_slots_grow(rows: list[FeedAt]) -> None:
    slots = [place.slot for _, place in arrange(rows, own, ORIGIN)]
    assert slots == sorted(set(slots)) == rows


def test_below_is_after_all_of_the_transaction_before() -> None:
    assert FeedAt(6, UUID(int=2**128 - 1), 2**31 - 1) <= below(7) < FeedAt(7, UUID(int=0), 0)


@pytest.mark.parametrize("through", [None, FeedAt(7424, K, 9)])
def test_a_feed_id_is_read_as_it_was_written(through: FeedAt | None) -> None:
    place = Place(FeedAt(7421, J, 3), through)
    assert parse_feed_id(feed_id(12, place)) == (12, place)


def test_a_feed_id_looks_like_this() -> None:
    at = FeedAt(7421, J, 3)
    assert feed_id(1, Place(at)) == f"1.7421.{'0' * 31}1.3"
    assert feed_id(1, Place(at, FeedAt(7422, K, 1))) == f"1.7421.{'0' * 31}1.3+7422.{'0' * 31}2.1"


@pytest.mark.parametrize(
    "text",
    [
        "", "7", "1.2.3", f"1.7.{J.hex}", f"1.7.{J.hex}.3+", f"1.7.{J.hex}.3+2", f"1.7.{J.hex}.-3", f"1.7.{J}.3",
        f"1.{2**64}.{J.hex}.3", f"1.7.{J.hex}.{2**31}", f"{2**31}.7.{J.hex}.3", f"1.7.{J.hex}.٣",
        f"1.7.{J.hex}.3+6.{J.hex}.3", f"1.7.{J.hex}.3+7.{J.hex}.3", f"1.7.{J.hex}.3\n", "1" * 10_000,
    ],
)  # fmt: skip
def test_what_is_no_feed_id_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="not an event id"):
        parse_feed_id(text)


@given(st.text(max_size=60))
def test_a_page_cursor_is_read_as_it_was_written(position: str) -> None:
    text = encode_page("jobs", "d1", position)
    assert decode_page(text, "jobs", "d1") == position
    assert text.isascii()
    assert "=" not in text


@pytest.mark.parametrize("given_for", [("steps", "d1"), ("jobs", "d2")])
def test_a_cursor_is_good_for_its_own_list_and_filter_only(given_for: tuple[str, str]) -> None:
    with pytest.raises(BadRequest, match="another list or filter"):
        decode_page(encode_page("jobs", "d1", "x"), *given_for)


@pytest.mark.parametrize("text", ["", "?", "a", "_w", "YWJj", "é", "A" * 2_000])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="not a cursor"):
        decode_page(text, "jobs", "d1")
