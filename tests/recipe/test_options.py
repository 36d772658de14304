"""What steps ask for before they run, and what they wait for: written in Python and in documents, and refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windlass as wl
from windlass.core.errors import BadExpression, BadRecipe
from windlass.core.plan import PROVIDER_HANDLER, Node, NodeKind, Plan, plan_from_json
from windlass.core.template import compile_template, plan_templates
from windlass.recipe.document import plan_from_document
from windlass.recipe.draft import Known, Parameters
from windlass.recipe.options import key_template


@wl.step(provider="fal", places=2, concurrency="render:{inputs.user}", limit=8, takes=3, cost=0.05, wait="30m")
async def render(scene: str) -> Any:
    return scene


@wl.step
def script(user: str) -> Any:
    return user


@wl.recipe
def dub(user: str) -> Any:
    return script(user)


fal = wl.provider(
    "fal", wait="30m", cost=1, concurrency="all", retry=wl.Retry(max_attempts=2), queue="slow", timeout=60
)


@wl.recipe(name="r")
def written(user: str) -> Any:
    shots = render.map([user])
    poster = fal(model="flux", input={"prompt": shots[0]}).named("poster")
    thumbs = fal.map(shots, model="flux").named("thumbs")
    frames = fal.map(shots, model="flux", input={"image": wl.item, "no": wl.index}).named("frames")
    talk = wl.call("open.ai", model="m", input="hi").concurrency(wl.text("talk:{who}", who=shots[0]), 3, 2)
    dubbed = dub(user).ttl("1h")
    approved = wl.wait_for("approved", match={"user": user, "n": 1}, timeout="2d").after(poster, talk)
    seen = wl.wait_for("seen", match={"no": wl.item}, each=shots).named("seen_by_all")
    return {"approved": approved, "dubbed": dubbed, "thumbs": thumbs, "frames": frames, "seen": seen}


DOCUMENT = """
recipe: r
inputs: {user: string}
steps:
  render:
    run: render
    each: ${[inputs.user]}
    with: {scene: "${item}"}
    provider: fal
    places: 2
    concurrency: "render:${ inputs.user }"
    limit: 8
    takes: 3
    cost: 0.05
    wait: 30m
  poster: &poster
    provider: fal
    with: {model: flux, input: {prompt: "${steps.render.outputs[0]}"}}
    wait: 1800
    cost: 1
    concurrency: all
    retry: 2
    queue: slow
    timeout: 60
  thumbs:
    provider: fal
    run: windlass.provider
    each: ${steps.render.outputs}
    with: {model: flux, input: "${item}"}
    wait: 1800
    cost: 1.0
    concurrency: all
    limit: 1
    retry: 2
    queue: slow
    timeout: 60
  frames:
    provider: fal
    each: ${steps.render.outputs}
    with: {model: flux, input: {image: "${item}", no: "${index}"}}
    wait: 1800
    cost: 1.0
    concurrency: all
    retry: 2
    queue: slow
    timeout: 60
  open_ai:
    provider: open.ai
    with: {model: m, input: hi}
    concurrency: "talk:{steps.render.outputs[0]}"
    limit: 3
    takes: 2
  dub: {recipe: dub, with: {user: "${inputs.user}"}, ttl: 1h}
  approved: {wait_for: approved, match: {user: "${inputs.user}", n: 1}, timeout: 2d, after: [poster, open_ai]}
  seen_by_all: {wait_for: seen, match: {no: "${item}"}, each: "steps.render.outputs"}
output:
  approved: ${steps.approved.outputs}
  dubbed: ${steps.dub.outputs}
  thumbs: ${steps.thumbs.outputs}
  frames: ${steps.frames.outputs}
  seen: ${steps.seen_by_all.outputs}
