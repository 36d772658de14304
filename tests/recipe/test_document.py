"""Documents: the same plans as Python's, and errors that lead to the line."""

from __future__ import annotations

import json
from typing import Any

import pytest

import windlass as wl
from windlass.core.errors import BadExpression, BadRecipe, TooLarge
from windlass.core.plan import NodeKind, OnFailure
from windlass.recipe.document import plan_from_document, recipe_description, recipe_name
from windlass.recipe.draft import Known, Parameters

TRAILER = """
recipe: trailer
inputs: {topic: string}
steps:
  write_script: {run: write_script, with: {topic: "${inputs.topic}"}, retry: {max_attempts: 4}, timeout: 2m}
  render: {run: render, each: "${steps.write_script.outputs.scenes}", with: {scene: "${item}"}}
  stitch: {run: stitch, with: {shots: "${steps.render.outputs}"}, when: "${steps.write_script.outputs.approved}"}
output: "${steps.stitch.outputs}"
"""


@wl.step(retry=wl.Retry(max_attempts=4), timeout="2m")
async def write_script(topic: str) -> dict: ...  # type: ignore[empty-body]


@wl.step
async def render(scene: str) -> dict: ...  # type: ignore[empty-body]


@wl.step
def stitch(shots: list) -> str: ...  # type: ignore[empty-body]


@wl.recipe
def trailer(topic: str) -> Any:
    script = write_script(topic)
    shots = render.map(script["scenes"])
    return stitch(shots).when(script["approved"])


def test_a_document_and_a_function_that_say_the_same_have_the_same_hash() -> None:
    assert plan_from_document(TRAILER) == trailer.plan
    assert plan_from_document(TRAILER).hash == trailer.plan.hash


@pytest.mark.covers("SCR-18")
def test_yaml_json_and_a_mapping_are_the_same() -> None:
    body = {
        "recipe": "r",
        "inputs": {"a": "string"},
        "steps": {"x": {"run": "f", "with": {"text": "é \U0001f600 ${inputs.a}"}}},
        "output": "${steps.x.outputs}",
    }
    hashes = {plan_from_document(form).hash for form in (body, json.dumps(body), json.dumps(body).encode())}
    yaml = "recipe: r\ninputs: {a: string}\nsteps:\n  x:\n    run: f\n    with:\n      text: é 😀 ${inputs.a}\n"
    hashes.add(plan_from_document(yaml + "output: ${steps.x.outputs}").hash)
    assert len(hashes) == 1
    assert recipe_name(json.dumps(body)) == "r"


def test_every_key_has_its_effect() -> None:
    plan = plan_from_document("""
recipe: all-keys
on_failure: stop
steps:
  a: {run: f, queue: loud, retry: 7, timeout: 90}
  pause: {sleep: 5m, after: a}
  wait: {sleep: "${steps.a.outputs.seconds}", when: "steps.a.outputs.ok"}
  child: {recipe: other, with: {n: 1}, each: "[1, 2]", after: [pause, wait]}
  never: {run: g, when: false}
""")
    nodes = {node.name: node for node in plan.nodes}
    assert plan.on_failure is OnFailure.STOP
    assert (nodes["a"].queue, nodes["a"].retry.max_attempts, nodes["a"].timeout_s) == ("loud", 7, 90.0)
    assert (nodes["pause"].kind, nodes["pause"].with_, nodes["pause"].needs) == (
        NodeKind.TIMER,
        {"seconds": 300.0},
        ("a",),
    )
    assert nodes["wait"].with_ == {"seconds": "${steps.a.outputs.seconds}"}
    assert nodes["wait"].when == "steps.a.outputs.ok"
    assert (nodes["child"].kind, nodes["child"].run, nodes["child"].needs) == (
        NodeKind.RECIPE,
        "other",
        ("pause", "wait"),
    )
    assert nodes["never"].when == "false"
    assert plan.output is None


