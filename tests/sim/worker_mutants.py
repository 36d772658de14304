"""Planted flaws in the worker, which the simulation runs as it is, and in the bells that wake it."""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import Any

from tests.sim.mutants import Patch, mutant
from windlass.core import retry_job
from windlass.core.bell import Bell
from windlass.core.birth import Birth, born
from windlass.core.plan import Node, NodeKind
from windlass.core.states import StepState
from windlass.store.pool import Ringing
from windlass.worker.outside import Outside
from windlass.worker.runner import Runner
from windlass.worker.settler import Settler
from windlass.worker.worker import Worker


def change_code(patch: Patch, owner: type, name: str, *changes: tuple[str, str]) -> None:
    """Change a method; a change that no longer applies is an error, not a mutant that nothing can catch."""
    text = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    for old, new in changes:
        assert old in text, f"{owner.__name__}.{name} has no {old!r}"
        text = text.replace(old, new)
    made: dict[str, Any] = {}
    exec(compile(text, f"<{name}, changed>", "exec", dont_inherit=True, flags=_ANNOTATIONS), _globals(owner), made)
    patch.setattr(owner, name, made[name])


# from __future__ import annotations, as in every module.
_ANNOTATIONS = 0x1000000


def _globals(owner: type) -> dict[str, Any]:
    return vars(sys.modules[owner.__module__])


@mutant()
def a_report_is_dropped_when_the_connection_breaks(patch: Patch) -> None:
    dropped = "self._outages.note(error)\n            return Settled((False,) * len(batch), frozenset(), False)"
    change_code(patch, Settler, "_until_taken", ("self._outages.note(error)", dropped))


@mutant()
def a_worker_keeps_claiming_under_the_lease_that_it_lost(patch: Patch) -> None:
    patch.setattr(Worker, "_on_lost", lambda *_: None)


@mutant()
def an_attempt_that_ends_while_it_is_asked_for_runs_again(patch: Patch) -> None:
    change_code(patch, Runner, "begin", (" or attempt.key in over", ""))


@mutant()
def a_worker_that_ends_forgets_one_step(patch: Patch) -> None:
    change_code(patch, Runner, "stop_all", ("list(self.running.values())", "list(self.running.values())[1:]"))


@mutant()
def a_cancelled_attempt_goes_on(patch: Patch) -> None:
    change_code(patch, Worker, "_check", ("self._runner.stop(attempt, Why.NOT_OURS)", "pass"))


@mutant(has_poison=True)
def a_suspect_runs_beside_other_steps(patch: Patch) -> None:
    change_code(patch, Worker, "_claim_on", ("self.ready.is_set() and not self.running", "self.ready.is_set()"))


@mutant(is_outer=True)
def an_attempt_whose_claim_was_undone_fails_its_step(patch: Patch) -> None:
    change_code(patch, Outside, "_start", ("except NotCurrent as error", "except ZeroDivisionError as error"))


@mutant()
def a_bell_is_rung_before_its_commit(patch: Patch) -> None:
    """Its hearers look, find nothing, and wait for their slow look."""

    def ring(self: Ringing, *bells: Bell) -> None:
        self._bells += bells
        self.ring_out()

    patch.setattr(Ringing, "ring", ring)


@mutant(is_outer=True)
def a_hold_is_lost_in_a_rerun(patch: Patch) -> None:
    """A step that must stand in line for its place is queued at once when its job is run again."""

    def hasty(node: Node, **given: Any) -> Birth:
        birth = born(node, **given)
        is_plain = node.kind is NodeKind.TASK and node.when is None
        is_held = is_plain and node.is_slotted and (given.get("is_child") or node.each is None)
        return Birth(StepState.QUEUED) if is_held and birth.state is StepState.READY else birth

    patch.setattr(retry_job, "born", hasty)
