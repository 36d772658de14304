"""From a draft to a plan: the one door, whichever way a recipe was written.

Everything that can be known to be wrong before a job runs is refused here, with its place: names, arguments, inputs,
expressions, cycles, sizes. What comes out is canonical: steps are ordered by how deep they are in the graph and then
by name, needs are sorted, expressions have one spelling. So two drafts that mean the same have the same hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from windlass.core.errors import BadExpression, BadRecipe, TooLarge
from windlass.core.expression import nearest
from windlass.core.plan import Node, NodeKind, Plan
from windlass.core.retry import Retry
from windlass.core.template import Template, compile_expression, compile_template
from windlass.recipe.draft import Known, Parameters, RecipeDraft, StepDraft
from windlass.recipe.evaluator import Checked, shared_evaluator
from windlass.recipe.json_value import check_json
from windlass.recipe.schema import check_schema, input_names

STEPS_MAX = 1000
PLAN_BYTES_MAX = 1 << 20
ATTEMPTS_MAX = 1000

_STEP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A step and its compiled expressions."""

    draft: StepDraft
    with_: Template
    when: Template | None
    each: Template | None

    @property
    def place(self) -> str:
        return f"steps.{self.draft.name}"

    @property
    def parts(self) -> list[tuple[str, Template]]:
        found = [(f"{self.place}.with", self.with_)]
        if self.when is not None:
            found.append((f"{self.place}.when", self.when))
        if self.each is not None:
            found.append((f"{self.place}.each", self.each))
        return found

    @property
    def needs(self) -> tuple[str, ...]:
        referenced = frozenset[str]().union(*(template.steps for _, template in self.parts))
        return tuple(sorted(referenced | set(self.draft.after)))


def compile_plan(draft: RecipeDraft, known: Known | None = None) -> Plan:
    """Check a draft and make its plan; raises `BadRecipe`, `BadExpression` or `TooLarge` with place and reason."""
    check_name(draft.name, _LONG_NAME, "recipe", "a recipe's name")
    if not draft.steps:
        raise BadRecipe("a recipe needs at least one step", place="steps")
    if len(draft.steps) > STEPS_MAX:
        raise TooLarge(f"steps: {len(draft.steps):,} steps; at most {STEPS_MAX:,} are allowed")
    check_schema(draft.inputs_schema)
    steps = [_compile_step(step) for step in draft.steps]
    check_json(draft.output, "output")
    output = compile_template(draft.output, "output")
    _check_references(draft, steps, output)
    _check_runs(steps, known or Known())
    _check_types(steps, output)
    nodes = _ordered(steps)
    plan = Plan(
        recipe=draft.name,
        nodes=tuple(nodes),
        inputs_schema=draft.inputs_schema,
        output=output.tree,
        on_failure=draft.on_failure,
    )
    if len(plan.canonical) > PLAN_BYTES_MAX:
        raise TooLarge(f"a plan of {len(plan.canonical):,} bytes; at most {PLAN_BYTES_MAX:,} are allowed")
    return plan


def check_name(name: object, pattern: re.Pattern[str], place: str, what: str) -> None:
    """Refuse a name that could not be written in an expression or a command."""
    if not isinstance(name, str) or not pattern.fullmatch(name):
        more = "" if pattern is _STEP_NAME else ", dots and dashes"
        raise BadRecipe(f"{what} cannot be {name!r}", place=place, remedy=f"Use letters, digits and _{more}")