@pytest.mark.parametrize(
    ("inputs", "properties", "required"),
    [
        ("{a: string, b: integer}", {"a": {"type": "string"}, "b": {"type": "integer"}}, ["a", "b"]),
        ("{a: 'string?'}", {"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}, None),
        ("{a: 'number[]'}", {"a": {"type": "array", "items": {"type": "number"}}}, ["a"]),
        ("{a: any}", {"a": {}}, ["a"]),
        ("{a: {type: string, default: x}}", {"a": {"type": "string", "default": "x"}}, None),
        ("{properties: {a: {type: string}}, required: [a]}", {"a": {"type": "string"}}, ["a"]),
    ],
)
def test_inputs_may_be_short_or_a_whole_schema(inputs: str, properties: Any, required: Any) -> None:
    schema = plan_from_document(f"recipe: r\ninputs: {inputs}\nsteps: {{x: {{run: f}}}}").inputs_schema
    assert (schema["properties"], schema.get("required")) == (properties, required)


@pytest.mark.parametrize(
    ("steps", "place", "reason"),
    [
        ("x: {run: f, wth: 1}", "steps.x.wth", "'wth' is not known here (line 4). Did you mean with?"),
        ("x: {sleep: 5m, retry: 1}", "steps.x.retry", "'retry' is not known here"),
        ("x: {run: f, sleep: 1}", "steps.x", "this has run and sleep"),
        ("x: {with: {}}", "steps.x", "this has none of them"),
        ("x: [1]", "steps.x", "a mapping is needed here, not a list"),
        ("x: {run: 3}", "steps.x.run", "text is needed here, not a int"),
        ("x: {run: 'a b'}", "steps.x.run", "a handler's name cannot be 'a b'"),
        ("x: {recipe: 'a b'}", "steps.x.recipe", "a recipe's name cannot be 'a b'"),
        ("x: {run: f, queue: ''}", "steps.x.queue", "a queue's name cannot be ''"),
        ("x-y: {run: f}", "steps.x-y", "a step's name cannot be 'x-y'"),
        ("x: {run: f, after: [nope]}", "steps.x.after", "no step is called 'nope'"),
        ("x: {run: f, after: {a: 1}}", "steps.x.after", "a list of steps' names"),
        ("x: {run: f, retry: {max_atempts: 1}}", "steps.x.retry.max_atempts", "Did you mean max_attempts?"),
        ("x: {run: f, retry: {max_attempts: 0}}", "steps.x.retry", "max_attempts must be 1 to 1,000"),
        ("x: {run: f, timeout: 0}", "steps.x.timeout", "more than 0"),
        ("x: {run: f, timeout: soon}", "steps.x.timeout", "not a length of time"),
        ("x: {run: f, with: [1]}", "steps.x.with", "arguments are given by name"),
        ("x: {run: f, with: {a: .nan}}", "", ""),
        ("x: {run: f, with: {a: 99999999999999999999}}", "steps.x.with.a", "does not fit in 64 bits"),
        ("x: {run: f, with: {a: ['${steps.y.outputs}']}}", "steps.x.with", "no step is called 'y'"),
        ("x: {run: f, with: {a: '${inputs.topc}'}}", "steps.x.with", "Did you mean topic?"),
        ("x: {run: f, with: {a: '${nope}'}}", "steps.x.with.a", "`nope` is not known here"),
        ("x: {run: f, with: {a: '${1 +}'}}", "steps.x.with", "cannot be used: Syntax error"),
        ("x: {run: f, with: {a: '${frob(1)}'}}", "steps.x.with", "undeclared reference to 'frob'"),
        ("x: {run: f, when: '${1 + 1}'}", "steps.x.when", "gives int, and must give true or false"),
        ("x: {run: f, each: '${1 + 1}'}", "steps.x.each", "gives int, and must give a list"),
        ("x: {run: f, when: 'a ${inputs.topic}'}", "steps.x.when", ""),
        ("x: {run: f, when: '${inputs.topic} a'}", "steps.x.when", "without text around it"),
        ("x: {run: f, when: 3}", "steps.x.when", "text is needed here"),
        ("x: {run: f, when: '${item}'}", "steps.x.when", "`item` is known only in"),
        ("x: {run: f, each: '${item}'}", "steps.x.each", "`item` is known only in"),
        ("x: {run: f, with: {a: '${index}'}}", "steps.x.with", "`index` is known only in"),
        ("x: {run: f, with: {a: '${steps.x.outputs}'}}", "steps.x", "the step waits for itself"),
    ],
)
def test_a_mistake_is_refused_with_place_line_and_reason(steps: str, place: str, reason: str) -> None:
    text = f"recipe: r\ninputs: {{topic: string}}\nsteps:\n  {steps}\n"
    if not reason and not place:
        assert plan_from_document(text).nodes[0].with_ == {"a": ".nan"}
        return
    with pytest.raises(BadRecipe) as caught:
        plan_from_document(text)
    assert reason in str(caught.value)
    assert (caught.value.place, "(line 4)" in str(caught.value)) == (place, True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a mapping is needed here, not nothing"),
        ("[1]", "a mapping is needed here, not a list"),
        ("steps: {x: {run: f}}", "the recipe has no name"),
        ("recipe: r", "at least one step"),
        ("recipe: [r]\nsteps: {}", "recipe: text is needed here, not a list (line 1)"),
        ("recipe: a b\nsteps: {x: {run: f}}", "recipe: a recipe's name cannot be 'a b' (line 1)"),
        ("recipe: r\nstep: {}", "step: 'step' is not known here (line 2). Did you mean steps?"),
        ("recipe: r\nsteps: {x: {run: f}}\non_failure: panic", "on_failure: 'panic' is not finish or stop (line 3)"),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: [a]", "inputs: inputs are a mapping"),
        (
            "recipe: r\nsteps: {x: {run: f}}\ninputs: {a: strin}",
            "inputs.a: 'strin' is not a type (line 3). Did you mean",
        ),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: {a: 3}", "inputs.a: 3 is not a type"),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: {properties: {a: 3}}", "inputs.a: 3 is not a schema"),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: {a: {type: strin}}", "inputs.properties.a.type: the schema cannot"),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: {a: {$ref: 'http://h/x'}}", "the schema cannot be used"),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: {a: {$ref: 'file:///etc/passwd'}}", "the schema cannot be used"),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: {a: {pattern: '(?=a)b'}}", "the schema cannot be used"),
        ("recipe: r\nsteps: {x: {run: f}}\ninputs: {a: {type: string, default: 1}}", "the default does not fit"),
        ("recipe: r\nsteps: {x: {run: f}}\noutput: ${steps.y.outputs}", "output: no step is called 'y' (line 3)"),
        ("recipe: r\nsteps: {x: {run: f}}\noutput: ${item}", "output: `item` and `index`"),
        ("recipe: r\nsteps: {x: {run: f}}\noutput: ${1 +}", "output: `1 +` cannot be used"),
    ],
)
def test_a_document_that_is_wrong_as_a_whole_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadRecipe) as caught:
        plan_from_document(text)
    assert reason in str(caught.value)


