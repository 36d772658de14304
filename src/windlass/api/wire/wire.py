"""The base of all documents on the wire: strict bodies, lenient queries, responses that may gain fields.

A body is JSON, which has types: `"1"` is not a number. A query is text, so `1` is a number there. Both refuse unknown
names, so that a typing mistake is noticed. A response may gain fields, so its schema does not forbid others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from windlass.core.errors import BadRecipe
from windlass.core.hold import HoldName
from windlass.core.wait import WaitKind
from windlass.documents.values import rfc3339 as rfc3339
from windlass.recipe.duration import duration_s

TEXT_MAX = 255
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_UNITS = ("d", "h", "m", "s")


class Wire(BaseModel):
    """The root of every document."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")


class Asked(Wire):
    """A request's body."""

    model_config = ConfigDict(strict=True)


class Sought(Wire):
    """A request's query."""


class Told(Wire):
    """A response's body."""

    model_config = ConfigDict(extra="ignore")


Document = TypeVar("Document", bound=Told)


class _Within(NamedTuple):
    """The documents in a field of a document: one document, a list of documents, or a map if `is_map`."""

    kind: type[Told]
    is_map: bool


def document_of(kind: type[Document], values: Mapping[str, Any]) -> Document:
    """Build a document from values of our own rows without validation, which would cost more than reading them did."""
    within = {name: _built(one, values[name]) for name, one in _within(kind).items()}
    return kind.model_construct(**{**values, **within} if within else values)


@cache
def _within(kind: type[Told]) -> dict[str, _Within]:
    found = {name: _kinds(field.annotation) for name, field in kind.model_fields.items()}
    maps = {name: dict in _origins(field.annotation) for name, field in kind.model_fields.items()}
    return {name: _Within(kinds[0], maps[name]) for name, kinds in found.items() if kinds}


def _kinds(annotation: Any) -> list[type[Told]]:
    if isinstance(annotation, type) and issubclass(annotation, Told):
        return [annotation]
    return [kind for one in get_args(annotation) for kind in _kinds(one)]


def _origins(annotation: Any) -> list[Any]:
    return [get_origin(annotation), *(one for part in get_args(annotation) for one in _origins(part))]


def _built(within: _Within, value: Any) -> Any:
    if isinstance(value, list):
        return [document_of(within.kind, one) for one in value]
    if within.is_map and value is not None:
        return {name: document_of(within.kind, one) for name, one in value.items()}
    return None if value is None else document_of(within.kind, value)


def storable(text: str) -> str:
    """Return the text if PostgreSQL can store it; else raise ValueError."""
    if "\x00" in text:
        raise ValueError("it holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair") from None
    return text


def _instant(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("it must be a time such as 2026-01-31T12:00:00Z")
    try:
        at = datetime.fromisoformat(value)
        # A plus sign that was not escaped in a query arrives as a space, and a plain date has no zone. The server
        # guesses neither.
        if at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("it must be a time with its zone, such as 2026-01-31T12:00:00Z") from None


def _uuid(value: Any) -> Any:
    if not isinstance(value, str) or len(value) not in (32, 36):
        raise ValueError("it must be the id of a job")
    return UUID(value)


def _duration(value: Any) -> Any:
    text = value
    if isinstance(value, str) and (found := _ISO_DURATION.fullmatch(value)) and any(found.groups()):
        text = "".join(f"{n}{unit}" for n, unit in zip(found.groups(), _UNITS, strict=True) if n)
    try:
        # A text of digits alone is not a duration, and a text of very many digits would take long to refuse.
        return duration_s(text if not isinstance(text, str) or len(text) <= 64 else "", "")
    except BadRecipe:
        raise ValueError('it must be a length of time: seconds, or "90s", "2m", "PT2M"') from None


Text = Annotated[str, Field(max_length=TEXT_MAX), AfterValidator(storable)]
LongText = Annotated[str, Field(max_length=2_000), AfterValidator(storable)]
# A time in a request, and a time in a response.
Instant = Annotated[
    datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"}, mode="validation")
]
Time = Annotated[
    datetime,
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "maxLength": 64}],
            "description": 'Seconds, or text such as "90s", "2m" or "PT2M".',
            "examples": [90, "2m", "PT2M"],
        },
        mode="validation",
    ),
]
_HOLD, _WAIT = "|".join(HoldName), "|".join(WaitKind)
# The reason that a step waits.
WaitingFor = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "pattern": f"^(({_HOLD})(,({_HOLD}))*|({_WAIT})(:.*)?)$",
            "description": "The step's holds (`HoldName`), with commas, or its wait: a `WaitKind`, with the name of "
            "the event, provider or child job as `event:<name>`.",
        }
    ),
]
# The id of a job in a body or a query; a malformed id is a fault of the request.
Id = Annotated[UUID, BeforeValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