def check_arguments(given: Iterable[str], parameters: Parameters, place: str, what: str) -> None:
    """Refuse arguments that a handler or a recipe does not take, and the lack of those that it needs."""
    names = list(given)
    if not parameters.takes_any:
        for name in names:
            if name not in parameters.names:
                raise BadRecipe(
                    f"{what} takes no {name!r}",
                    place=f"{place}.{name}",
                    remedy=_sentence(nearest(name, parameters.names)),
                )
    missing = [name for name in parameters.names if name in parameters.required and name not in names]
    if missing:
        raise BadRecipe(f"{what} needs {', '.join(map(repr, missing))}", place=place)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _compile_step(draft: StepDraft) -> _Compiled:
    check_name(draft.name, _STEP_NAME, f"steps.{draft.name}", "a step's name")
    place = f"steps.{draft.name}"
    if draft.kind is not NodeKind.TIMER:
        what = "a recipe's name" if draft.kind is NodeKind.RECIPE else "a handler's name"
        check_name(draft.run, _LONG_NAME, f"{place}.{'recipe' if draft.kind is NodeKind.RECIPE else 'run'}", what)
        check_name(draft.queue, _LONG_NAME, f"{place}.queue", "a queue's name")
    elif draft.each is not None:
        raise BadRecipe("a timer cannot be a fan-out", place=f"{place}.each")
    if not isinstance(draft.with_ or {}, Mapping):
        raise BadRecipe("arguments are given by name", place=f"{place}.with", remedy="Write a mapping")
    check_json(draft.with_, f"{place}.with")
    return _Compiled(
        draft,
        compile_template(draft.with_ or {}, f"{place}.with"),
        None if draft.when is None else compile_expression(draft.when, f"{place}.when", is_condition=True),
        None if draft.each is None else compile_expression(draft.each, f"{place}.each"),
    )


def _check_references(draft: RecipeDraft, steps: list[_Compiled], output: Template) -> None:
    names = {step.draft.name for step in steps}
    if len(names) < len(steps):
        twice = next(s.draft.name for at, s in enumerate(steps) if s.draft.name in {x.draft.name for x in steps[:at]})
        raise BadRecipe("two steps have this name", place=f"steps.{twice}")
    inputs = input_names(draft.inputs_schema)
    for step in steps:
        for place, template in step.parts:
            _check_template(place, template, names, inputs)
            uses = "item" if template.uses_item else "index" if template.uses_index else ""
            if uses and (step.draft.each is None or template is not step.with_):
                where = "the arguments of a fan-out"
                raise BadExpression(f"`{uses}` is known only in {where}", place=place, remedy="Give the step an `each`")
        for other in step.draft.after:
            if other not in names:
                raise BadRecipe(f"no step is called {other!r}", place=f"{step.place}.after", remedy=_hint(other, names))
    _check_template("output", output, names, inputs)
    if output.uses_item or output.uses_index:
        raise BadExpression("`item` and `index` are known only in the arguments of a fan-out", place="output")


def _check_template(place: str, template: Template, steps: set[str], inputs: frozenset[str] | None) -> None:
    for name in sorted(template.steps - steps):
        raise BadExpression(f"no step is called {name!r}", place=place, remedy=_hint(name, steps))
    # A schema that lets in more than it names cannot say that a name is wrong.
    for name in sorted(template.inputs - inputs) if inputs is not None else ():
        raise BadExpression(f"there is no input {name!r}", place=place, remedy=_hint(name, inputs or ()))


def _hint(name: str, known: Iterable[str]) -> str:
    return _sentence(nearest(name, known))


def _check_runs(steps: list[_Compiled], known: Known) -> None:
    """Handlers and child recipes exist and are given what they take, as far as they are known here."""
    for step in steps:
        draft = step.draft
        table = {NodeKind.TASK: known.handlers, NodeKind.RECIPE: known.recipes, NodeKind.TIMER: None}[draft.kind]
        if table is None:
            continue
        what, key = ("recipe", "recipe") if draft.kind is NodeKind.RECIPE else ("handler", "run")
        if draft.run not in table:
            raise BadRecipe(
                f"no {what} is called {draft.run!r}", place=f"{step.place}.{key}", remedy=_hint(draft.run, table)
            )
        check_arguments(draft.with_ or {}, table[draft.run], f"{step.place}.with", f"{what} {draft.run}")


