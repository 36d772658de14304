"""Planted flaws in approvals: who may vote, how votes are counted, and what is looked at again when they suffice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from tests.sim.mutants import Patch, mutant
from windlass.core import ballot, route
from windlass.core.approval import ApprovalState, Subject, Use, Vote, Voter
from windlass.core.draft import Draft, Step
from windlass.core.graph import complete
from windlass.core.wait import Wait
from windlass.engine import approvals
from windlass.engine.approvals import Cast


@mutant(is_asking=True)
def there_is_no_second_look_after_an_approval(patch: Patch) -> None:
    patch.setattr(approvals, "second_look", lambda *given: Use.USE)


@mutant(is_asking=True)
def the_digest_is_over_all_but_the_labels(patch: Patch) -> None:
    def digest(self: Subject) -> str:
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "labels"}
        return hashlib.sha256(json.dumps(named, sort_keys=True, default=dict).encode()).hexdigest()

    patch.setattr(Subject, "digest", property(digest))


@mutant(is_asking=True)
def an_approval_is_used_twice(patch: Patch) -> None:
    patch.setattr(approvals, "_check", lambda row, cast: None)
    patch.setattr(ballot, "waits_for", lambda draft, no, id: True)


@mutant(is_asking=True)
def votes_are_counted_by_key(patch: Patch) -> None:
    vote = approvals.vote

    async def by_key(db: Any, cast: Cast) -> ApprovalState:
        person = replace(cast.voter, caller=f"{cast.voter.caller}#{cast.key_id}")
        return await vote(db, replace(cast, voter=person))

    patch.setattr("windlass.testing.sim.asking.vote", by_key)


@mutant(is_asking=True)
def the_requester_may_vote(patch: Patch) -> None:
    def why_not(voter: Voter, requester: str, above: Any, terms: Any, waited_s: float) -> str | None:
        return None if terms.may_vote(voter.caller, voter.roles, waited_s) else "not among the people"

    patch.setattr(approvals, "why_not", why_not)


@mutant(is_asking=True)
def one_vote_is_enough(patch: Patch) -> None:
    def tally(votes: Iterable[Vote], need: int) -> ApprovalState:
        return ApprovalState.APPROVED

    patch.setattr(approvals, "tally", tally)


@mutant(is_asking=True)
def an_approval_that_expires_is_a_yes(patch: Patch) -> None:
    def expire(draft: Draft, step: Step, wait: Wait) -> None:
        complete(draft, step, '{"approved":true,"by":[],"reasons":[],"at":""}')

    patch.setattr(route, "_expire", expire)
