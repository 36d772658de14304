"""Checks the arguments of the SDK and the client. A value of the wrong type is refused with the argument's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from windlass.core.errors import BadInput

SHOWN_MAX = 80


def check_text(name: str, value: object) -> None:
    """Raise BadInput unless the value is text."""
    if not isinstance(value, str):
        raise wrong(name, "text", value)


def check_labels(value: object) -> None:
    """Raise BadInput unless the labels are texts by name."""
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise wrong("labels", "texts by name", value)


def check_priority(value: object) -> None:
    """Raise BadInput unless the priority is a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong("priority", "a whole number", value)


def check_inputs_mapping(value: object) -> None:
    """Raise BadInput unless the inputs are values by name."""
    if not isinstance(value, Mapping):
        raise wrong("inputs", "values by name", value)


def check_many(inputs: object, keys: object) -> None:
    """Raise BadInput unless the inputs and keys of many jobs are lists of equal length."""
    if not isinstance(inputs, Sequence) or isinstance(inputs, str | bytes):
        raise wrong("inputs", "a list with the inputs of each job", inputs)
    if keys is None:
        return
    if not isinstance(keys, Sequence) or isinstance(keys, str | bytes) or not all(isinstance(k, str) for k in keys):
        raise wrong("keys", "a list of texts", keys)
    if len(keys) != len(inputs):
        raise BadInput(f"{len(inputs)} inputs have {len(keys)} keys", remedy="Give one key for each, or none at all")


def check_timeout(value: object) -> None:
    """Raise BadInput unless the timeout is a number of seconds, or None to wait without a limit."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    if value is not None and not is_number:
        raise wrong("timeout", "a number of seconds", value)


def job_id_of(value: object) -> UUID:
    """Return a job's id from text or from a UUID."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(str(value))
    except ValueError:
        raise BadInput(f"{shown(value)} is not a job's id", remedy="`windlass jobs` lists the ids") from None


def wrong(name: str, wanted: str, value: object) -> BadInput:
    """Return the error for a value of the wrong type."""
    return BadInput(f"{name} must be {wanted}, not {shown(value)}")


def shown(value: object) -> str:
    """Return the Python representation of a value, truncated."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
