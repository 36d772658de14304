"""Nothing grows past what a reader can hold: the tail of the size distribution is what makes code unreadable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.sources import modules, sample

FILE_LINES_MAX = 450
TEST_FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60
TEST_FUNCTION_LINES_MAX = 70
EXAMPLE_LINES_MAX = 60


def long_functions(tree: ast.Module, lines_max: int) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > lines_max:
                yield f"{node.name} has {lines} lines"


def test_no_file_is_too_long() -> None:
    offences = []
    for module in modules():
        lines = module.text.count("\n")
        lines_max = TEST_FILE_LINES_MAX if module.name.startswith("tests/") else FILE_LINES_MAX
        if lines > lines_max:
            offences.append(f"{module.name}: {lines} lines, at most {lines_max}")
    assert not offences, offences


def test_no_function_is_too_long() -> None:
    offences = []
    for module in modules():
        lines_max = TEST_FUNCTION_LINES_MAX if module.name.startswith("tests/") else FUNCTION_LINES_MAX
        offences += [f"{module.name}: {offence}" for offence in long_functions(module.tree, lines_max)]
    assert not offences, offences


def test_an_example_fits_on_a_page() -> None:
    examples = [module for module in modules("src") if "examples" in module.path.parts]
    assert examples, "the bundled examples are gone"
    assert [m.name for m in examples if m.text.count("\n") > EXAMPLE_LINES_MAX] == []


def test_a_long_function_is_seen() -> None:
    body = "\n".join(f"    x = {i}" for i in range(FUNCTION_LINES_MAX))
    assert list(long_functions(sample(f"async def slow():\n{body}"), FUNCTION_LINES_MAX)) == ["slow has 61 lines"]