"""


def node(plan: Plan, name: str) -> Node:
    return plan.nodes[plan.number[name]]


def test_python_and_a_document_give_one_hash() -> None:
    assert plan_from_document(DOCUMENT).canonical == written.plan.canonical


def test_a_plan_with_all_of_it_is_what_was_stored() -> None:
    again = plan_from_json(written.plan.canonical)
    assert again == written.plan
    assert (again.is_slotted, again.has_events) == (True, True)


def test_what_was_asked_for_is_in_the_plan() -> None:
    made = node(written.plan, "render")
    assert (made.provider, made.places, made.concurrency, made.limit, made.takes, made.cost, made.wait_s) == (
        "fal", 2, "render:${inputs.user}", 8, 3, 0.05, 1800.0,
    )  # fmt: skip
    assert node(written.plan, "open_ai").takes == 2
    assert (node(written.plan, "poster").run, node(written.plan, "poster").limit) == (PROVIDER_HANDLER, 1)
    assert node(written.plan, "dub").ttl_s == 3600.0
    waits = node(written.plan, "approved")
    assert (waits.kind, waits.run, waits.with_, waits.wait_s) == (
        NodeKind.EVENT, "approved", {"user": "${inputs.user}", "n": 1}, 172800.0,
    )  # fmt: skip


def test_a_key_that_uses_another_step_waits_for_it() -> None:
    assert node(written.plan, "open_ai").needs == ("render",)
    [key] = [t.concurrency for t in plan_templates(written.plan).nodes if t.concurrency and t.concurrency.steps]
    assert key.steps == {"render"}


def test_a_key_of_a_fan_out_may_use_its_items() -> None:
    body = {"run": "f", "each": "inputs.xs", "concurrency": "k:{item.id}:{index}"}
    plan = plan_from_document({"recipe": "r", "inputs": {"xs": "object[]"}, "steps": {"x": body}})
    assert plan.nodes[0].concurrency == "k:${item.id}:${index}"


def test_a_plan_without_any_of_it_has_the_hash_that_it_always_had() -> None:
    plain = {"recipe": "r", "steps": {"a": {"run": "f"}, "b": {"recipe": "c"}, "t": {"sleep": 3}}}
    assert plan_from_document(plain).canonical == (
        b'{"format":1,"inputs":{"additionalProperties":false,"properties":{},"type":"object"},"output":null,'
        b'"recipe":"r","steps":[{"name":"a","run":"f"},{"kind":"recipe","name":"b","run":"c"},'
        b'{"kind":"timer","name":"t","with":{"seconds":3.0}}]}'
    )


def test_each_of_it_makes_another_plan() -> None:
    base: dict[str, Any] = {"run": "f", "concurrency": "k"}
    variants = [
        base,
        base | {"concurrency": "l"},
        base | {"limit": 2},
        base | {"limit": 2, "takes": 2},
        base | {"provider": "fal", "places": 2},
        base | {"cost": 1},
        base | {"wait": 1},
        base | {"provider": "fal"},
        {"recipe": "f"},
        {"recipe": "f", "ttl": 9},
        {"wait_for": "f"},
        {"wait_for": "f", "timeout": 9},
        {"wait_for": "f", "match": {"a": 1}},
    ]
    assert len({plan_from_document({"recipe": "r", "steps": {"x": v}}).hash for v in variants}) == len(variants)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"run": "f", "provider": ""}, r"steps.x.provider: a provider's name cannot be ''"),
        ({"run": "f", "provider": 7}, r"steps.x.provider: a provider's name cannot be 7"),
        ({"run": "f", "limit": 2}, r"steps.x.limit: .* this step has no key"),
        ({"run": "f", "concurrency": "k", "limit": 0}, r"steps.x.limit: a limit must be 1 to 1,000,000, not 0"),
        ({"run": "f", "concurrency": "k", "limit": True}, r"steps.x.limit: .* not True"),
        ({"run": "f", "takes": 2}, r"steps.x.takes: .* this step has no key"),
        ({"run": "f", "concurrency": "k", "takes": 2}, r"steps.x.takes: .*take 2 .*: no limit is set, so there is 1"),
        ({"run": "f", "concurrency": "k", "limit": 8, "takes": 9}, r"steps.x.takes: .*take 9 .*: its limit is 8"),
        (
            {"run": "f", "concurrency": "k", "limit": 8, "takes": 0},
            r"steps.x.takes: a step takes 1 to .*, not 0",
        ),
        ({"run": "f", "concurrency": "k", "limit": 8, "takes": "3"}, r"steps.x.takes: a step takes .* not '3'"),
        ({"run": "f", "places": 2}, r"steps.x.places: .* this step has no provider"),
        ({"run": "f", "provider": "fal", "places": True}, r"steps.x.places: a step takes .* not True"),
        ({"recipe": "f", "places": 2}, r"steps.x.places: 'places' is not known here"),
        ({"run": "f", "concurrency": 7}, r"steps.x.concurrency: a concurrency key is text, not 7"),
        ({"run": "f", "concurrency": "a{inputs.n"}, r"steps.x.concurrency: a `\{` without its `\}`"),
        ({"run": "f", "concurrency": "a{inputs.m}"}, r"steps.x.concurrency: there is no input 'm'"),
        ({"run": "f", "concurrency": "a{steps.y.outputs}"}, r"steps.x.concurrency: no step is called 'y'"),
        ({"run": "f", "concurrency": "a{steps.x.outputs}"}, r"steps.x: the step waits for itself"),
        ({"run": "f", "concurrency": "a{item}"}, r"steps.x.concurrency: `item` is known only in"),
        ({"run": "f", "concurrency": "a{user}"}, r"steps.x.concurrency: .*user"),
        ({"run": "f", "concurrency": "a{}"}, r"steps.x.concurrency: "),
        ({"run": "f", "concurrency": "a{1 + 'b'}"}, r"steps.x.concurrency: "),
        ({"run": "f", "cost": 0}, r"steps.x.cost: a cost must be more than 0"),
        ({"run": "f", "cost": -1}, r"steps.x.cost: a cost must be more than 0"),
        ({"run": "f", "cost": "1"}, r"steps.x.cost: a cost must be more than 0"),
        ({"run": "f", "cost": float("inf")}, r"steps.x.cost: a cost must be more than 0"),
        ({"run": "f", "cost": True}, r"steps.x.cost: a cost must be more than 0"),
        ({"run": "f", "wait": 0}, r"steps.x.wait: a wait must be more than 0"),
        ({"run": "f", "wait": "soon"}, r"steps.x.wait: 'soon' is not a length of time"),
        ({"run": "f", "ttl": 9}, r"steps.x.ttl: 'ttl' is not known here"),
        ({"recipe": "f", "ttl": 0}, r"steps.x.ttl: a ttl must be more than 0"),
        ({"recipe": "f", "provider": "fal"}, r"steps.x.provider: 'provider' is not known here"),
        ({"sleep": 3, "cost": 1}, r"steps.x.cost: 'cost' is not known here"),
        ({"wait_for": "a b"}, r"steps.x.wait_for: an event's name cannot be 'a b'"),
        ({"wait_for": 7}, r"steps.x.wait_for: text is needed here"),
        ({"wait_for": "e", "match": [1]}, r"steps.x.match: an event is matched by name"),
        ({"wait_for": "e", "match": {"a": "${inputs.m}"}}, r"steps.x.match: there is no input 'm'"),
        ({"wait_for": "e", "match": {"a": "${item}"}}, r"steps.x.match: `item` is known only in"),
        ({"wait_for": "e", "timeout": 0}, r"steps.x.timeout: a timeout must be more than 0"),
        ({"wait_for": "e", "with": {}}, r"steps.x.with: 'with' is not known here"),
        ({"wait_for": "e", "run": "f"}, r"steps.x: a step has one of .* and this has run and wait_for"),
        ({"with": {}}, r"steps.x: a step has one of .* and this has none of them"),
        ({"run": "windlass.provider"}, r"steps.x.provider: windlass.provider calls a provider, but none is named"),
        ({"run": "windlass.other", "provider": "p"}, r"steps.x.run: there is no built-in handler 'windlass.other'"),
        ({"provider": "fal", "with": {"modle": "m"}}, r"steps.x.with.modle: provider fal takes no 'modle'"),
    ],
)
def test_a_slip_in_a_document_is_refused_with_its_place(step: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRecipe, match=message):
        plan_from_document({"recipe": "r", "inputs": {"n": "integer"}, "steps": {"x": step}})


def test_an_app_that_knows_its_handlers_knows_the_built_in_one() -> None:
    known = Known({"f": Parameters((), frozenset())}, {})
    body = {"recipe": "r", "steps": {"x": {"provider": "fal", "with": {"input": 1}}, "y": {"wait_for": "e"}}}
    assert plan_from_document(body, known).nodes[0].provider == "fal"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "a b"}, "step f.provider: a provider's name cannot be"),
        ({"concurrency": "a{"}, "step f.concurrency: a `{` without its `}`"),
        ({"concurrency": "k", "limit": 0}, "step f.limit: a limit must be"),
        ({"concurrency": "k", "limit": 2, "takes": 3}, "step f.takes: a step cannot take 3 of its concurrency key"),
        ({"provider": "fal", "places": 0}, "step f.places: a step takes 1 to 1,000,000, not 0"),
        ({"cost": 0}, "step f.cost: a cost must be more than 0"),
        ({"wait": "0s"}, "step f.wait: a wait must be more than 0"),
        ({"name": "windlass.f"}, "step windlass.f: names that begin with windlass. are reserved for built-in handlers"),
    ],
)
def test_a_slip_in_a_decorator_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    def f() -> None: ...

    with pytest.raises(BadRecipe) as caught:
        wl.step(**options)(f)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: script("a").ttl(3), "steps.script.ttl: only a recipe that is used as a step has a ttl"),
        (lambda: dub("a").ttl("later"), "steps.dub.ttl: 'later' is not a length of time"),
        (lambda: wl.sleep(1).concurrency("k"), "steps.sleep.concurrency: only a step that a worker runs has"),
        (lambda: dub("a").concurrency("k"), "steps.dub.concurrency: only a step that a worker runs has"),
        (lambda: script("a").concurrency(wl.item), "steps.script.concurrency: `item` is known only in"),
        (lambda: wl.wait_for("e", match=[1]), "steps.e.match: an event is matched by name"),
        (lambda: wl.wait_for("e", timeout="x"), "steps.e.timeout: 'x' is not a length of time"),
        (lambda: wl.wait_for("no way"), "an event's name cannot be 'no way'"),
        (lambda: wl.call("fal", prompt="x"), "steps.fal.with.prompt: fal takes no 'prompt'"),
    ],
)
def test_a_slip_in_a_recipe_is_refused_with_its_place(body: Any, message: str) -> None:
    @wl.recipe
    def r() -> Any:
        return body()

    with pytest.raises(BadRecipe) as caught:
        r.plan  # noqa: B018
    assert message in str(caught.value)


def test_a_key_from_another_recipes_step_is_refused() -> None:
    taken: list[Any] = []

    @wl.recipe
    def first() -> Any:
        taken.append(script("a"))
        return taken[0]

    @wl.recipe
    def second() -> Any:
        return script("b").concurrency(wl.text("k:{v}", v=taken[0]))

    first.plan  # noqa: B018
    with pytest.raises(BadRecipe, match=r"steps.script.concurrency: 'script' is a step of another recipe"):
        second.plan  # noqa: B018


@pytest.mark.parametrize("what", [lambda: wl.wait_for("e"), lambda: fal(model="m"), lambda: fal.map([1])])
def test_outside_a_recipe_there_is_nothing_to_write_down(what: Any) -> None:
    with pytest.raises(BadRecipe, match="inside a function with"):
        what()


def test_a_provider_says_what_it_is() -> None:
    assert repr(fal) == "<provider fal>"


@pytest.mark.parametrize(
    ("written_as", "template"),
    [
        ("plain", "plain"),
        ("a:{inputs.x}", "a:${inputs.x}"),
        ("a:${inputs.x}:b", "a:${inputs.x}:b"),
        ("{inputs.x}{inputs.y}", "${inputs.x}${inputs.y}"),
        ("{{{inputs.x}}}", "{${inputs.x}}"),
        ("$${inputs.x}", "$${inputs.x}"),
        ("$5:{inputs.x}", "$5:${inputs.x}"),
        ("{ {'a': 1}['a'] }", "${ {'a': 1}['a'] }"),
        ("a } b", "a } b"),
    ],
)
def test_a_keys_holes_may_be_written_with_or_without_a_dollar(written_as: str, template: str) -> None:
    assert key_template(written_as, "p") == template


@given(st.text(alphabet="a${}", max_size=12))
def test_a_key_without_holes_is_the_text_that_was_meant(plain: str) -> None:
    try:
        made = compile_template(key_template(plain.replace("{", "{{").replace("}", "}}").replace("${{", "$${"), "p"))
    except (BadRecipe, BadExpression):
        raise AssertionError(plain) from None
    assert not made.steps and not made.expressions
    assert made.resolve({}, lambda *_: None) == plain


def test_a_recipe_has_a_time_to_live_of_its_own() -> None:
    @wl.recipe(name="kept", ttl="7d")
    def kept():
        return script("a")

    written_so = (
        "recipe: kept\nttl: 7d\nsteps:\n  script: {run: script, with: {topic: a}}\noutput: ${steps.script.outputs}\n"
    )
    assert kept.plan.ttl_s == plan_from_document(written_so).ttl_s == 7 * 86400
    for wrong, said in ((0, "ttl: a ttl must be more than 0"), ("later", "ttl: 'later' is not a length of time")):
        with pytest.raises(BadRecipe, match=said):
            _ = wl.recipe(name="wrong", ttl=wrong)(kept.function).plan
