"""What a chaos run holds against its provider's journal, and who held a place at which commit."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from windlass.core.external import WorkKey
from windlass.providers.poller import GAVE_UP, NEVER_TOLD
from windlass.testing.chaos import lines
from windlass.testing.chaos.outside import PROVIDERS, Outside
from windlass.testing.chaos.reckoning import OutsideEvidence, account, complaints
from windlass.testing.fake_provider import Entry

JOB = UUID(int=1)
KEY = WorkKey(JOB, 0, 1)


def taken(key: WorkKey = KEY, id: str = "x1", **more: Any) -> Entry:
    return Entry("accepted", 1.0, id=id, key=str(key), **more)


def work(**more: Any) -> dict[str, Any]:
    row = {"job_id": JOB, "no": 0, "round": 1, "provider": "painter", "external_id": "x1", "state": "ENDED"}
    return {**row, "status": "SUCCEEDED", **more}


def event(id: str = "e1", state: str = "APPLIED", **more: Any) -> dict[str, Any]:
    row = {"provider": "painter", "id": id, "external_id": "x1", "state": state, "job_id": JOB, "no": 0, "round": 1}
    return {**row, **more}


def slot(
    xid: int, no: int, is_held: bool, provider: str = "painter", key: str = "", most: int = 1, takes: int = 1
) -> dict[str, Any]:
    row = {"job_id": JOB, "no": no, "provider": provider, "key": key, "most": most, "is_held": is_held}
    row |= {"places": 1, "takes": takes}
    return {**row, "xid": str(xid)}


def rules(heard: Any = None, **given: Any) -> list[str]:
    return [rule for rule, _ in complaints(OutsideEvidence(**given), heard or {})]


def test_one_piece_of_work_that_ended_is_well() -> None:
    told = Entry("webhook", 2.0, id="x1", event="e1", answer=200)
    assert rules(entries=[taken(), told], work=[work()], events=[event()]) == []


def test_two_pieces_of_work_for_one_key_are_seen() -> None:
    assert rules(entries=[taken(), taken(id="x2")], work=[work()]) == ["done twice", "misnamed"]


def test_work_that_nobody_wrote_down_is_seen() -> None:
    assert rules(entries=[taken()]) == ["unrecorded"]


def test_work_that_never_ended_is_seen() -> None:
    assert rules(entries=[taken()], work=[work(state="CANCELLING")]) == ["still open"]


def test_nameless_work_is_let_be_where_it_cannot_be_looked_up_and_nowhere_else() -> None:
    """A request that was cut off may have begun it; only a provider that looks its key up can say so."""
    given_up = {"state": "CANCELLING", "external_id": None, "status": f"{GAVE_UP}: {NEVER_TOLD}"}
    assert rules(work=[work() | given_up | {"provider": "singer"}]) == []
    assert rules(work=[work() | given_up | {"provider": "painter"}]) == ["still open"]
    assert rules(work=[work() | given_up | {"provider": "singer", "status": None}]) == ["still open"]
    assert rules(work=[work() | given_up | {"provider": "singer", "external_id": "x1"}]) == ["still open"]


def test_a_webhook_that_was_accepted_and_is_gone_is_seen() -> None:
    forged = Entry("webhook", 2.0, id="x1", event="e0", answer=401)
    gone = Entry("webhook", 2.0, id="x1", event="e1", answer=200)
    assert rules(entries=[taken(), forged, gone], work=[work()]) == ["webhook lost"]


def test_a_webhook_that_was_kept_and_never_applied_is_seen() -> None:
    assert rules(work=[work()], events=[event(state="WAITING")]) == ["webhook waits"]
    assert rules(work=[work()], events=[event(state="WAITING", external_id="of nobody")]) == []


def test_two_webhooks_that_settled_one_step_are_seen() -> None:
    assert rules(work=[work()], events=[event("e1"), event("e2"), event("e3", "LATE")]) == ["applied twice"]


def test_an_event_that_was_accepted_and_is_gone_is_seen() -> None:
    assert rules({(JOB, "s1"): "kept"}) == ["event lost"]


def test_two_events_that_completed_one_step_are_seen() -> None:
    both = [{"job_id": JOB, "id": id, "taken_no": 0} for id in ("s1", "s2")]
    assert rules({(JOB, "s1"): "delivered"}, signals=both) == ["taken twice"]


def test_what_is_left_in_the_lines_is_seen() -> None:
    assert rules(slots=1, waits=1) == ["held", "held"]


def test_too_many_holders_at_one_commit_are_seen() -> None:
    most = PROVIDERS["painter"][2]
    full = [slot(no, no, True) for no in range(most)]
    # One leaves and another comes, in one commit or in two.
    assert rules(lines=[*full, slot(50, 90, True), slot(50, 0, False)]) == []
    assert rules(lines=[*full, slot(50, 0, False), slot(51, 90, True)]) == []
    assert rules(lines=[*full, slot(50, 90, True), slot(51, 0, False)]) == ["over the limit"]


def test_too_many_holders_of_a_key_are_seen() -> None:
    rows = [slot(1, 1, True, key="k"), slot(2, 2, True, key="k")]
    assert lines.held_at_most(rows) == {"provider painter": 2, "key k": 2}
    assert rules(lines=rows) == ["over the limit"]


def test_each_holder_counts_with_its_amount() -> None:
    rows = [slot(no, no, True, key="k", most=5, takes=3) for no in (1, 2)]
    assert lines.held_at_most(rows) == {"provider painter": 2, "key k": 6}
    assert rules(lines=rows) == ["over the limit"]
    assert rules(lines=[rows[0], slot(2, 1, False, key="k", most=5, takes=3), rows[1]]) == []


def test_it_is_told_what_happened_outside() -> None:
    found = OutsideEvidence([taken(), Entry("fault", 1.0, way="start:lose")], [work()], [event()])
    assert "1 pieces of work" in account(found)[0]
    assert "1 APPLIED" in account(found)[1]


def test_the_providers_of_a_run_can_be_read(tmp_path: Any) -> None:
    from windlass.providers.registry import Registry

    outside = Outside(tmp_path, 1)
    outside.write_config()
    registry = Registry.load(tmp_path / "providers.yaml", outside.environment)
    assert {one.name: one.config.concurrency for one in registry} == {n: p for n, (_, _, p, _) in PROVIDERS.items()}
    assert all(one.adapter.honours_keys for one in registry)
