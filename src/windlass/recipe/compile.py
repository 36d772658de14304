"""Compiles a draft into a plan. Both front ends use this function.

Every mistake that can be found before a job runs is refused here, with its place: names, arguments, inputs,
expressions, cycles, sizes. The result is canonical: steps are ordered by their depth in the graph and then by name,
needs are sorted, and expressions have one spelling. So two equivalent drafts have the same hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from windlass.core.errors import BadExpression, BadRecipe, TooLarge
from windlass.core.expression import nearest
from windlass.core.plan import PROVIDER_HANDLER, Node, NodeKind, Plan
from windlass.core.template import Template, compile_expression, compile_template
from windlass.recipe.asks import check_asks, node_values
from windlass.recipe.draft import PROVIDER_PARAMETERS, Known, Parameters, RecipeDraft, StepDraft
from windlass.recipe.evaluator import Checked, shared_evaluator
from windlass.recipe.json_value import check_json
from windlass.recipe.options import check_length
from windlass.recipe.schema import check_schema, input_names

STEPS_MAX = 10_000
PLAN_BYTES_MAX = 4 << 20

_STEP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_BUILT_IN = PROVIDER_HANDLER.partition(".")[0] + "."
# For each kind, what a step's `run` names, and the key of `run` in a document.
_RUNS = {
    NodeKind.TASK: ("handler", "run"),
    NodeKind.RECIPE: ("recipe", "recipe"),
    NodeKind.EVENT: ("event", "wait_for"),
}


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A step and its compiled expressions."""

    draft: StepDraft
    with_: Template
    when: Template | None
    each: Template | None
    concurrency: Template | None

    @property
    def place(self) -> str:
        return f"steps.{self.draft.name}"

    @property
    def parts(self) -> list[tuple[str, Template]]:
        found = [(f"{self.place}.{'match' if self.draft.kind is NodeKind.EVENT else 'with'}", self.with_)]
        if self.when is not None:
            found.append((f"{self.place}.when", self.when))
        if self.each is not None:
            found.append((f"{self.place}.each", self.each))
        if self.concurrency is not None:
            found.append((f"{self.place}.concurrency", self.concurrency))
        return found

    @property
    def needs(self) -> tuple[str, ...]:
        referenced = frozenset[str]().union(*(template.steps for _, template in self.parts))
        return tuple(sorted(referenced | set(self.draft.after)))


def compile_plan(draft: RecipeDraft, known: Known | None = None) -> Plan:
    """Check a draft and return its plan; raises `BadRecipe`, `BadExpression` or `TooLarge` with place and reason."""
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
        ttl_s=None if draft.ttl_s is None else check_length(draft.ttl_s, "ttl", "a ttl"),
        undo=draft.undo,
        undo_order=draft.undo_order,
    )
    if len(plan.canonical) > PLAN_BYTES_MAX:
        raise TooLarge(f"a plan of {len(plan.canonical):,} bytes; at most {PLAN_BYTES_MAX:,} are allowed")
    return plan


def check_name(name: object, pattern: re.Pattern[str], place: str, what: str) -> None:
    """Refuse a name that cannot be written in an expression or a command."""
    if not isinstance(name, str) or not pattern.fullmatch(name):
        more = "" if pattern is _STEP_NAME else ", dots and dashes"
        raise BadRecipe(f"{what} cannot be {name!r}", place=place, remedy=f"Use letters, digits and _{more}")


