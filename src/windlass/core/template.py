"""Templates: JSON trees in which strings may contain `${…}`.

A tree is compiled once into small functions and resolved many times. This module follows plain paths in Python, and
passes other expressions with the scope to `evaluate`. A string that is exactly one `${…}` keeps the value's type. In
mixed text, a string value is inserted as it is and any other value as JSON. `$${` is a literal `${`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from windlass.core.errors import BadExpression
from windlass.core.expression import Expression, Part, Path, closing_brace, lint, path_text
from windlass.core.plan import Node, Plan

TREE_DEPTH_MAX = 32
KEY_CHARS_MAX = 255

Scope = Mapping[str, Any]
Evaluate = Callable[[str, Scope], Any]
_Op = Callable[[Scope, Evaluate], Any]

SKIPPED = {"skipped": True}
# How many plans one process keeps compiled; an evicted plan is compiled again.
_PLANS_MAX = 256


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled tree and its references.

    `tree` is the canonical spelling of the source. `expressions` are the distinct expressions that need the evaluator.
    A caller that must not block evaluates them first, and passes `resolve` a lookup.
    """

    tree: Any
    steps: frozenset[str]
    inputs: frozenset[str]
    # Whether the template reads all inputs, or an input whose name is known only at evaluation.
    uses_all_inputs: bool
    uses_item: bool
    uses_index: bool
    expressions: tuple[Expression, ...]
    # Every path that the expressions read, and the paths that are whole expressions.
    paths: tuple[Path, ...]
    whole: frozenset[Path]
    _op: _Op

    def resolve(self, scope: Scope, evaluate: Evaluate) -> Any:
        """Return the tree with its expressions replaced. Lists and objects are new; scope values are not copied."""
        return self._op(scope, evaluate)


def compile_template(tree: Any, place: str = "") -> Template:
    """Compile a tree. Raises `BadExpression` with the place of the invalid string."""
    found: list[Expression] = []
    canonical, op = _compile(tree, place, found, 0)
    return _template(canonical, op, found)


def compile_expression(text: str, place: str = "", *, is_condition: bool = False) -> Template:
    """Compile a whole expression, written without `${}`, as in `when` and `each`."""
    expression = lint(text, place, is_condition=is_condition)
    return _template(expression.text, _expression_op(expression, place), [expression])


def resolve(tree: Any, scope: Scope, evaluate: Evaluate) -> Any:
    """Compile and resolve a tree that is resolved only once."""
    return compile_template(tree).resolve(scope, evaluate)


def references(tree: Any) -> frozenset[str]:
    """Return the names of the steps that a tree refers to."""
    return compile_template(tree).steps


def escape(text: str) -> str:
    """Escape text so that it resolves to itself."""
    return text.replace("${", "$${")


def as_condition(value: Any, place: str) -> bool:
    """Return a condition's value, which must be true or false: any other value is probably a mistake."""
    if isinstance(value, bool):
        return value
    raise BadExpression(f"the condition gave {_shown(value)}, and must give true or false", place=place)


def as_key(value: Any, place: str) -> str:
    """Return a concurrency key's value as text. Steps with equal keys share one limit."""
    key = _as_text(value)
    if not 0 < len(key) <= KEY_CHARS_MAX or "\x00" in key:
        told = "empty" if not key else "text with NUL" if "\x00" in key else f"{len(key):,} characters long"
        raise BadExpression(f"the key is {told}, and must be 1 to {KEY_CHARS_MAX} characters of text", place=place)
    return key


def as_items(value: Any, place: str) -> list[Any]:
    """Return a fan-out's value, which must be a list."""
    if isinstance(value, list):
        return value
    raise BadExpression(f"the fan-out is over {_shown(value)}, and must be over a list", place=place)


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """The compiled expressions of one node."""

    with_: Template
    when: Template | None
    each: Template | None
    concurrency: Template | None = None


@dataclass(frozen=True, slots=True)
class PlanTemplates:
    """The compiled expressions of a plan: one entry per node, in the nodes' order, and the job's output."""

    nodes: NodeTemplates
    output: Template


