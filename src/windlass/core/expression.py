"""Parses and checks the CEL expressions between `${` and `}`, token by token.

This module evaluates nothing. It splits an expression into tokens, checks the limits that keep it cheap, and prints it
in one canonical spelling. So equal recipes have equal hashes. It also collects the references:

    inputs.<name> …                 the job's inputs
    steps.<name>.outputs …          the output of a step
    item, index                     the item of a fan-out, and its index

The limits do not prove that an expression is harmless; the evaluator's separate process contains a hostile expression.
The limits refuse honest mistakes at registration, where the recipe's author reads the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache

import msgspec

from windlass.core.errors import BadExpression

EXPRESSION_CHARS_MAX = 1024
MACRO_DEPTH_MAX = 2
BRACKET_DEPTH_MAX = 32

ROOTS = ("inputs", "steps", "item", "index")
# An expression of a policy, and of a recipe.
_EXAMPLES = ('caller.tier == "gold"', "${inputs.topic}")
MACROS = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
_WORDS = frozenset({"true", "false", "null", "in"})
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})
_CLOSING = {"(": ")", "[": "]", "{": "}"}

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n\f]+|//[^\n]*)
    | (?P<raw>(?:[rR][bB]?|[bB][rR])(?:'''.*?'''|\"\"\".*?\"\"\"|'[^'\r\n]*'|"[^"\r\n]*"))
    | (?P<string>[bB]?(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^\\'\r\n])*'|"(?:\\.|[^\\"\r\n])*"))
    | (?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+)?\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<quoted>`[^`\n]*`)
    | (?P<op>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
# A string with the same meaning in every quoting; it is printed in double quotes.
_PLAIN_STRING = re.compile(r"""(?:'[^'"\\\n]*'|"[^'"\\\n]*")""")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Part = str | int
Path = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an expression: its kind, its text, and its position in the expression."""

    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that passed the checks, in its canonical spelling.

    `path` is set if the expression is a plain path, which needs no evaluator. `paths` are all references, as far as
    they are known before evaluation: `steps.a.outputs.list[inputs.n]` refers to `steps.a.outputs.list` and
    `inputs.n`.
    """

    text: str
    path: Path | None
    paths: tuple[Path, ...]

    @property
    def steps(self) -> frozenset[str]:
        """The names of the referenced steps."""
        return frozenset(str(path[1]) for path in self.paths if path[0] == "steps")

    @property
    def inputs(self) -> frozenset[str]:
        """The names of the referenced inputs; the bare `inputs` names none."""
        return frozenset(str(path[1]) for path in self.paths if path[0] == "inputs" and len(path) > 1)

    def uses(self, root: str) -> bool:
        """Return whether the expression refers to this root."""
        return any(path[0] == root for path in self.paths)


@lru_cache(maxsize=4096)
def parse_expression(text: str, *, is_condition: bool = False, roots: tuple[str, ...] = ROOTS) -> Expression:
    """Check an expression and collect its references. Raises `BadExpression` with the reason but without a place.

    `roots` are the names with which references begin. Conditions of policies have other roots than recipes.
    """
    if len(text) > EXPRESSION_CHARS_MAX:
        raise BadExpression(f"an expression of {len(text):,} characters; at most {EXPRESSION_CHARS_MAX:,} are allowed")
    found = tokens(text)
    if not found:
        raise BadExpression("an empty expression", remedy=f"Write for example {_EXAMPLES[roots == ROOTS]}")
    walk = _Walk(found, is_condition, roots)
    paths = walk.run()
    path = paths[0] if len(paths) == 1 and walk.is_path else None
    if roots == ROOTS:
        for each in paths:
            _check_path(each)
    return Expression(path_text(path) if path else _canonical(found), path, tuple(dict.fromkeys(paths)))


def lint(text: str, place: str = "", *, is_condition: bool = False) -> Expression:
    """Parse an expression like `parse_expression`, and add the place to the error."""
    try:
        return parse_expression(text.strip(), is_condition=is_condition)
    except BadExpression as error:
        raise BadExpression(error.message, place=place, remedy=error.remedy) from None


def path_text(path: Path) -> str:
    """Return a path as an expression spells it: names after dots, other parts in brackets."""
    out = [str(path[0])]
    for part in path[1:]:
        if isinstance(part, str) and _NAME.fullmatch(part) and part not in _WORDS:
            out.append(f".{part}")
        else:
            out.append(f"[{literal(part)}]")
    return "".join(out)


def literal(value: str | int | float | bool | None) -> str:
    """Return a value as CEL spells it. CEL took its literals from JSON."""
    return msgspec.json.encode(value).decode()


def closing_brace(text: str, start: int) -> int:
    """Return the position of the `}` that ends the expression starting at `start`, or -1."""
    depth = 0
    at = start
    while at < len(text):
        match = _TOKEN.match(text, at)
        # `parse_expression` later reports a character that starts no token, with the expression around it.
        piece = match.group() if match else text[at]
        if piece == "{":
            depth += 1
        elif piece == "}":
            if depth == 0:
                return at
            depth -= 1
        at += len(piece)
    return -1


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the closest known name, or all names if none is close."""
    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    if not names:
        return "there are none"
    shown = ", ".join(names[:12])
    return f"there is {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def tokens(text: str) -> list[Token]:
    """Return the tokens of an expression. Raises `BadExpression` for a character that starts no token."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            what = "a string that does not end" if text[at] in "'\"`" else f"an unexpected {text[at]!r}"
            raise BadExpression(f"{what} at character {at + 1} of `{_short(text)}`")
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match.group(), at))
        at = match.end()
    return found


