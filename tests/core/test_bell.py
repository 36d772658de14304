"""Bells: what is written can be read, is short enough, and merging loses nothing."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from windlass.core import bell as bells
from windlass.core.bell import (
    BY_CHANNEL,
    KINDS,
    PAYLOAD_BYTES_MAX,
    Bell,
    JobsCancelled,
    JobsEnded,
    KeyRevoked,
    SessionEnded,
    ToldOutput,
    WorkQueued,
    merged,
    parse,
    payloads,
)  # fmt: skip

QUEUES = st.lists(st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}!?", fullmatch=True), unique=True, max_size=300)
IDS = st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number))
JOBS = st.lists(IDS, unique=True, max_size=600).map(tuple)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=200)
TOLD = st.builds(ToldOutput, st.integers(0, 10_000), st.text(st.characters(codec="ascii"), max_size=500))
BELLS: st.SearchStrategy[Bell] = st.one_of(
    QUEUES.map(lambda queues: WorkQueued(tuple(sorted(queues)))),
    JOBS.map(JobsEnded),
    st.builds(lambda job, told: JobsEnded((job,), told), IDS, TOLD),
    JOBS.map(JobsCancelled),
    st.builds(KeyRevoked, st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True), TEXTS),
    TEXTS.map(SessionEnded),
    st.sampled_from([kind() for kind in KINDS]),
)


def said(found: list[Bell]) -> set[object]:
    """Every single thing that bells say, however they are split or merged."""
    news: set[object] = set()
    for bell in found:
        match bell:
            case WorkQueued(queues) if queues:
                news |= {(WorkQueued, queue) for queue in queues}
            case JobsEnded(jobs, None) | JobsCancelled(jobs) if jobs:
                news |= {(type(bell), job) for job in jobs}
            case _:
                news.add(bell)
    return news


@given(BELLS)
def test_what_is_written_can_be_read(bell: Bell) -> None:
    texts = payloads(bell)
    parts = [parse(bell.channel, text) for text in texts]
    assert said(parts) == said([bell])
    assert len(texts) > 1 or parts == [bell]
    assert all(len(text.encode()) <= PAYLOAD_BYTES_MAX for text in texts)


@given(st.lists(BELLS, max_size=20))
def test_merging_loses_nothing_and_repeats_nothing(found: list[Bell]) -> None:
    after = merged(found)
    everything = {type(bell) for bell in found if bell == type(bell)()}
    # A bell without particulars says all that others of its kind could, but for an output that is told.
    lost = said(found) - said(after)
    assert {news[0] if isinstance(news, tuple) else type(news) for news in lost} <= everything
    assert not said(after) - said(found)
    assert len(after) == len(set(after))
    assert merged(after) == after or set(merged(after)) == set(after)


def test_every_kind_has_a_channel_of_its_own() -> None:
    assert len(BY_CHANNEL) == len(KINDS)


def test_a_caller_with_an_endless_name_makes_listeners_look_at_everything() -> None:
    assert payloads(SessionEnded("x" * 9_000)) == [""]


def test_only_small_plain_outputs_are_told() -> None:
    assert bells.told(1, "{}") == ToldOutput(1, "{}")
    assert bells.told(1, "x" * 501) is None
    assert bells.told(1, '"ä"') is None


def test_the_names_of_many_queues_are_split_over_several_bells() -> None:
    queues = tuple(f"{'q' * 100}{i}" for i in range(200))
    texts = payloads(WorkQueued(queues))
    assert len(texts) > 1 and all(len(text) <= 8_000 for text in texts)
    assert [queue for text in texts for queue in parse(WorkQueued.channel, text).queues] == list(queues)  # type: ignore[union-attr]


def test_particulars_that_a_kind_does_not_have_are_ignored() -> None:
    assert parse(bells.RouteDue.channel, "from a later release") == bells.RouteDue()
