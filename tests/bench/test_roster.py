import re

import pytest

from bench.counter import Counter
from bench.roster import PEERS, entry
from bench.venvs import PINS


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_package_of_a_peer_is_pinned_and_names_no_address(peer):
    lines = (PINS / f"{peer.venv}.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    for pin in pins:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin), pin


def test_an_unknown_peer_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no peer is called 'rabbit'; known: pgqueuer"):
        entry("rabbit")


def test_ticks_are_counted_over_all_openings_of_the_counter(tmp_path):
    path = tmp_path / "counter.bin"
    ours, theirs = Counter(path), Counter(path)
    for _ in range(3):
        ours.tick()
    assert theirs.total() == 3
    assert theirs.last_ns() > 0
    theirs.wait(3, limit_s=1)


def test_bodies_that_never_run_are_told_of(tmp_path):
    with pytest.raises(TimeoutError, match="0 of 1 bodies"):
        Counter(tmp_path / "counter.bin").wait(1, limit_s=0)