@dataclass(slots=True)
class _Frame:
    """An open bracket, and the variable that a macro declares in it."""

    opening: str
    is_macro: bool = False
    variable: str = ""
    commas: int = 0

    @property
    def is_body(self) -> bool:
        return self.is_macro and self.commas > 0


@dataclass(slots=True)
class _Walk:
    """One pass over the tokens, with a stack of open brackets, that checks limits and collects references."""

    tokens: list[Token]
    is_condition: bool
    roots: tuple[str, ...]
    frames: list[_Frame] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    is_path: bool = False

    def run(self) -> list[Path]:
        at = 0
        while at < len(self.tokens):
            at = self._step(at)
        if self.frames:
            raise BadExpression(f"a {self.frames[-1].opening!r} that is never closed")
        return self.paths

    def _text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def _step(self, at: int) -> int:
        token = self.tokens[at]
        if token.kind == "op":
            self._operator(token, at)
        elif token.kind == "name" and self._is_root(token, at):
            return self._root(at)
        return at + 1

    def _operator(self, token: Token, at: int) -> None:
        if token.text in _CLOSING:
            self._open(token, at)
        elif token.text in _CLOSING.values():
            if not self.frames or _CLOSING[self.frames.pop().opening] != token.text:
                raise BadExpression(f"a {token.text!r} at character {token.at + 1} that closes nothing")
        elif token.text == "," and self.frames:
            self.frames[-1].commas += 1
        elif token.text == "+" and any(frame.is_body for frame in self.frames):
            raise BadExpression(
                "`+` inside a macro is refused, because it can fill the memory",
                remedy="Do the addition in a step",
            )

    def _open(self, token: Token, at: int) -> None:
        if len(self.frames) >= BRACKET_DEPTH_MAX:
            raise BadExpression(f"brackets are nested deeper than {BRACKET_DEPTH_MAX}")
        before = self.tokens[at - 1] if at else None
        if token.text == "{" and before is not None and before.kind == "name":
            raise BadExpression(f"`{before.text}{{…}}` constructs a message, and messages are not supported")
        frame = _Frame(token.text)
        is_call = token.text == "(" and before is not None and before.kind == "name"
        if is_call and before is not None and before.text in MACROS and self._text(at - 2) == ".":
            self._check_macro(before.text)
            frame = _Frame(token.text, is_macro=True, variable=self._macro_variable(before.text, at))
        self.frames.append(frame)

    def _check_macro(self, name: str) -> None:
        if name == "map" and self.is_condition:
            raise BadExpression("`map` is refused in a condition", remedy="Write exists, all or filter instead")
        if 1 + sum(frame.is_macro for frame in self.frames) > MACRO_DEPTH_MAX:
            raise BadExpression(f"macros are nested deeper than {MACRO_DEPTH_MAX}", remedy="Do this work in a step")

    def _macro_variable(self, macro: str, at: int) -> str:
        variable = self._text(at + 1)
        if self._text(at + 2) != "," or not _NAME.fullmatch(variable):
            raise BadExpression(f"`{macro}` takes a variable and an expression, as in list.{macro}(x, x > 0)")
        if variable in self.roots or variable in _WORDS:
            raise BadExpression(f"`{variable}` cannot be the variable of `{macro}`", remedy="Call it x")
        return variable

    def _is_root(self, token: Token, at: int) -> bool:
        """Return whether a name refers to the scope: it is not a field, a function, a type or a macro's variable."""
        if self._text(at - 1) == ".":
            if at == 1 or not _ends_value(self.tokens[at - 2]):
                raise BadExpression(f"a dot before `{token.text}` with nothing in front of it")
            return False
        if token.text in _WORDS or self._text(at + 1) == "(":
            return False
        if any(frame.variable == token.text for frame in self.frames):
            return False
        if token.text in self.roots:
            return True
        if token.text in _TYPES:
            return False
        raise BadExpression(f"`{token.text}` is not known here", remedy=f"Names begin with {', '.join(self.roots)}")

    def _root(self, at: int) -> int:
        """Follow `.name`, `["name"]` and `[0]` as far as they are known before evaluation."""
        path: list[Part] = [self.tokens[at].text]
        start = at
        at += 1
        while True:
            if self._text(at) == "." and self._text(at + 2) != "(":
                part = self._field(at + 1)
                width = 2
            elif self._text(at) == "[" and self._text(at + 2) == "]":
                part = self._key(at + 1)
                width = 3
            else:
                break
            if part is None:
                break
            path.append(part)
            at += width
        self.paths.append(tuple(path))
        self.is_path = start == 0 and at == len(self.tokens)
        return at

    def _field(self, at: int) -> Part | None:
        kind = self.tokens[at].kind if at < len(self.tokens) else ""
        if kind == "name":
            return self.tokens[at].text
        if kind == "quoted":
            return self.tokens[at].text[1:-1]
        raise BadExpression("a dot with no name after it")

    def _key(self, at: int) -> Part | None:
        token = self.tokens[at]
        if token.kind == "string" and _PLAIN_STRING.fullmatch(token.text):
            return token.text[1:-1]
        if token.kind == "number" and token.text.isdecimal():
            return int(token.text)
        return None


