"""What all documents on the wire have in common: strict bodies, lenient queries, answers that may grow.

A body is JSON, which has types: `"1"` is not a number. A query is text, so `1` is one. Both refuse names that they do
not know, as a slip must not pass in silence. An answer may gain fields, so its schema does not forbid others.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from windlass.core.errors import BadRecipe
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
    """An answer's body."""

    model_config = ConfigDict(extra="ignore")


def storable(text: str) -> str:
    """The text, if PostgreSQL can hold it."""
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
        # A plus sign that was not escaped in a query arrives as a space; a date alone has no zone. Neither is guessed.
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
        # A text of digits alone is no length of time; and one of many digits takes long to be refused.
        return duration_s(text if not isinstance(text, str) or len(text) <= 64 else "", "")
    except BadRecipe:
        raise ValueError('it must be a length of time: seconds, or "90s", "2m", "PT2M"') from None


def rfc3339(at: datetime) -> str:
    """A time as it is told: UTC, milliseconds."""
    return f"{at.astimezone(UTC).isoformat(timespec='milliseconds')[:-6]}Z"


Text = Annotated[str, Field(max_length=TEXT_MAX), AfterValidator(storable)]
LongText = Annotated[str, Field(max_length=2_000), AfterValidator(storable)]
# A time that is asked with, and one that is told.
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
# The id of a job in a body or a query; one that cannot be read is a fault of the body.
Id = Annotated[UUID, BeforeValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