class NodeTemplates:
    """The templates of a plan's nodes, each compiled on first use: compiling all of a large plan takes seconds."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes
        self._compiled: dict[int, NodeTemplate] = {}

    def __getitem__(self, no: int) -> NodeTemplate:
        found = self._compiled.get(no)
        if found is None:
            found = self._compiled[no] = _compile_node(self._nodes[no])
        return found

    def __iter__(self) -> Iterator[NodeTemplate]:
        return (self[no] for no in range(len(self._nodes)))


_compiled: dict[str, PlanTemplates] = {}


def plan_templates(plan: Plan) -> PlanTemplates:
    """Return the compiled expressions of a plan, compiled once per process."""
    known = _compiled.get(plan.hash)
    if known is None:
        output = compile_template(plan.output, "output")
        known = _compiled[plan.hash] = PlanTemplates(NodeTemplates(plan.nodes), output)
        if len(_compiled) > _PLANS_MAX:
            del _compiled[next(iter(_compiled))]
    return known


def _compile_node(node: Node) -> NodeTemplate:
    place = f"steps.{node.name}"
    return NodeTemplate(
        compile_template({} if node.with_ is None else node.with_, f"{place}.with"),
        None if node.when is None else compile_expression(node.when, f"{place}.when", is_condition=True),
        None if node.each is None else compile_expression(node.each, f"{place}.each"),
        None if node.concurrency is None else compile_template(node.concurrency, f"{place}.concurrency"),
    )


def _template(tree: Any, op: _Op, found: list[Expression]) -> Template:
    def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
        return frozenset[str]().union(*sets)

    return Template(
        tree=tree,
        steps=union(expression.steps for expression in found),
        inputs=union(expression.inputs for expression in found),
        uses_all_inputs=any(("inputs",) in expression.paths for expression in found),
        uses_item=any(expression.uses("item") for expression in found),
        uses_index=any(expression.uses("index") for expression in found),
        expressions=tuple({e.text: e for e in found if e.path is None}.values()),
        paths=tuple(dict.fromkeys(path for expression in found for path in expression.paths)),
        whole=frozenset(expression.path for expression in found if expression.path is not None),
        _op=op,
    )


def _compile(tree: Any, place: str, found: list[Expression], depth: int) -> tuple[Any, _Op]:
    """Return the canonical tree and the function that resolves it."""
    if depth > TREE_DEPTH_MAX:
        raise BadExpression(f"nested deeper than {TREE_DEPTH_MAX}", place=place)
    if isinstance(tree, str):
        return _compile_text(tree, place, found)
    if isinstance(tree, Mapping):
        return _compile_object(tree, place, found, depth)
    if isinstance(tree, list | tuple):
        pairs = [_compile(value, f"{place}[{at}]", found, depth + 1) for at, value in enumerate(tree)]
        ops = [op for _, op in pairs]
        return [value for value, _ in pairs], lambda scope, evaluate: [op(scope, evaluate) for op in ops]
    return tree, _constant_op(tree)


def _compile_object(tree: Mapping[Any, Any], place: str, found: list[Expression], depth: int) -> tuple[Any, _Op]:
    canonical: dict[str, Any] = {}
    live: list[tuple[str, _Op]] = []
    for key, value in tree.items():
        if not isinstance(key, str) or "${" in key:
            raise BadExpression(f"a key must be plain text, and {key!r} is not", place=place)
        canonical[key], op = _compile(value, f"{place}.{key}" if place else key, found, depth + 1)
        # Text without an expression is constant, like a number. A container must be new at each resolve.
        if not isinstance(value, str | int | float | bool | None) or (isinstance(value, str) and "${" in value):
            live.append((key, op))
    # A copy of the constants has all keys in their order; the resolved values then replace the others.
    frame = dict(canonical)
    if not live:
        return canonical, lambda scope, evaluate: frame.copy()

    def build(scope: Scope, evaluate: Evaluate) -> Any:
        out = frame.copy()
        for key, op in live:
            out[key] = op(scope, evaluate)
        return out

    return canonical, build


def _compile_text(text: str, place: str, found: list[Expression]) -> tuple[str, _Op]:
    if "${" not in text:
        return text, _constant_op(text)
    pieces = _split(text, place)
    canonical = "".join(f"${{{p.text}}}" if isinstance(p, Expression) else escape(p) for p in pieces)
    found.extend(piece for piece in pieces if isinstance(piece, Expression))
    if len(pieces) == 1:
        only = pieces[0]
        return canonical, _expression_op(only, place) if isinstance(only, Expression) else _constant_op(only)
    ops = [_expression_op(p, place) if isinstance(p, Expression) else _constant_op(p) for p in pieces]
    return canonical, lambda scope, evaluate: "".join([_as_text(op(scope, evaluate)) for op in ops])


def _split(text: str, place: str) -> list[str | Expression]:
    """Return the literal texts and the expressions, in order. Literal text is never empty."""
    pieces: list[str | Expression] = []
    plain = ""
    at = 0
    while (hole := text.find("${", at)) >= 0:
        if hole > at and text[hole - 1] == "$":
            plain += text[at : hole - 1] + "${"
            at = hole + 2
            continue
        plain += text[at:hole]
        end = closing_brace(text, hole + 2)
        if end < 0:
            raise BadExpression("a `${` without its `}`", place=place, remedy="A literal `${` is written `$${`")
        if plain:
            pieces.append(plain)
        pieces.append(lint(text[hole + 2 : end], place))
        plain = ""
        at = end + 1
    plain += text[at:]
    if plain:
        pieces.append(plain)
    return pieces


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _constant_op(value: Any) -> _Op:
    return lambda scope, evaluate: value


def _expression_op(expression: Expression, place: str) -> _Op:
    path = expression.path
    if path is None:
        return _evaluated_op(expression.text, place)
    if any(isinstance(part, int) for part in path):
        return _indexed_path_op(path, place)

    def follow(scope: Scope, evaluate: Evaluate) -> Any:
        value: Any = scope
        try:
            for part in path:
                value = value[part]
        except (KeyError, TypeError):
            raise _missing(path, scope, place) from None
        return value

    return follow


def _evaluated_op(text: str, place: str) -> _Op:
    def ask(scope: Scope, evaluate: Evaluate) -> Any:
        try:
            return evaluate(text, scope)
        except BadExpression as error:
            # The evaluator gets only the expression, so the place is added here.
            raise BadExpression(error.message, place=place, remedy=error.remedy) from None

    return ask


def _indexed_path_op(path: Path, place: str) -> _Op:
    def follow(scope: Scope, evaluate: Evaluate) -> Any:
        value: Any = scope
        for part in path:
            if not _has(value, part):
                raise _missing(path, scope, place)
            value = value[part]
        return value

    return follow


def _has(value: Any, part: Part) -> bool:
    """Return whether a value has this part. Python also indexes text, which readers of JSON do not expect."""
    if isinstance(part, int):
        return isinstance(value, list) and part < len(value)
    return isinstance(value, Mapping) and part in value


def _missing(path: Path, scope: Scope, place: str) -> BadExpression:
    """Return the error for a path without a value: how far the path leads, and which parts exist there."""
    value: Any = scope
    known = 0
    while known < len(path) and _has(value, path[known]):
        value = value[path[known]]
        known += 1
    reached = path_text(path[:known]) if known else "the scope"
    if value == SKIPPED:
        there = "that step was skipped"
    elif isinstance(value, Mapping):
        there = f"{reached} has {', '.join(sorted(map(str, value))) or 'nothing in it'}"
    elif isinstance(value, list):
        there = f"{reached} is a list of {len(value)}"
    else:
        there = f"{reached} is {_shown(value)}"
    return BadExpression(f"${{{path_text(path)}}} does not exist: {there}", place=place)


def _shown(value: Any) -> str:
    """Return a value for an error message: a short value whole, other values by their kind."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = _as_text(value) if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 60 else f"{text[:57]}…"


class Resolver(Protocol):
    """Resolves templates. `recipe/evaluator.py` has the implementation."""

    async def resolve_async(self, template: Template, scope: Mapping[str, Any], caller: str = "") -> Any:
        """Return the template's value. Callers take turns; a template without expressions does not wait."""
        ...
