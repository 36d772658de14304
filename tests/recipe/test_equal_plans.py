"""One recipe, however it is written, is one plan; and a plan is what was stored."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import windlass as wl
from windlass.core.plan import Plan, plan_from_json
from windlass.recipe.document import plan_from_document

NAMES = [f"s{n}" for n in range(6)]
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(alphabet="ab ${}é", max_size=6)


# How much is asked for before a step runs: the same as Python writes it, and as a document does.
ASKED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({}, {}),
    ({"provider": "fal"}, {"provider": "fal"}),
    ({"provider": "fal", "wait": "30m", "cost": 2}, {"provider": "fal", "wait": 1800, "cost": 2.0}),
    ({"concurrency": "k:{inputs.topic}"}, {"concurrency": "k:${ inputs.topic }", "limit": 1}),
    ({"concurrency": "{inputs.n}", "limit": 3, "cost": 0.5}, {"concurrency": "${inputs.n}", "limit": 3, "cost": 0.5}),
    ({"concurrency": "a{{b", "wait": 9.0}, {"concurrency": "a{{b", "wait": "9s"}),
]


def work(**given: Any) -> Any:
    return given


@st.composite
def graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Steps in an order in which each refers only to earlier ones."""
    steps: list[dict[str, Any]] = []
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        earlier = [step["name"] for step in steps]
        pick = st.lists(st.sampled_from(earlier), max_size=2, unique=True) if earlier else st.just([])
        steps.append(
            {
                "name": name,
                "uses": draw(pick),
                "after": draw(pick),
                "when": draw(st.sampled_from([*earlier, None])) if earlier else None,
                "each": draw(st.sampled_from([*earlier, None, None])) if earlier else None,
                "constant": draw(VALUES),
                "asked": draw(st.integers(0, len(ASKED) - 1)),
                "told": draw(st.sampled_from([*earlier, None])) if earlier else None,
            }
        )
    return steps


def as_python(steps: list[dict[str, Any]]) -> Plan:
    def body(topic: str, n: int = 2) -> Any:
        handles: dict[str, Any] = {}
        for step in steps:
            given = {f"from_{name}": handles[name]["x"] for name in step["uses"]}
            given |= {"constant": [step["constant"]], "topic": topic}
            handler = wl.step(name=f"work_{step['name']}", **ASKED[step["asked"]][0])(work)
            if step["each"] is None:
                handle = handler(**given)
            else:
                handle = handler.map(handles[step["each"]]["list"], item=wl.item, **given)
            if step["told"] is not None:
                told = wl.wait_for("go", match={"n": n, "x": handles[step["told"]]["x"], "t": "${}"}, timeout="2h")
                told.named(f"told_{step['name']}")
            if step["when"] is not None:
                handle.when((handles[step["when"]]["score"] > n) & ~handles[step["when"]]["bad"])
            handles[step["name"]] = handle.after(*(handles[name] for name in step["after"])).named(step["name"])
        return {name: handle["y"] for name, handle in handles.items()}

    return wl.recipe(name="r")(body).plan


def as_document(steps: list[dict[str, Any]]) -> dict[str, Any]:
    def escaped(value: Any) -> Any:
        return value.replace("${", "$${") if isinstance(value, str) else value

    out: dict[str, Any] = {}
    for step in steps:
        given: dict[str, Any] = {f"from_{name}": f"${{ steps.{name}.outputs['x'] }}" for name in step["uses"]}
        given |= {"constant": [escaped(step["constant"])], "topic": "${inputs.topic}"}
        body: dict[str, Any] = {"run": f"work_{step['name']}", "with": given, "after": step["after"]}
        body |= ASKED[step["asked"]][1]
        if step["told"] is not None:
            match = {"n": "${inputs.n}", "x": f"${{steps.{step['told']}.outputs.x}}", "t": "$${}"}
            out[f"told_{step['name']}"] = {"wait_for": "go", "match": match, "timeout": 7200}
        if step["each"] is not None:
            body["each"] = f"${{steps.{step['each']}.outputs.list}}"
            given["item"] = "${item}"
        if step["when"] is not None:
            body["when"] = f"steps.{step['when']}.outputs.score>inputs.n &&!steps.{step['when']}.outputs.bad"
        out[step["name"]] = body
    return {
        "recipe": "r",
        "inputs": {"n": {"type": "integer", "default": 2}, "topic": "string"},
        "steps": out,
        "output": {name: f"${{steps.{name}.outputs.y}}" for name in out if not name.startswith("told_")},
    }


@settings(max_examples=60, deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_python_yaml_and_json_give_one_hash_in_any_order(steps: list[dict[str, Any]], rng: random.Random) -> None:
    plan = as_python(steps)
    document = as_document(steps)
    shuffled = list(document["steps"].items())
    rng.shuffle(shuffled)
    document["steps"] = dict(shuffled)
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    assert plan_from_document(document).canonical == plan.canonical
    assert plan_from_document(msgspec.json.encode(document)).hash == plan.hash
    assert plan_from_document(text).hash == plan.hash


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_a_plan_is_what_was_stored(steps: list[dict[str, Any]]) -> None:
    plan = plan_from_document(as_document(steps))
    again = plan_from_json(plan.canonical)
    assert again == plan
    assert again.hash == plan.hash


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_every_node_comes_after_all_that_it_needs(steps: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for node in plan_from_document(as_document(steps)).nodes:
        assert seen.issuperset(node.needs)
        assert list(node.needs) == sorted(set(node.needs))
        seen.add(node.name)


def test_another_recipe_has_another_hash() -> None:
    base: dict[str, Any] = {"recipe": "r", "steps": {"x": {"run": "f", "with": {"a": 1}}}}
    variants = [
        base,
        base | {"recipe": "s"},
        base | {"steps": {"y": {"run": "f", "with": {"a": 1}}}},
        base | {"steps": {"x": {"run": "g", "with": {"a": 1}}}},
        base | {"steps": {"x": {"run": "f", "with": {"a": 2}}}},
        base | {"steps": {"x": {"run": "f", "with": {"a": True}}}},
        base | {"steps": {"x": {"run": "f", "with": {"a": 1}, "retry": 9}}},
        base | {"steps": {"x": {"run": "f", "with": {"a": 1}, "timeout": 9}}},
        base | {"steps": {"x": {"run": "f", "with": {"a": 1}, "queue": "q"}}},
        base | {"output": "${steps.x.outputs}"},
        base | {"inputs": {"a": "string"}},
        base | {"on_failure": "stop"},
    ]
    assert len({plan_from_document(variant).hash for variant in variants}) == len(variants)
