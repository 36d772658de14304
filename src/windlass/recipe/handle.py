"""Symbolic values: the future results of steps, as a recipe's function uses them while it is read.

A `Value` is a piece of an expression. Indexing and operators make longer pieces. An operation that needs the actual
value (a test, a loop, text) is refused with a hint what to write instead. A step's name may change until the end of the
function. So a value keeps the step itself, and its text is made at the end.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from windlass.core.errors import BadRecipe
from windlass.core.expression import literal, path_text
from windlass.core.plan import NodeKind
from windlass.core.template import escape
from windlass.recipe.asks import Asks
from windlass.recipe.draft import StepDraft
from windlass.recipe.duration import duration_s
from windlass.recipe.options import key_template

# CEL's operator precedence, loosest first; a looser piece inside a tighter one gets parentheses.
_OR, _AND, _RELATION, _SUM, _PRODUCT, _SIGN, _MEMBER = range(1, 8)


@dataclass(eq=False, slots=True)
class Pending:
    """A step of a recipe that is being read; `base` is its default name."""

    base: str
    kind: NodeKind
    run: str
    with_: dict[str, Any]
    each: Value | None = None
    when: Value | None = None
    after: list[Pending] = field(default_factory=list)
    asks: Asks = Asks()
    given_name: str | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """The step's name for errors, before all names are final."""
        return self.name or self.given_name or self.base

    def draft(self) -> StepDraft:
        """Return the step as text, after all names are final."""
        return StepDraft(
            name=self.name,
            kind=self.kind,
            run=self.run,
            with_=template_tree(self.with_, f"steps.{self.name}.with") or None,
            when=None if self.when is None else expression_text(self.when),
            each=None if self.each is None else expression_text(self.each),
            after=tuple(other.name for other in self.after),
            asks=replace(self.asks, concurrency=self._key()),
        )

    def _key(self) -> str | None:
        key, place = self.asks.concurrency, f"steps.{self.name}.concurrency"
        if key is None:
            return None
        return str(template_tree(key, place)) if isinstance(key, Value | Text) else key_template(key, place)


_Pieces = tuple["str | Pending", ...]


class Value:
    """A value that becomes known when the job runs."""

    __slots__ = ("_pieces", "_rank")

    def __init__(self, pieces: _Pieces, rank: int = _MEMBER) -> None:
        self._pieces = pieces
        self._rank = rank

    def __getitem__(self, key: Any) -> Value:
        """Return a part of the value: a field by name, or an item by index."""
        if isinstance(key, Value):
            return Value((*_within(self, _MEMBER), "[", *key._pieces, "]"))
        if isinstance(key, bool) or not isinstance(key, str | int) or (isinstance(key, int) and key < 0):
            raise BadRecipe(f"{self!r} cannot be indexed with {key!r}", remedy="Use a name, or a place from 0 on")
        return Value((*_within(self, _MEMBER), path_text(("", key))))

    def contains(self, item: Any) -> Value:
        """Return whether an item is in this list, or a key in this object."""
        return _binary(item, "in", self, _RELATION)

    def size(self) -> Value:
        """Return the length of this list, object or text."""
        return Value(("size(", *self._pieces, ")"))

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return _binary(self, "==", other, _RELATION)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return _binary(self, "!=", other, _RELATION)

    def __lt__(self, other: Any) -> Value:
        return _binary(self, "<", other, _RELATION)

    def __le__(self, other: Any) -> Value:
        return _binary(self, "<=", other, _RELATION)

    def __gt__(self, other: Any) -> Value:
        return _binary(self, ">", other, _RELATION)

    def __ge__(self, other: Any) -> Value:
        return _binary(self, ">=", other, _RELATION)

    def __and__(self, other: Any) -> Value:
        return _binary(self, "&&", other, _AND)

    def __rand__(self, other: Any) -> Value:
        return _binary(other, "&&", self, _AND)

    def __or__(self, other: Any) -> Value:
        return _binary(self, "||", other, _OR)

    def __ror__(self, other: Any) -> Value:
        return _binary(other, "||", self, _OR)

    def __invert__(self) -> Value:
        return Value(("!", *_within(self, _SIGN)), _SIGN)

    def __neg__(self) -> Value:
        return Value(("-", *_within(self, _MEMBER)), _SIGN)

    def __add__(self, other: Any) -> Value:
        return _binary(self, "+", other, _SUM)

    def __radd__(self, other: Any) -> Value:
        return _binary(other, "+", self, _SUM)

    def __sub__(self, other: Any) -> Value:
        return _binary(self, "-", other, _SUM)

    def __rsub__(self, other: Any) -> Value:
        return _binary(other, "-", self, _SUM)

    def __mul__(self, other: Any) -> Value:
        return _binary(self, "*", other, _PRODUCT)

    def __rmul__(self, other: Any) -> Value:
        return _binary(other, "*", self, _PRODUCT)

    def __truediv__(self, other: Any) -> Value:
        return _binary(self, "/", other, _PRODUCT)

    def __rtruediv__(self, other: Any) -> Value:
        return _binary(other, "/", self, _PRODUCT)

    def __mod__(self, other: Any) -> Value:
        return _binary(self, "%", other, _PRODUCT)

    def __rmod__(self, other: Any) -> Value:
        return _binary(other, "%", self, _PRODUCT)

    def __bool__(self) -> NoReturn:
        self._refuse("has no truth value yet", "Write step(…).when(condition), and combine conditions with & | ~")

    def __iter__(self) -> NoReturn:
        self._refuse("cannot be looped over yet", "Write step.map(values)")

    def __len__(self) -> NoReturn:
        self._refuse("has no length yet", "Write value.size()")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse("cannot be searched yet", "Write value.contains(item)")

    def __str__(self) -> NoReturn:
        self._refuse("is not text yet", 'Write wl.text("about {topic}", topic=value)')

    def __format__(self, spec: str) -> NoReturn:
        self._refuse("is not text yet", 'Write wl.text("about {topic}", topic=value) instead of an f-string')

    def __int__(self) -> NoReturn:
        self._refuse("is not a number yet", "Do the arithmetic in a step")

    __float__ = __index__ = __int__
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self!r} has no attribute {name!r}; a part of the value is written value[{name!r}]")

    def __repr__(self) -> str:
        return f"<value {''.join(p if isinstance(p, str) else p.label for p in self._pieces)}>"

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise BadRecipe(f"{self!r} {what}: it is known only when the job runs", remedy=remedy)


