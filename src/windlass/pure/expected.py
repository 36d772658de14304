"""Finds the parts of an event's body that a recipe reads.

Only expressions are searched. A handler that gets the whole body may read any key, so the result also names the steps
that get the whole body.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windlass.core.expression import Path
from windlass.core.plan import Plan
from windlass.core.template import Template, plan_templates

OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Expected:
    """The keys that expressions read, and the readers of the whole body: steps, or `output` for the job's output.

    `is_condition`: a step's condition is the body itself, so the body must be true or false.
    """

    keys: tuple[str, ...]
    given_to: tuple[str, ...]
    is_condition: bool


def expected_of(plan: Plan, no: int) -> Expected:
    """Return what the plan reads of the result of this node, which waits for an event."""
    node = plan.nodes[no]
    root: Path = ("steps", node.name, "outputs")
    keys: dict[str, None] = {}
    given: dict[str, None] = {}
    is_condition = False
    for place, template, is_when in _templates(plan):
        for path in template.paths:
            if path[:3] != root:
                continue
            rest = path[3:]
            # The result of a fan-out is a list of bodies.
            if node.each is not None and rest and isinstance(rest[0], int):
                rest = rest[1:]
            if rest and isinstance(rest[0], str):
                keys[rest[0]] = None
            elif not rest:
                given[place] = None
                is_condition = is_condition or (is_when and path in template.whole and node.each is None)
    return Expected(tuple(keys), tuple(given), is_condition)


def _templates(plan: Plan) -> Iterator[tuple[str, Template, bool]]:
    compiled = plan_templates(plan)
    for node, one in zip(plan.nodes, compiled.nodes, strict=True):
        for template in (one.with_, one.each, one.concurrency):
            if template is not None:
                yield node.name, template, False
        if one.when is not None:
            yield node.name, one.when, True
    yield OUTPUT, compiled.output, False
