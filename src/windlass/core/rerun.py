"""Runs a job again from one of its steps, with other inputs if requested: decides which steps run and which are kept.

The step and its descendants start again. Of the other steps, done steps are kept with their outputs and unfinished
steps run, as in a retry. A preview is computed from the same rows that the new job then starts with.

An approval is used once. So the approvals that a restarted step depends on are asked for again, and all that depends on
them runs again. A retry goes on under the approvals of its job: it does the same work, which is not done yet.

A kept step is stale if its arguments, condition or items read a changed input: its output was made from the old value.
A step that reads a stale step's output is stale too. The new job keeps stale steps, and reports them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windlass.core.errors import BadInput
from windlass.core.expression import nearest
from windlass.core.plan import NodeKind, Plan
from windlass.core.retry_job import Kept, Restart
from windlass.core.signal import same
from windlass.core.states import STEP_DONE, StepState
from windlass.core.template import NodeTemplate, Template, plan_templates

_CHILD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[([0-9]{1,9})\]")
_SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class Again:
    """The effect of running a job again. Steps are listed by name, in the order of the plan.

    A fan-out that keeps some of its children still runs again; `kept_children` counts the children it keeps.
    """

    run_again: tuple[str, ...]
    kept: tuple[str, ...]
    stale: tuple[str, ...]
    inputs_changed: tuple[str, ...]
    kept_children: Mapping[str, int]


def changed_inputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the inputs whose values differ."""
    names = sorted({*before, *after})
    return tuple(n for n in names if n not in before or n not in after or not same(before[n], after[n]))


def restart_from(plan: Plan, old: Iterable[Kept], step: str | None, changed: Sequence[str]) -> Restart:
    """Return the steps that start again for a re-run from `step` (`render` or `render[3]`), or for a retry if None."""
    nodes: frozenset[int] = frozenset()
    child = None
    if step is not None:
        no, index = _place(plan, step)
        nodes = plan.descendants[no]
        if index is None:
            nodes |= {no}
        else:
            child = (no, index)
            _check_child(step, child, old)
    # An incomplete fan-out would continue where it was. With changed inputs its items may differ, so it starts again.
    half = {row.node for row in old if row.fan is not None and row.fan != row.fanned} if changed else ()
    return Restart(_asked_again(plan, nodes | frozenset(half), child, is_changed=bool(changed)), child)


def _asked_again(
    plan: Plan, nodes: frozenset[int], child: tuple[int, int] | None, *, is_changed: bool
) -> frozenset[int]:
    """Add the approvals that these steps depend on, and what depends on those: an approval is used once.

    With changed inputs every approval is asked for again: it was bound to the old ones.
    """
    if not plan.has_approvals:
        return nodes
    approvals = [no for no, node in enumerate(plan.nodes) if node.kind is NodeKind.APPROVAL]
    found = nodes.union(approvals) if is_changed else nodes
    while True:
        running = found if child is None else found | {child[0]}
        more = found.union(no for no in approvals if not running.isdisjoint(plan.descendants[no]))
        more = more.union(*(plan.descendants[no] for no in approvals if no in more and no not in nodes))
        if more == found:
            return found
        found = more


def again(plan: Plan, rows: Sequence[Kept], changed: Sequence[str]) -> Again:
    """Describe the steps that a job with these rows runs and keeps."""
    static, children = rows[: len(plan.nodes)], rows[len(plan.nodes) :]
    is_kept = [row.state in STEP_DONE for row in static]
    partly: dict[str, int] = {}
    for row in children:
        if not is_kept[row.node] and row.state is StepState.COMPLETED:
            name = plan.nodes[row.node].name
            partly[name] = partly.get(name, 0) + 1
    names = [node.name for node in plan.nodes]
    return Again(
        run_again=tuple(name for name, kept in zip(names, is_kept, strict=True) if not kept),
        kept=tuple(name for name, kept in zip(names, is_kept, strict=True) if kept),
        stale=_stale(plan, is_kept, partly, frozenset(changed)),
        inputs_changed=tuple(changed),
        kept_children=partly,
    )


def _place(plan: Plan, step: str) -> tuple[int, int | None]:
    if step in plan.number:
        return plan.number[step], None
    found = _CHILD.fullmatch(step)
    if found is None or found[1] not in plan.number:
        told = f"{plan.recipe} has no step {step[:_SHOWN_MAX]!r}"
        hint = nearest(step.partition("[")[0][:_SHOWN_MAX], plan.number)
        raise _bad_step(told, hint[0].upper() + hint[1:])
    return plan.number[found[1]], int(found[2])


def _check_child(step: str, child: tuple[int, int], old: Iterable[Kept]) -> None:
    if child not in {(row.node, row.index) for row in old}:
        name = step.partition("[")[0]
        raise _bad_step(f"the job never had {step}", f"Name the step alone, {name}, to run all of it again")


def _bad_step(told: str, remedy: str) -> BadInput:
    return BadInput(told, errors=(("/from_step", told),), remedy=remedy)


def _stale(plan: Plan, is_kept: Sequence[bool], partly: Mapping[str, int], changed: frozenset[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    if changed:
        for node, kept, templates in zip(plan.nodes, is_kept, plan_templates(plan).nodes, strict=True):
            has_old = kept or node.name in partly
            # Nodes come in the order of the plan, so the steps that this node reads were checked before.
            if has_old and any(_reads(one, changed) or one.steps & found.keys() for one in _all(templates)):
                found[node.name] = None
    return tuple(found)


def _all(templates: NodeTemplate) -> list[Template]:
    every = (templates.with_, templates.when, templates.each, templates.concurrency)
    return [one for one in every if one is not None]


def _reads(template: Template, changed: frozenset[str]) -> bool:
    return template.uses_all_inputs or bool(template.inputs & changed)