class StepHandle(Value):
    """The future result of a step, and the step itself: its condition, its order, its name."""

    __slots__ = ("_pending",)

    def __init__(self, pending: Pending) -> None:
        super().__init__(("steps.", pending, ".outputs"))
        self._pending = pending

    def when(self, condition: Any) -> StepHandle:
        """Run the step only if the condition holds. Otherwise the step is skipped, and its dependents continue."""
        pending = self._pending
        pending.when = _value(condition) if pending.when is None else pending.when & condition
        return self

    def after(self, *others: Any) -> StepHandle:
        """Run the step only after these steps, although it uses none of their results."""
        for other in others:
            if not isinstance(other, StepHandle):
                place = f"steps.{self._pending.label}.after"
                raise BadRecipe(f"{other!r} is not a step", place=place, remedy="Pass what a step's call returned")
            self._pending.after.append(other._pending)
        return self

    def named(self, name: str) -> StepHandle:
        """Name the step; the default is its handler's name."""
        if not isinstance(name, str):
            raise BadRecipe(f"a step's name is text, not {name!r}", place=f"steps.{self._pending.label}.named")
        self._pending.given_name = name
        return self

    def concurrency(self, key: str | Text | Value, limit: int | None = None, takes: int | None = None) -> StepHandle:
        """Limit how many steps with this key run at once, in all jobs: `limit`, or one by default.

        A step that `takes` 3 counts as three.
        """
        pending = self._pending
        pending.asks = replace(pending.asks, concurrency=key, limit=limit, takes=takes)
        return self

    def ttl(self, duration: str | float) -> StepHandle:
        """Limit the lifetime of the child job, for a recipe that is used as a step."""
        pending = self._pending
        pending.asks = replace(pending.asks, ttl_s=duration_s(duration, f"steps.{pending.label}.ttl"))
        return self


@dataclass(frozen=True, slots=True)
class Text:
    """Text that contains values; made by `text`."""

    pieces: tuple[str | Value, ...]

    def template(self) -> str:
        """Return the text as a template."""
        out: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, Value):
                # A dollar sign before a placeholder would read as an escape, so it becomes a separate placeholder.
                if out and out[-1].endswith("$"):
                    out[-1] = f'{out[-1][:-1]}${{"$"}}'
                out.append(f"${{{expression_text(piece)}}}")
            else:
                out.append(escape(piece))
        return "".join(out)


