"""Conditions of rules in CEL: `when: job.inputs.count > 100 && caller.tier != "gold"`.

Policies are written by operators, so their expressions run in this process, without a child. The limits refuse bombs
when the document is read:

    length 1,024 · brackets 32 deep · macros 2 deep · no `map`, no `+` inside a macro
    `matches` takes a literal, and inside of a macro only texts of the macro's own variable

The values come from callers. So the inputs that a condition reads are limited too (`check_inputs`). An error in CEL is
a value and not an exception; here it becomes `Undecided`, and the judge denies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

from windlass.core.errors import BadExpression
from windlass.core.expression import MACROS, Expression, Path, Token, nearest, parse_expression, tokens
from windlass.policy.question import CallerFacts, Question

ROOTS = ("job", "caller")
_JOB: Mapping[str, Callable[[Question], Any]] = {
    "edge": lambda question: question.edge.value,
    "topic": attrgetter("topic"),
    "recipe": attrgetter("recipe"),
    "step": attrgetter("step"),
    "id": attrgetter("job_id"),
    "tenant": attrgetter("tenant"),
    "labels": lambda question: dict(question.labels),
    "inputs": attrgetter("inputs"),
    "priority": attrgetter("priority"),
    "depth": attrgetter("depth"),
    "capability": attrgetter("capability"),
    "risk_tags": lambda question: sorted(question.risk_tags),
    "requires": lambda question: sorted(question.requires),
    "pack_id": attrgetter("pack_id"),
    "actor_id": attrgetter("actor_id"),
    "actor_type": attrgetter("actor_type"),
    "agent_risk_tier": attrgetter("agent_risk_tier"),
    "agent_data_classifications": lambda question: sorted(question.agent_data_classifications),
    "provider": attrgetter("provider"),
    "model": attrgetter("model"),
    "host": attrgetter("host"),
    "cost": lambda question: None if question.cost is None else float(question.cost),
}
_CALLER: Mapping[str, Callable[[CallerFacts], Any]] = {
    "id": attrgetter("id"),
    "type": attrgetter("type"),
    "tier": attrgetter("tier"),
    "role": attrgetter("role"),
    "scopes": lambda caller: sorted(caller.scopes),
}
JOB_FIELDS = tuple(_JOB)
CALLER_FIELDS = tuple(_CALLER)
FIELDS = {"job": JOB_FIELDS, "caller": CALLER_FIELDS}

# A condition may compare every item of a list with every item of another, so these bound the square of the items.
INPUT_VALUES_MAX = 2_000
INPUT_CHARS_MAX = 64 << 10
INPUT_DEPTH_MAX = 16
_FEW = 20
_SHORT = 100
_COMPILER = re.compile(r"ERROR: <input>:\d+:(\d+): (.*)")
_STATUS = re.compile(r"^[A-Z_]+: ")
_CONTAINER = " (in container '')"
# CEL has whole numbers of 64 bits.
_WHOLE_MAX = 2**63 - 1


class Undecided(Exception):
    """A condition cannot be decided. The judge turns it into a refusal; it never leaves this room."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The values that conditions read. None means that they may read any of them."""

    job: frozenset[str] | None = frozenset()
    caller: frozenset[str] | None = frozenset()
    inputs: frozenset[str] | None = frozenset()
    labels: frozenset[str] | None = frozenset()

    def __or__(self, other: Reads) -> Reads:
        return Reads(
            _either(self.job, other.job),
            _either(self.caller, other.caller),
            _either(self.inputs, other.inputs),
            _either(self.labels, other.labels),
        )


ALL_READS = Reads(None, None, None, None)


@dataclass(frozen=True, slots=True)
class When:
    """A compiled condition, and the values that it reads."""

    text: str
    program: Any
    reads: Reads

    def holds(self, activation: Any) -> bool:
        """Return the condition's value. Raises Undecided for an error and for a value that is not a boolean."""
        try:
            answer = self.program.eval(activation=activation)
            value = answer.value()
        except Exception as error:
            # The binding raises some errors of CEL's C++ code, such as an exhausted budget.
            raise Undecided(f"`{self.text}` failed: {_short(str(error))}") from None
        if value is True or value is False:
            return bool(value)
        if answer.type().name() in ("ERROR", "UNKNOWN"):
            raise Undecided(f"`{self.text}` failed: {_short(_STATUS.sub('', str(value)))}")
        raise Undecided(f"`{self.text}` is {_short(repr(value))}, not true or false")


@lru_cache(maxsize=4_096)
def compile_when(text: str) -> When:
    """Check and compile a condition. Raises `BadExpression` with the reason."""
    expression = parse_expression(text.strip(), is_condition=True, roots=ROOTS)
    for path in expression.paths:
        _check_path(path)
    _check_matches(tokens(expression.text))
    try:
        program = _environment().compile(expression.text)
    except RuntimeError as error:
        raise BadExpression(_reason(str(error))) from None
    kind = program.return_type().name()
    if kind not in ("BOOL", "DYN"):
        raise BadExpression(f"`{expression.text}` is a {kind.lower()}, not true or false")
    return When(expression.text, program, _reads(expression))


def activation_of(question: Question, tenant: str, reads: Reads) -> Any:
    """Return the values of a question for CEL. Only values that conditions read are converted, because it is slow.

    `tenant` is the tenant of the question in lower case, or the default tenant.
    """
    job = {name: _JOB[name](question) for name in _some(reads.job, JOB_FIELDS)}
    if "tenant" in job:
        job["tenant"] = tenant
    if "inputs" in job:
        job["inputs"] = _checked(question.inputs, reads.inputs)
    caller = {name: _CALLER[name](question.caller) for name in _some(reads.caller, CALLER_FIELDS)}
    return _environment().Activation(data={"job": job, "caller": caller})


