"""Comments, docstrings, messages to users, SQL comments and documents are plain English.

A pronoun such as "whoever" or "one that" makes the reader search the code for the thing that the comment should name.
The counts are a smoke test of style, so a few are allowed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, Module, modules, project_files

PER_THOUSAND_MAX = {"comments": 1.0, "messages": 1.0, "sql": 1.0, "docs": 1.0, "tests": 1.0}
FORM = re.compile(
    r"\b(?:whoever|whatever|whichever|nobody|somebody|anybody|everybody|that which|who comes|"
    r"(?:those|these|they|ones?|he|others?) (?:who|that|which|whose|whom))\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z']+")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_text(module: Module) -> str:
    """The comments and docstrings of a Python file."""
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    comments = [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
    docstrings = [ast.get_docstring(node) for node in ast.walk(module.tree) if isinstance(node, DOCUMENTED)]
    return "\n".join([*comments, *filter(None, docstrings)])


def message_text(tree: ast.Module) -> str:
    """The texts for users in a Python file, such as errors and help: strings of three words or more."""
    skipped: set[ast.AST] = set()
    texts: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr):
            skipped.add(node.body[0].value)
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            texts.append("…".join(str(one.value) for one in node.values if isinstance(one, ast.Constant)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            texts.append(node.value)
    return "\n".join(text for text in texts if len(text.split()) >= 3)


def sql_text(path: Path) -> str:
    """The comments of an SQL file."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return "\n".join(line.lstrip("- ") for line in lines if line.startswith("--"))


def per_thousand(texts: Iterable[str]) -> float:
    """How often the forms occur in a thousand words, code left out."""
    words = forms = 0
    for text in texts:
        plain = CODE.sub(" ", text)
        words += len(WORD.findall(plain))
        forms += len(FORM.findall(plain))
    return 1000 * forms / words


def texts(kind: str) -> list[str]:
    """All texts of one kind."""
    match kind:
        case "comments":
            return [python_text(module) for module in modules("src")]
        case "tests":
            return [python_text(module) for module in modules("tests", "bench", "docs")]
        case "messages":
            return [message_text(module.tree) for module in modules("src")]
        case "sql":
            folder = ROOT / "src" / "windlass" / "store" / "sql"
            return [sql_text(path) for path in sorted(folder.glob("*.sql"))]
        case _:
            return [path.read_text(encoding="utf-8") for path in project_files() if path.suffix == ".md"]


@pytest.mark.parametrize("kind", sorted(PER_THOUSAND_MAX))
def test_the_prose_is_plain(kind: str) -> None:
    assert per_thousand(texts(kind)) <= PER_THOUSAND_MAX[kind]


def test_messages_are_read_and_docstrings_are_not() -> None:
    refusal = 'raise Refused(f"nobody has {x} yet", remedy="Ask its owner")'
    tree = ast.parse(f'def f():\n    """Whoever calls it."""\n    {refusal}\n')
    assert sorted(message_text(tree).split("\n")) == ["Ask its owner", "nobody has … yet"]


def test_the_forms_are_seen() -> None:
    assert per_thousand(["Whoever comes alone does it, and those who wait are told by one that nobody knows."]) == 250
    assert per_thousand(["A lone caller commits in its own task. `whoever` is a name here."]) == 0
