"""The bundled examples do what they say, walked through here without a database."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

import windlass
from windlass.core.errors import BadInput
from windlass.core.plan import NodeKind
from windlass.core.template import as_condition, as_items, plan_templates
from windlass.recipe.app import App, load
from windlass.recipe.evaluator import shared_evaluator
from windlass.recipe.schema import check_inputs

EXAMPLES = Path(windlass.__file__).parent / "examples"


def run(app: App, name: str, inputs: dict[str, Any]) -> Any:
    """Walk a plan in its own order: what an engine does, without anything that lasts."""
    plan = app.recipes[name].plan
    evaluator = shared_evaluator()
    scope: dict[str, Any] = {"inputs": check_inputs(plan, inputs), "steps": {}}
    templates = plan_templates(plan)

    def once(no: int, extra: dict[str, Any]) -> Any:
        node = plan.nodes[no]
        arguments = evaluator.resolve(templates.nodes[no].with_, scope | extra)
        if node.kind is NodeKind.TIMER:
            return arguments
        if node.kind is NodeKind.RECIPE:
            return run(app, node.run, arguments)
        result = app.steps[node.run](**arguments)
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    for no, node in enumerate(plan.nodes):
        template = templates.nodes[no]
        if template.when is not None and not as_condition(evaluator.resolve(template.when, scope), node.name):
            output: Any = {"skipped": True}
        elif template.each is not None:
            items = as_items(evaluator.resolve(template.each, scope), node.name)
            output = [once(no, {"item": item, "index": at}) for at, item in enumerate(items)]
        else:
            output = once(no, {})
        scope["steps"][node.name] = {"outputs": output}
    return evaluator.resolve(templates.output, scope)


def app(name: str) -> App:
    return load(str(EXAMPLES / name))


def test_hello_greets() -> None:
    assert run(app("hello.py"), "hello", {}) == "Hello, world!"
    assert run(app("hello.py"), "hello", {"name": "Ada"}) == "Hello, Ada!"


def test_a_trailer_is_rendered_joined_and_published() -> None:
    made = run(app("trailer.py"), "trailer", {"topic": "the sea"})
    assert made["film"]["shots"] == 4
    assert made["address"] == f"films/{made['film']['reel']}.mp4 (The Sea in noir)"


def test_a_poor_trailer_is_not_published() -> None:
    made = run(app("trailer.py"), "trailer", {"topic": "the sea", "scenes": 2})
    assert made["film"]["shots"] == 2
    assert made["address"] == {"skipped": True}


@pytest.mark.parametrize("name", ["trailer.py", "trailer.yaml"])
def test_a_trailer_of_millions_of_scenes_is_refused(name: str) -> None:
    plan = app(name).recipe().plan
    for scenes in (3_000_000, 201, 0, -1):
        with pytest.raises(BadInput, match="scenes"):
            check_inputs(plan, {"topic": "the sea", "scenes": scenes})
    assert check_inputs(plan, {"topic": "the sea", "scenes": 200})["scenes"] == 200


def test_no_example_calculates_on_the_event_loop() -> None:
    """An `async` handler that does not wait holds up everything else of its process, in `windlass up` the API too."""
    for path in EXAMPLES.glob("*.py"):
        for handler in ast.walk(ast.parse(path.read_text())):
            if isinstance(handler, ast.AsyncFunctionDef):
                assert any(isinstance(node, ast.Await) for node in ast.walk(handler)), f"{path.name}: {handler.name}"


def test_the_trailer_is_the_same_as_a_document() -> None:
    assert app("trailer.yaml").recipe().plan.hash == app("trailer.py").recipe().plan.hash
    both = load(str(EXAMPLES / "trailer.yaml"), str(EXAMPLES / "trailer.py"))
    assert set(both.recipes) == {"trailer"}


def test_a_nightly_report_adds_up() -> None:
    report = run(app("nightly_report.py"), "nightly_report", {"day": "2025-06-01"})
    assert report.startswith("Orders of 2025-06-01\n")
    assert len(report.splitlines()) == 6
    one = run(app("nightly_report.py"), "region_report", {"region": "north", "day": "2025-06-01"})
    assert f"{one['cents'] / 100:,.2f}" in report


@pytest.mark.parametrize("name", ["hello.py", "trailer.py", "nightly_report.py", "trailer.yaml"])
def test_an_example_fits_on_a_page(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) < 60
