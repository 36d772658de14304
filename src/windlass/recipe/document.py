"""Reads recipes from YAML or JSON: a `plan_definition`.

    recipe: trailer
    description: Makes a film of a topic.    # for people; no part of the plan
    inputs: {topic: string}                  # name: type, `?` for optional, `[]` for a list; or a JSON Schema
    steps:
      write_script: {run: write_script, with: {topic: "${inputs.topic}"}, retry: {max_attempts: 4}, timeout: 2m}
      render:       {run: render, each: "${steps.write_script.outputs.scenes}", with: {scene: "${item}"}}
      stitch:       {run: stitch, with: {shots: "${steps.render.outputs}"}, when: "${steps.write_script.outputs.ok}"}
    output: "${steps.stitch.outputs}"

A step has `run` (a handler), `recipe` (another recipe, as a child job), `sleep` (a timer), `wait_for` (an event) or
`approve` (a question to people). A step that only names a `provider` calls that provider. A document describes its
steps completely: the options of a handler's decorator do not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.core.expression import closing_brace
from windlass.core.plan import PROVIDER_HANDLER, NodeKind, OnFailure, Plan
from windlass.recipe.approving import approval_with
from windlass.recipe.asks import DOCUMENT_KEYS, asks_in
from windlass.recipe.compile import compile_plan
from windlass.recipe.description import description_of
from windlass.recipe.draft import Known, RecipeDraft, StepDraft
from windlass.recipe.duration import duration_s
from windlass.recipe.options import check_keys, read_mapping, read_text
from windlass.recipe.schema import schema_from_document
from windlass.recipe.undoing import check_mode, check_order
from windlass.recipe.yaml_text import Lines, line_of, read_document

_TOP_KEYS = ("recipe", "description", "inputs", "steps", "output", "on_failure", "ttl", "undo", "undo_order")
_SHARED_KEYS = ("when", "after")
_KEYS = {
    NodeKind.TASK: ("run", "with", "each", *_SHARED_KEYS),
    NodeKind.RECIPE: ("recipe", "with", "each", *_SHARED_KEYS),
    NodeKind.TIMER: ("sleep", *_SHARED_KEYS),
    NodeKind.EVENT: ("wait_for", "match", "each", *_SHARED_KEYS),
    NodeKind.APPROVAL: ("approve", "show", "each", *_SHARED_KEYS),
}
_KIND_KEY = {
    NodeKind.TASK: "run",
    NodeKind.RECIPE: "recipe",
    NodeKind.TIMER: "sleep",
    NodeKind.EVENT: "wait_for",
    NodeKind.APPROVAL: "approve",
}


def plan_from_document(source: str | bytes | Mapping[str, Any], known: Known | None = None) -> Plan:
    """Return the plan of a document: YAML or JSON text, or an already parsed mapping.

    `known` names the existing handlers and recipes, so that calls of unknown names can be refused.
    """
    body, lines = (source, {}) if isinstance(source, Mapping) else read_document(source)
    try:
        return compile_plan(_draft(body), known)
    except BadRecipe as error:
        raise _with_line(error, lines) from None


def recipe_name(source: str | bytes | Mapping[str, Any]) -> str:
    """Return the recipe's name in a document."""
    body = source if isinstance(source, Mapping) else read_document(source)[0]
    return read_text(read_mapping(body, "document").get("recipe"), "recipe")


def recipe_description(source: str | bytes | Mapping[str, Any]) -> str:
    """Return the recipe's description in a document, or an empty text."""
    body = source if isinstance(source, Mapping) else read_document(source)[0]
    return _description(read_mapping(body, "document"))


def _with_line(error: BadRecipe, lines: Lines) -> BadRecipe:
    line = line_of(lines, error.place)
    if line is None:
        return error
    reason = error.message.removeprefix(f"{error.place}: ")
    return type(error)(f"{reason} (line {line})", place=error.place, remedy=error.remedy)


def _draft(body: Any) -> RecipeDraft:
    document = read_mapping(body, "")
    check_keys(document, _TOP_KEYS, "")
    if "recipe" not in document:
        raise BadRecipe("the recipe has no name", remedy="Begin the document with `recipe: its_name`")
    _description(document)
    steps = read_mapping(document.get("steps", {}), "steps")
    return RecipeDraft(
        name=read_text(document["recipe"], "recipe"),
        steps=tuple(_step(name, read_mapping(step, f"steps.{name}")) for name, step in steps.items()),
        inputs_schema=schema_from_document(document.get("inputs")),
        output=document.get("output"),
        on_failure=_on_failure(document.get("on_failure", "finish")),
        ttl_s=None if document.get("ttl") is None else duration_s(document["ttl"], "ttl"),
        undo=check_mode(document.get("undo", "auto")),
        undo_order=check_order(document.get("undo_order", "completion")),
    )


def _description(document: Mapping[str, Any]) -> str:
    text = document.get("description")
    return "" if text is None else description_of(read_text(text, "description"))


def _step(name: str, step: Mapping[str, Any]) -> StepDraft:
    place = f"steps.{name}"
    kind = _kind(step, place)
    check_keys(step, (*_KEYS[kind], *DOCUMENT_KEYS[kind]), place)
    with_ = step.get("match" if kind is NodeKind.EVENT else "with")
    if kind is NodeKind.TIMER:
        seconds = step["sleep"]
        is_template = isinstance(seconds, str) and "${" in seconds
        with_ = {"seconds": seconds if is_template else duration_s(seconds, f"{place}.sleep")}
    if kind is NodeKind.APPROVAL:
        with_ = approval_with(step["approve"], step.get("show"), place)
    return StepDraft(
        name=name,
        kind=kind,
        run=_run(step, kind, place),
        with_=with_,
        when=_expression(step.get("when"), f"{place}.when"),
        each=_expression(step.get("each"), f"{place}.each"),
        after=_after(step.get("after", ()), f"{place}.after"),
        asks=asks_in(step, kind, place),
    )


def _run(step: Mapping[str, Any], kind: NodeKind, place: str) -> str:
    key = _KIND_KEY[kind]
    if kind in (NodeKind.TIMER, NodeKind.APPROVAL):
        return ""
    return PROVIDER_HANDLER if key not in step else read_text(step[key], f"{place}.{key}")


def _kind(step: Mapping[str, Any], place: str) -> NodeKind:
    kinds = [kind for kind, key in _KIND_KEY.items() if key in step]
    if not kinds and "provider" in step:
        return NodeKind.TASK
    if len(kinds) != 1:
        found = "none of them" if not kinds else " and ".join(_KIND_KEY[kind] for kind in kinds)
        raise BadRecipe(
            f"a step has one of run, recipe, sleep, wait_for and approve, and this has {found}", place=place
        )
    return kinds[0]


def _expression(value: Any, place: str) -> str | None:
    """Return a condition or a fan-out: one whole expression, with or without its `${}`."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = read_text(value, place).strip()
    if not text.startswith("${"):
        return text
    if closing_brace(text, 2) != len(text) - 1:
        raise BadRecipe("this must be a single expression without text around it", place=place)
    return text[2:-1]


def _after(value: Any, place: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise BadRecipe("this must be a list of steps' names", place=place)
    return tuple(names)


def _on_failure(value: Any) -> OnFailure:
    try:
        return OnFailure(value)
    except ValueError:
        raise BadRecipe(f"{value!r} is not finish or stop", place="on_failure") from None
