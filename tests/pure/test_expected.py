"""What a recipe reads of an event is found in its expressions."""

from __future__ import annotations

from typing import Any

from windlass.core.plan import Node, NodeKind, Plan
from windlass.pure.expected import Expected, expected_of

EVENT = Node("approved", NodeKind.EVENT, run="approved", with_={"topic": "${inputs.topic}"})


def read_by(*nodes: Node, output: Any = None, event: Node = EVENT) -> Expected:
    return expected_of(Plan("r", (event, *nodes), output=output), 0)


def after(name: str = "publish", **given: Any) -> Node:
    return Node(name, run=name, needs=("approved",), **given)


def test_keys_that_conditions_arguments_and_the_output_read_are_found_once() -> None:
    found = read_by(
        after(when='steps.approved.outputs.by != ""', with_={"who": "${steps.approved.outputs.by}", "n": 1}),
        after("mail", each='steps.approved.outputs["to"]', concurrency="for ${steps.approved.outputs.team.name}"),
        output={"note": "${steps.approved.outputs.note}", "other": "${steps.mail.outputs.by}"},
    )
    assert found == Expected(keys=("by", "to", "team", "note"), given_to=(), is_condition=False)


def test_who_is_given_the_whole_body_is_named() -> None:
    found = read_by(after(with_={"verdict": "${steps.approved.outputs}"}), output="${steps.approved.outputs}")
    assert found == Expected(keys=(), given_to=("publish", "output"), is_condition=False)


def test_a_body_that_is_a_condition_by_itself_must_be_true_or_false() -> None:
    assert read_by(after(when="steps.approved.outputs")) == Expected((), ("publish",), is_condition=True)
    assert not read_by(after(when='"by" in steps.approved.outputs')).is_condition


def test_the_result_of_several_waits_is_a_list_of_bodies() -> None:
    event = Node("approved", NodeKind.EVENT, run="signed", each="inputs.people")
    found = read_by(after(when="steps.approved.outputs[0].ok", with_={"all": "${steps.approved.outputs}"}), event=event)
    assert found == Expected(keys=("ok",), given_to=("publish",), is_condition=False)
    assert not read_by(after(when="steps.approved.outputs"), event=event).is_condition


def test_a_number_in_the_place_of_a_key_names_none() -> None:
    assert read_by(after(with_={"x": "${steps.approved.outputs[0]}"})) == Expected((), (), is_condition=False)


def test_a_body_that_nothing_reads_may_be_anything() -> None:
    assert read_by(after()) == Expected((), (), is_condition=False)