def _ends_value(token: Token) -> bool:
    return token.kind != "op" or token.text in _CLOSING.values()


def _check_path(path: Path) -> None:
    """Refuse a path that does not name its step literally: it could not become a dependency."""
    if path[0] == "steps":
        if len(path) < 2 or not isinstance(path[1], str):
            raise BadExpression("`steps` must name a step", remedy="Write steps.<name>.outputs")
        if len(path) < 3 or path[2] != "outputs":
            raise BadExpression(
                f"a step has only `outputs` to read, not `{path_text(path)}`",
                remedy=f"Write steps.{path[1]}.outputs",
            )
    if path[0] == "inputs" and len(path) > 1 and not isinstance(path[1], str):
        raise BadExpression("inputs are read by name", remedy="Write inputs.<name>")
    if path[0] == "index" and len(path) > 1:
        raise BadExpression("`index` is a number and has no parts")


def _canonical(tokens: list[Token]) -> str:
    """Return the tokens in one spelling: no comments, one space around operators, plain strings in double quotes."""
    out: list[str] = []
    previous: Token | None = None
    is_prefix = False
    for token in tokens:
        text = token.text
        if token.kind == "string" and _PLAIN_STRING.fullmatch(text):
            text = f'"{text[1:-1]}"'
        if previous is not None and not is_prefix and _has_space(previous, token):
            out.append(" ")
        # A minus without a value in front of it is a sign, not an operator.
        is_prefix = text == "!" or (text == "-" and (previous is None or not _ends_value(previous)))
        out.append(text)
        previous = token
    return "".join(out)


def _has_space(left: Token, right: Token) -> bool:
    if left.text in (".", "(", "[", "{") or right.text in (".", ")", "]", "}", ",", ":"):
        # `a ? b : c` and `{a: b}` both print their colon as `a: b`, so the rule need not tell them apart.
        return False
    if right.text in ("(", "["):
        return not _ends_value(left) or left.text == "in"
    return True


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