item = Value(("item",))
index = Value(("index",))


def text(template: str, /, **values: Any) -> Text:
    """Return text with values, each written `{name}`: `text("about {topic}", topic=topic)`."""
    pieces: list[str | Value] = []
    for plain, name, spec, conversion in string.Formatter().parse(template):
        _append(pieces, plain)
        if name is None:
            continue
        if spec or conversion or name not in values:
            hole = f"{{{name}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}"
            raise BadRecipe(f"{hole!r} in a text is not the name of a value", remedy=f"There is {sorted(values)}")
        value = values[name]
        _append(pieces, value if isinstance(value, Value) else str(value))
    return Text(tuple(pieces))


def _append(pieces: list[str | Value], piece: str | Value) -> None:
    """Append a piece, and join adjacent texts. Otherwise a `$` and a `{` from two texts would not be escaped."""
    if isinstance(piece, str) and pieces and isinstance(last := pieces[-1], str):
        pieces[-1] = last + piece
    elif isinstance(piece, Value) or piece:
        pieces.append(piece)


def expression_text(value: Value) -> str:
    """Return the expression of a value."""
    return "".join(piece if isinstance(piece, str) else piece.name for piece in value._pieces)


def steps_in(tree: Any) -> list[Pending]:
    """Return the steps that a tree of values refers to."""
    if isinstance(tree, Value):
        return [piece for piece in tree._pieces if isinstance(piece, Pending)]
    if isinstance(tree, Text):
        return [step for piece in tree.pieces for step in steps_in(piece)]
    if isinstance(tree, Mapping):
        return [step for part in tree.values() for step in steps_in(part)]
    if isinstance(tree, list | tuple):
        return [step for part in tree for step in steps_in(part)]
    return []


def uses_item(tree: Any) -> bool:
    """Return whether a tree of values refers to the item of a fan-out."""
    if isinstance(tree, Value):
        return "item" in tree._pieces
    if isinstance(tree, Text):
        return any(uses_item(piece) for piece in tree.pieces)
    if isinstance(tree, Mapping):
        return any(uses_item(part) for part in tree.values())
    return isinstance(tree, list | tuple) and any(uses_item(part) for part in tree)


def template_tree(tree: Any, place: str) -> Any:
    """Return a tree of values and constants as a template. Text from a Python author is always literal text."""
    if isinstance(tree, Value):
        return f"${{{expression_text(tree)}}}"
    if isinstance(tree, Text):
        return tree.template()
    if isinstance(tree, str):
        return escape(tree)
    if isinstance(tree, Mapping):
        return {key: template_tree(part, f"{place}.{key}") for key, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [template_tree(part, f"{place}[{at}]") for at, part in enumerate(tree)]
    if callable(tree):
        raise BadRecipe(f"{tree!r} is not a value", place=place, remedy="Call it, and pass what it returns")
    return tree


def _value(value: Any) -> Value:
    return value if isinstance(value, Value) else Value(_constant(value))


def as_items(value: Any) -> Value:
    """Return the items of a fan-out as a value; they are a value, or a list of values and constants."""
    return _value(value)


def _constant(value: Any) -> _Pieces:
    """Return a Python constant as a piece of an expression; lists may contain values."""
    if isinstance(value, Value):
        return value._pieces
    if value is None or isinstance(value, bool | int | float | str):
        return (literal(value),)
    if isinstance(value, list | tuple):
        pieces: list[str | Pending] = ["["]
        for at, part in enumerate(value):
            pieces.extend(([", "] if at else []) + list(_constant(part)))
        return (*pieces, "]")
    raise BadRecipe(
        f"a {type(value).__name__} cannot be part of an expression",
        remedy="Use text, numbers, true, false, null or lists; make it in a step otherwise",
    )


def _within(value: Value, rank: int) -> _Pieces:
    return value._pieces if value._rank >= rank else ("(", *value._pieces, ")")


def _binary(left: Any, operator: str, right: Any, rank: int) -> Value:
    # CEL comparisons do not chain as in Python, so a comparison inside another always gets parentheses.
    left_rank = rank + 1 if rank == _RELATION else rank
    pieces = (*_within(_value(left), left_rank), f" {operator} ", *_within(_value(right), rank + 1))
    return Value(pieces, rank)