def _check_types(steps: list[_Compiled], output: Template) -> None:
    """Let CEL itself read every expression that is more than a path, in one round trip."""
    asked: list[tuple[str, str, frozenset[str]]] = []
    for step in steps:
        for place, template in step.parts:
            wanted = frozenset({"BOOL"}) if template is step.when else frozenset[str]()
            wanted = frozenset({"LIST"}) if template is step.each else wanted
            asked.extend((place, expression.text, wanted) for expression in template.expressions)
    asked.extend(("output", expression.text, frozenset()) for expression in output.expressions)
    if not asked:
        return
    for (place, text, wanted), checked in zip(asked, shared_evaluator().check([a[1] for a in asked]), strict=True):
        _check_type(place, text, wanted, checked)


def _check_type(place: str, text: str, wanted: frozenset[str], checked: Checked) -> None:
    if checked.error:
        raise BadExpression(f"`{text}` cannot be used: {checked.error}", place=place)
    kind = checked.type.split("<")[0]
    if wanted and kind not in wanted and kind != "DYN":
        must = "true or false" if "BOOL" in wanted else "a list"
        raise BadExpression(f"`{text}` gives {checked.type.lower()}, and must give {must}", place=place)


def _ordered(steps: list[_Compiled]) -> list[Node]:
    needs = {step.draft.name: step.needs for step in steps}
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        raise _cycle(error.args[1]) from None
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[need] for need in needs[name]), default=0)
    by_depth = sorted(steps, key=lambda step: (depth[step.draft.name], step.draft.name))
    return [_node(step, needs[step.draft.name]) for step in by_depth]


def _cycle(names: list[str]) -> BadRecipe:
    # graphlib names each step after the one that needs it not; told as "a waits for b", and from the smallest name.
    loop = names[::-1][:-1]
    start = loop.index(min(loop))
    loop = [*loop[start:], *loop[:start]]
    if len(loop) == 1:
        return BadRecipe("the step waits for itself", place=f"steps.{loop[0]}")
    told = ", which waits for ".join(loop[1:] + loop[:1])
    return BadRecipe(f"a cycle: {loop[0]} waits for {told}", place=f"steps.{loop[0]}")


def _node(step: _Compiled, needs: tuple[str, ...]) -> Node:
    draft = step.draft
    is_timer = draft.kind is NodeKind.TIMER
    return Node(
        name=draft.name,
        kind=draft.kind,
        run=draft.run,
        needs=needs,
        with_=step.with_.tree or None,
        when=None if step.when is None else step.when.tree,
        each=None if step.each is None else step.each.tree,
        # A timer is nobody's work, so what a worker would ask about it is left out of the plan.
        queue=Node(name="").queue if is_timer else draft.queue,
        retry=Retry() if is_timer else check_retry(draft.retry, f"{step.place}.retry"),
        timeout_s=Node(name="").timeout_s if is_timer else _timeout(draft.timeout_s, f"{step.place}.timeout"),
    )


def check_retry(retry: Any, place: str) -> Retry:
    """A policy whose numbers make sense, with each number of the type that its JSON has."""
    if not isinstance(retry, Retry):
        raise BadRecipe(f"{retry!r} is not a retry policy", place=place, remedy="Write Retry(max_attempts=4)")
    attempts: Any = retry.max_attempts
    if not isinstance(attempts, int) or isinstance(attempts, bool) or not 1 <= attempts <= ATTEMPTS_MAX:
        raise BadRecipe(f"max_attempts must be 1 to {ATTEMPTS_MAX:,}, not {attempts!r}", place=place)
    for name, low, high in (("base_s", 0, 86400), ("factor", 1, 100), ("cap_s", 0, 30 * 86400), ("jitter", 0, 1)):
        value = getattr(retry, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise BadRecipe(f"{name} must be {low} to {high}, not {value!r}", place=place)
    numbers = (float(retry.base_s), float(retry.factor), float(retry.cap_s), float(retry.jitter))
    return Retry(attempts, *numbers)


def _timeout(seconds: float, place: str) -> float:
    if seconds <= 0:
        raise BadRecipe("a timeout must be more than 0", place=place)
    return float(seconds)