def test_a_mapping_with_keys_that_are_not_text_is_refused() -> None:
    with pytest.raises(BadRecipe, match="the key 1 is not text"):
        plan_from_document({"recipe": "r", "steps": {1: {}}})


KNOWN = Known(
    {"f": Parameters(("a", "b"), frozenset({"a"})), "g": Parameters((), frozenset(), takes_any=True)},
    {"child": Parameters(("n",), frozenset({"n"}))},
)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("{run: ff, with: {a: 1}}", "steps.x.run: no handler is called 'ff' (line 3). Did you mean f?"),
        ("{run: f}", "steps.x.with: handler f needs 'a' (line 3)"),
        ("{run: f, with: {a: 1, c: 2}}", "steps.x.with.c: handler f takes no 'c' (line 3)"),
        ("{recipe: childs, with: {n: 1}}", "steps.x.recipe: no recipe is called 'childs'"),
        ("{recipe: child}", "steps.x.with: recipe child needs 'n'"),
    ],
)
def test_what_is_known_is_checked(step: str, reason: str) -> None:
    with pytest.raises(BadRecipe) as caught:
        plan_from_document(f"recipe: r\nsteps:\n  x: {step}", KNOWN)
    assert reason in str(caught.value)


def test_what_fits_what_is_known_passes() -> None:
    steps = "x: {run: f, with: {a: 1}}, y: {run: g, with: {z: 1}}, z: {recipe: child, with: {n: 1}}, t: {sleep: 1}"
    text = f"recipe: r\nsteps: {{{steps}}}"
    assert len(plan_from_document(text, KNOWN).nodes) == 4


def test_a_cycle_is_named_and_independent_of_the_order() -> None:
    steps = {
        "b": {"run": "f", "after": ["a"]},
        "a": {"run": "f", "with": {"x": "${steps.c.outputs}"}},
        "c": {"run": "f", "after": ["b"]},
    }
    for order in (("a", "b", "c"), ("c", "a", "b")):
        with pytest.raises(BadRecipe, match="a cycle: a waits for c, which waits for b, which waits for a") as caught:
            plan_from_document({"recipe": "r", "steps": {name: steps[name] for name in order}})
        assert caught.value.place == "steps.a"


def test_limits_are_limits() -> None:
    many = {f"s{n}": {"run": "f"} for n in range(10_001)}
    with pytest.raises(TooLarge, match="10,001 steps; at most 10,000"):
        plan_from_document({"recipe": "r", "steps": many})
    big = {f"s{n}": {"run": "f", "with": {"a": "x" * 10_000}} for n in range(430)}
    with pytest.raises(TooLarge, match="at most 4,194,304"):
        plan_from_document({"recipe": "r", "steps": big})
    long = "${" + "1 + " * 300 + "1}"
    with pytest.raises(BadExpression, match="at most 1,024"):
        plan_from_document({"recipe": "r", "steps": {"x": {"run": "f", "with": {"a": long}}}})
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(BadRecipe, match="nested deeper than 32"):
        plan_from_document({"recipe": "r", "steps": {"x": {"run": "f", "with": {"a": deep}}}})


def test_a_thousand_steps_in_a_chain_are_fine() -> None:
    steps = {f"s{n}": {"run": "f", "after": [f"s{n - 1}"] if n else []} for n in range(1000)}
    plan = plan_from_document({"recipe": "r", "steps": steps})
    assert [node.name for node in plan.nodes[:3]] == ["s0", "s1", "s2"]


def test_a_description_is_for_people_and_no_part_of_the_plan() -> None:
    described = f"description: |\n  Makes a film.\n\n    One scene at a time.\n{TRAILER}"
    assert plan_from_document(described).hash == plan_from_document(TRAILER).hash
    assert recipe_description(described) == "Makes a film.\n\n  One scene at a time."
    assert recipe_description(TRAILER) == recipe_description("description: null\nrecipe: r") == ""
    with pytest.raises(BadRecipe, match=r"description: text is needed here, not a int \(line 1\)"):
        plan_from_document(f"description: 3{TRAILER}")