def check_arguments(given: Iterable[str], parameters: Parameters, place: str, what: str) -> None:
    """Refuse arguments that a handler or a recipe does not take, and missing required arguments."""
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
    if draft.kind in _RUNS:
        what, key = _RUNS[draft.kind]
        check_name(draft.run, _LONG_NAME, f"{place}.{key}", f"{'an' if key == 'wait_for' else 'a'} {what}'s name")
        check_name(draft.asks.queue, _LONG_NAME, f"{place}.queue", "a queue's name")
    elif draft.kind is NodeKind.TIMER and draft.each is not None:
        raise BadRecipe("a timer cannot be a fan-out", place=f"{place}.each")
    check_asks(draft.asks, draft.kind, place)
    if draft.asks.undo is not None:
        check_name(draft.asks.undo.run, _LONG_NAME, f"{place}.undo", "a handler's name")
        check_name(draft.asks.undo.queue, _LONG_NAME, f"{place}.undo.queue", "a queue's name")
    _check_built_in(draft, place)
    is_event = draft.kind is NodeKind.EVENT
    given = f"{place}.{'match' if is_event else 'with'}"
    if not isinstance(draft.with_ or {}, Mapping):
        said = "an event is matched by name" if is_event else "arguments are given by name"
        raise BadRecipe(said, place=given, remedy="Write a mapping")
    check_json(draft.with_, given)
    return _Compiled(
        draft,
        compile_template(draft.with_ or {}, given),
        None if draft.when is None else compile_expression(draft.when, f"{place}.when", is_condition=True),
        None if draft.each is None else compile_expression(draft.each, f"{place}.each"),
        None if draft.asks.concurrency is None else compile_template(draft.asks.concurrency, f"{place}.concurrency"),
    )


def _check_built_in(draft: StepDraft, place: str) -> None:
    if draft.kind is NodeKind.TASK and draft.run.startswith(_BUILT_IN):
        if draft.run != PROVIDER_HANDLER:
            raise BadRecipe(f"there is no built-in handler {draft.run!r}", place=f"{place}.run")
        if draft.asks.provider is None:
            raise BadRecipe(f"{PROVIDER_HANDLER} calls a provider, but none is named", place=f"{place}.provider")


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
            if uses and (step.draft.each is None or (template is not step.with_ and template is not step.concurrency)):
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
    # A schema that allows unnamed inputs cannot tell that a name is wrong.
    for name in sorted(template.inputs - inputs) if inputs is not None else ():
        raise BadExpression(f"there is no input {name!r}", place=place, remedy=_hint(name, inputs or ()))


def _hint(name: str, known: Iterable[str]) -> str:
    return _sentence(nearest(name, known))


def _check_runs(steps: list[_Compiled], known: Known) -> None:
    """Check that known handlers and child recipes exist and get the arguments that they take."""
    for step in steps:
        draft = step.draft
        if (undo := draft.asks.undo) is not None and known.handlers is not None and undo.run not in known.handlers:
            hint = _hint(undo.run, known.handlers)
            raise BadRecipe(f"no handler is called {undo.run!r}", place=f"{step.place}.undo", remedy=hint)
        if draft.kind is NodeKind.TASK and draft.run == PROVIDER_HANDLER:
            check_arguments(
                draft.with_ or {}, PROVIDER_PARAMETERS, f"{step.place}.with", f"provider {draft.asks.provider}"
            )
            continue
        table = {NodeKind.TASK: known.handlers, NodeKind.RECIPE: known.recipes}.get(draft.kind)
        if table is None:
            continue
        what, key = _RUNS[draft.kind]
        if draft.run not in table:
            raise BadRecipe(
                f"no {what} is called {draft.run!r}", place=f"{step.place}.{key}", remedy=_hint(draft.run, table)
            )
        check_arguments(draft.with_ or {}, table[draft.run], f"{step.place}.with", f"{what} {draft.run}")


def _check_types(steps: list[_Compiled], output: Template) -> None:
    """Compile every expression that is not a plain path with CEL, in one round trip."""
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
    # graphlib lists each step before the step that needs it. The error says "a waits for b", from the smallest name.
    loop = names[::-1][:-1]
    start = loop.index(min(loop))
    loop = [*loop[start:], *loop[:start]]
    if len(loop) == 1:
        return BadRecipe("the step waits for itself", place=f"steps.{loop[0]}")
    told = ", which waits for ".join(loop[1:] + loop[:1])
    return BadRecipe(f"a cycle: {loop[0]} waits for {told}", place=f"steps.{loop[0]}")


def _node(step: _Compiled, needs: tuple[str, ...]) -> Node:
    draft = step.draft
    return Node(
        name=draft.name,
        kind=draft.kind,
        run=draft.run,
        needs=needs,
        with_=step.with_.tree or None,
        when=None if step.when is None else step.when.tree,
        each=None if step.each is None else step.each.tree,
        concurrency=None if step.concurrency is None else step.concurrency.tree,
        **node_values(draft.asks, draft.kind, step.place),
    )
