"""Running a job again from one of its steps, with other inputs if wished: what runs again and what is kept.

The step, and everything that depends on it, begins afresh. Of the rest, what is done is kept with its output and what
is not runs, as in a retry. What is told beforehand is read off the very rows that the new job then starts with.

A kept step whose arguments, condition or items read an input that has changed is stale: its output was made from
what the input was before. So is one that reads a stale step's output. It is kept all the same, and told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windlass.core.errors import BadInput
from windlass.core.expression import nearest
from windlass.core.plan import Plan
from windlass.core.retry_job import Kept, Restart
from windlass.core.signal import same
from windlass.core.states import STEP_DONE, StepState
from windlass.core.template import NodeTemplate, Template, plan_templates

_CHILD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[([0-9]{1,9})\]")
_SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class Again:
    """What a new job would do. Steps by name, in the order of the plan.

    A fan-out that keeps some of its children runs again all the same; `kept_children` has how many it keeps.
    """

    run_again: tuple[str, ...]
    kept: tuple[str, ...]
    stale: tuple[str, ...]
    inputs_changed: tuple[str, ...]
    kept_children: Mapping[str, int]


def changed_inputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the inputs that are not what they were."""
    names = sorted({*before, *after})
    return tuple(n for n in names if n not in before or n not in after or not same(before[n], after[n]))


def restart_from(plan: Plan, old: Iterable[Kept], step: str | None, changed: Sequence[str]) -> Restart:
    """What begins afresh when a job runs again from this step, `render` or `render[3]`; None is what a retry does."""
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
    # A fan-out that never got all its children goes on where it was, which is of no use if its items may be others.
    half = {row.node for row in old if row.fan is not None and row.fan != row.fanned} if changed else ()
    return Restart(nodes | frozenset(half), child)


def again(plan: Plan, rows: Sequence[Kept], changed: Sequence[str]) -> Again:
    """What a job that starts with these rows runs, and what it has already."""
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
            # In the order of the plan, so what it reads was looked at before.
            if has_old and any(_reads(one, changed) or one.steps & found.keys() for one in _all(templates)):
                found[node.name] = None
    return tuple(found)


def _all(templates: NodeTemplate) -> list[Template]:
    every = (templates.with_, templates.when, templates.each, templates.concurrency)
    return [one for one in every if one is not None]


def _reads(template: Template, changed: frozenset[str]) -> bool:
    return template.uses_all_inputs or bool(template.inputs & changed)
