"""Steps that ask people: the same plan in either front end, and every mistake is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

import windlass as wl
from windlass.core.errors import BadExpression, BadRecipe
from windlass.core.plan import Node, NodeKind
from windlass.recipe.document import plan_from_document

DAY_S = 86_400.0


@wl.step
def draft(topic: str) -> dict:  # type: ignore[type-arg]
    return {"topic": topic}


@wl.recipe
def article(topic: str, readers: list[str]) -> Any:
    page = draft(topic)
    first = wl.approve(
        wl.text("Publish {topic}?", topic=topic),
        show={"page": page},
        who={"roles": ["lead"], "callers": ["grace"]},
        need=2,
        expires="2d",
        escalate={"after": "4h", "to": ["cto"]},
        on_reject="continue",
    ).named("ok")
    return wl.approve("Read?", show={"by": wl.item}, each=readers).named("read").after(first)


ARTICLE = """
recipe: article
inputs: {topic: string, readers: "string[]"}
steps:
  draft: {run: draft, with: {topic: "${inputs.topic}"}}
  ok:
    approve: "Publish ${inputs.topic}?"
    show: {page: "${steps.draft.outputs}"}
    who: {roles: [lead], callers: [grace]}
    need: 2
    expires: 2d
    escalate: {after: 4h, to: [cto]}
    on_reject: continue
  read: {approve: "Read?", show: {by: "${item}"}, each: "${inputs.readers}", after: [ok]}
output: ${steps.read.outputs}
"""


def node(**step: Any) -> Node:
    """The node of a document's only step."""
    return plan_from_document({"recipe": "r", "steps": {"ok": {"approve": "Go?", **step}}}).nodes[0]


def test_both_front_ends_make_the_same_plan() -> None:
    assert plan_from_document(ARTICLE).hash == article.plan.hash
    ok = next(one for one in article.plan.nodes if one.name == "ok")
    assert (ok.kind, ok.wait_s, ok.needs) == (NodeKind.APPROVAL, 2 * DAY_S, ("draft",))
    assert ok.approval == {
        "need": 2,
        "who": {
            "roles": ["lead"], "callers": ["grace"], "escalate_after_s": 14_400.0, "escalate_roles": ["cto"],
        },
        "on_reject": "continue",
    }  # fmt: skip


def test_a_plain_question_has_no_terms_and_a_day() -> None:
    ok = node()
    assert (ok.approval, ok.wait_s, ok.with_) == (None, DAY_S, {"question": "Go?"})


@pytest.mark.parametrize("who", ["lead", ["lead"], {"roles": "lead"}])
def test_a_name_or_a_list_names_roles(who: Any) -> None:
    assert node(who=who).approval == {"who": {"roles": ["lead"]}}


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"approve": " "}, "steps.ok.approve: the question is empty"),
        ({"show": [1]}, "steps.ok.show: values are shown by name"),
        ({"need": 0}, "steps.ok.need: the number of people must be 1 to 100"),
        ({"need": True}, "steps.ok.need"),
        ({"on_reject": "stop"}, "steps.ok.on_reject: 'stop' is not fail or continue"),
        ({"who": {}}, "steps.ok.who: nobody is named"),
        ({"who": {"role": ["a"]}}, "steps.ok.who"),
        ({"who": [1]}, "steps.ok.who: this must be a list of names"),
        ({"who": [str(n) for n in range(101)]}, "at most 100"),
        ({"escalate": "4h", "who": "a"}, "steps.ok.escalate: this must be a mapping"),
        ({"escalate": {"to": ["b"]}, "who": "a"}, "after what time"),
        ({"escalate": {"after": "1h"}, "who": "a"}, "neither `to` nor `callers`"),
        ({"escalate": {"after": "1h", "to": ["b"]}}, "all people may decide already"),
        ({"escalate": {"after": "2d", "to": ["b"]}, "who": "a"}, "after the approval expires"),
        ({"expires": "soon"}, "steps.ok.expires"),
        ({"queue": "q"}, "queue"),
        ({"timeout": "1h"}, "timeout"),
        ({"run": "x"}, "one of run, recipe, sleep, wait_for and approve"),
    ],
)
def test_a_mistake_is_refused_with_its_place(step: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRecipe) as error:
        node(**step)
    assert words in str(error.value)


def test_an_item_needs_a_fan_out() -> None:
    with pytest.raises(BadExpression):
        node(show={"by": "${item}"})


def test_a_question_is_asked_only_in_a_recipe() -> None:
    with pytest.raises(BadRecipe, match=r"wl.approve can only be called inside"):
        wl.approve("Go?")


def test_a_question_is_text() -> None:
    with pytest.raises(BadRecipe, match="a question is text"):

        @wl.recipe
        def bad() -> Any:
            return wl.approve(7)  # type: ignore[arg-type]

        _ = bad.plan
