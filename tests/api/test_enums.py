"""Every enum that a client meets is in the API's document, with the members that the core knows and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, StrEnum
from importlib import import_module
from typing import Any, get_args

import pytest

from tests.api.rig import Rig
from tests.tidy.sources import ROOT, SRC, room
from windlass.api.app import bare
from windlass.core.event import EventType
from windlass.core.hold import Hold, HoldName
from windlass.core.states import JobState, StepState
from windlass.pure.problem import KINDS
from windlass.views.attempts import Outcome
from windlass.views.overview import AttentionKind

SCHEMAS: dict[str, Any] = bare().openapi()["components"]["schemas"]
# Enums that no document holds, each with the reason.
INTERNAL = {
    "Because": "the code of a problem, or of an error inside a document",
    "Content": "a question to the core, never an answer",
    "Enforcer": "of a policy's constraints; no route judges a request yet",
    "Hold": "a bit mask; clients see HoldName",
    "Meet": "how two constraints become one, never an answer",
    "Promise": "of the database's settings; doctor and the logs tell it",
    "Reader": "a question to the core, never an answer",
    "SignatureProfile": "of the settings of a provider",
    "Use": "what a second look at an approval says to the engine",
    "UndoWhen": "of a recipe's step; an undo lists the effects to which it applies",
    "SlotState": "a row of the granter; clients see the step's state",
}
# Words whose values are texts from outside, or free texts.
FREE = {
    ("EventDocument", "source"), ("EventLine", "source"), ("LogDocument", "level"),
    ("StepWorkDocument", "status"), ("AwaitedDocument", "event"), ("Me", "scopes"), ("SessionDocument", "scopes"),
    # A text of a URL, and a number.
    ("Problem", "type"), ("Problem", "status"), ("Denial", "type"), ("Denial", "status"),
}  # fmt: skip
WORDS = re.compile(
    r"(status|state|kind|type|outcome|event|role|scopes?|action|breaker|level|activity|on_failure)$|_(status|state|type)$"
)


def enums() -> Iterator[type[Enum]]:
    """The enums of the core, of what is pure, and of the views."""
    for module in room("core", "pure", "views"):
        name = module.path.relative_to(SRC.parent).with_suffix("").as_posix().replace("/", ".")
        for value in vars(import_module(name)).values():
            if isinstance(value, type) and issubclass(value, Enum) and value.__module__ == name:
                yield value


@pytest.mark.parametrize("kind", sorted(enums(), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_an_enum_is_in_the_document_or_internal(kind: type[Enum]) -> None:
    if kind.__name__ in INTERNAL:
        assert kind.__name__ not in SCHEMAS
        return
    assert kind.__name__ in SCHEMAS, "type a document's field with it, or say in INTERNAL why no document has it"
    assert issubclass(kind, StrEnum)
    assert SCHEMAS[kind.__name__]["enum"] == [member.value for member in kind]


def test_what_is_internal_is_there() -> None:
    assert set(INTERNAL) <= {kind.__name__ for kind in enums()}


def test_words_without_an_enum_of_their_own_are_listed_too() -> None:
    assert SCHEMAS["AttemptDocument"]["properties"]["outcome"]["enum"] == list(get_args(Outcome))
    assert SCHEMAS["AttentionDocument"]["properties"]["kind"]["enum"] == list(get_args(AttentionKind))
    assert SCHEMAS["Problem"]["properties"]["code"]["enum"] == sorted(KINDS)


def plain_texts() -> Iterator[tuple[str, str]]:
    """Fields of answers that sound like an enum, and may hold any text."""
    for name, schema in SCHEMAS.items():
        for field, value in schema.get("properties", {}).items():
            forms = [value, value.get("items", {}), *value.get("anyOf", ())]
            is_open = any(one.get("type") == "string" and not {"enum", "const"} & one.keys() for one in forms)
            if WORDS.search(field) and is_open:
                yield name, field


def test_no_answer_says_text_where_it_means_an_enum() -> None:
    asked = {name for name, _ in plain_texts() if name.endswith(("Request", "Filter", "Wish", "Query"))}
    found = {one for one in plain_texts() if one[0] not in asked}
    assert found - FREE == set()


def test_every_hold_has_a_name() -> None:
    assert [name.value for name in HoldName] == [(hold.name or "").lower() for hold in Hold]


def test_every_state_and_every_event_of_the_statements_has_a_type() -> None:
    moves = {f"job.{state.lower()}" for state in JobState} | {f"step.{state.lower()}" for state in StepState}
    written = set[str]()
    for path in (SRC / "store" / "sql").glob("*.sql"):
        written |= set(re.findall(r"'((?:job|step)\.[a-z_]+)'", path.read_text(encoding="utf-8")))
    assert "job.kept" in written
    assert moves | written <= set(EventType)


def test_the_page_of_events_has_every_type_and_no_other() -> None:
    page = (ROOT / "docs/reference/events.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`((?:job|step|approval)\.[a-z_]+)`", page))
    assert told == set(EventType)


async def test_an_event_of_a_newer_release_passes_as_it_is(api: Rig) -> None:
    job = await api.submit()
    async with api.parts.db.connection() as connection:
        await connection.execute("UPDATE windlass.events SET type = 'job.teleported' WHERE job_id = $1", job)
    with pytest.warns(UserWarning, match="teleported"):
        answer = await api.user.get(f"/jobs/{job}/events")
    assert [one["type"] for one in answer.json()["items"]] == ["job.teleported"]