def _checked(inputs: Mapping[str, Any], names: frozenset[str] | None) -> Mapping[str, Any]:
    """Return the named inputs. Raises Undecided if they are too large for a condition."""
    if names is None:
        check_inputs(inputs)
        return inputs
    found = {name: inputs[name] for name in names if name in inputs}
    # Most conditions read a few small values, which need no walk.
    if len(found) > _FEW or not all(_is_small(value) for value in found.values()):
        check_inputs(found)
    return found


def _is_small(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return len(value) < _SHORT and value.isascii()
    return kind is bool or (kind is int and -_WHOLE_MAX <= value <= _WHOLE_MAX)


def check_inputs(inputs: Mapping[str, Any]) -> None:
    """Raise Undecided if the inputs are too large for a condition, or are not JSON.

    The walk is a loop: a caller's nesting must not use up the stack, neither here nor in the conversion to CEL.
    """
    stack: list[tuple[Any, int]] = [(inputs, 0)]
    values = chars = 0
    while stack:
        value, depth = stack.pop()
        values += 1
        if isinstance(value, str):
            chars += len(value)
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise Undecided("the inputs have text that is not Unicode")
        elif isinstance(value, Mapping):
            chars += sum(len(key) for key in value)
            stack.extend((part, depth + 1) for part in value.values())
        elif isinstance(value, list | tuple):
            stack.extend((part, depth + 1) for part in value)
        elif isinstance(value, int):
            if not -_WHOLE_MAX <= value <= _WHOLE_MAX:
                raise Undecided("the inputs have a whole number of more than 64 bits")
        elif value is not None and not isinstance(value, float):
            raise Undecided(f"the inputs have a {type(value).__name__}, which is not JSON")
        if values + len(stack) > INPUT_VALUES_MAX or chars > INPUT_CHARS_MAX or depth > INPUT_DEPTH_MAX:
            raise Undecided(
                f"conditions read inputs of more than {INPUT_VALUES_MAX:,} values, {INPUT_CHARS_MAX:,} characters or "
                f"{INPUT_DEPTH_MAX} levels"
            )


@cache
def _environment() -> Any:
    # The import takes some milliseconds, which commands that judge nothing need not spend.
    from cel_expr_python import cel

    return cel.NewEnv(variables=dict.fromkeys(ROOTS, cel.Type.DYN))


def _check_path(path: Path) -> None:
    root = str(path[0])
    if len(path) > 1 and path[1] not in FIELDS[root]:
        raise BadExpression(f"`{root}` has no `{path[1]}`: {nearest(str(path[1]), FIELDS[root])}")


def _reads(expression: Expression) -> Reads:
    return Reads(
        _names(expression, ("job",)),
        _names(expression, ("caller",)),
        _names(expression, ("job", "inputs")),
        _names(expression, ("job", "labels")),
    )


def _names(expression: Expression, above: Path) -> frozenset[str] | None:
    """Return the names that the expression reads below a path, or None if it may read any of them."""
    names = set()
    for path in expression.paths:
        if path[: len(above)] != above[: len(path)]:
            continue
        if len(path) <= len(above) or not isinstance(path[len(above)], str):
            return None
        names.add(str(path[len(above)]))
    return frozenset(names)


def _either(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    return None if left is None or right is None else left | right


def _some(names: frozenset[str] | None, known: tuple[str, ...]) -> Iterable[str]:
    return known if names is None else names


def _check_matches(found: list[Token]) -> None:
    """Refuse regular expressions that callers choose, and expressions that a macro runs over one text repeatedly."""
    variables: list[str] = []
    for at, token in enumerate(found):
        if token.text == "(":
            is_macro = at > 1 and found[at - 1].text in MACROS and found[at - 2].text == "."
            variables.append(found[at + 1].text if is_macro else "")
        elif token.text == ")" and variables:
            variables.pop()
        elif token.text == "matches" and at + 1 < len(found) and found[at + 1].text == "(":
            _check_match(found, at, [name for name in variables if name])


def _check_match(found: list[Token], at: int, variables: list[str]) -> None:
    following = [token.kind if token.kind in ("string", "raw") else token.text for token in found[at + 1 : at + 4]]
    if following[1:2] not in (["string"], ["raw"]) or following[2:] != [")"]:
        raise BadExpression("`matches` takes one literal", remedy='Write for example job.host.matches("^api[.]")')
    start = at - 1
    while start > 0 and (found[start - 1].kind in ("name", "quoted") or found[start - 1].text == "."):
        start -= 1
    if variables and found[start].text != variables[-1]:
        raise BadExpression(
            "inside of a macro `matches` looks only at texts of the macro's variable",
            remedy='Write for example job.inputs.hosts.all(h, h.matches("^api[.]"))',
        )


def _reason(text: str) -> str:
    """Return the message of CEL's compiler, with its position as a character of the expression."""
    found = _COMPILER.search(text)
    if found is None:
        return _short(_STATUS.sub("", text))
    return f"{_short(found[2].removesuffix(_CONTAINER))} (at character {found[1]})"


def _short(text: str) -> str:
    line = text.partition("\n")[0].replace(" : ", ": ")
    return line if len(line) <= 200 else f"{line[:197]}…"
