"""Turns a handler's return value into an outcome: a JSON text, or a value such as Snooze or Parked.

`msgspec` encodes it: dataclasses, Structs, datetimes, UUIDs, Decimals, enums, sets and bytes (base64) all work, and
pydantic models through `model_dump`. msgspec writes NaN and infinity as `null`, which would hide an error. A text that
contains `null` is therefore checked again.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from windlass.core.outcome import Cancel, Failure, Fault, Outcome, Parked, Snooze, Success

DEPTH_MAX = 200
WAIT_MAX_S = 10 * 366 * 86400.0
# The types that most handlers return, and that never carry another outcome.
_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})


class NotJson(TypeError):
    """Raised for a value that JSON cannot hold; the message names its type and its path."""


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"a value of type {_name(value)} is not JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encode(value: Any, root: str = "output") -> str:
    """Encode the value as JSON text. Raises NotJson with the path of a part that JSON cannot hold."""
    try:
        body = _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError, AttributeError) as error:
        raise NotJson(_complaint(value, root, error)) from None
    if b"null" in body and (place := _not_finite(value, root)) is not None:
        raise NotJson(f"{place} is not a finite number, and JSON has only finite numbers")
    return body.decode()


def outcome_of(value: Any) -> Outcome:
    """Return the outcome of a handler's return value."""
    if type(value) in _PLAIN:
        return _encoded(value)
    if isinstance(value, Snooze | Parked | Cancel):
        return _checked(value)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        message = f"the handler is a plain function but returned {_name(value)}: declare it with `async def`"
        return Failure(Fault("bad_output", message, "NotJson"), is_retryable=False)
    return _encoded(value)


def _encoded(value: Any) -> Outcome:
    try:
        return Success(encode(value))
    except NotJson as error:
        return Failure(Fault("bad_output", str(error), "NotJson"), is_retryable=False)


def _checked(said: Snooze | Parked | Cancel) -> Outcome:
    """Return the value unchanged, or a failure when its wait is not a valid length of time."""
    wait_s: Any = None
    if isinstance(said, Snooze):
        wait_s = said.after_s
    elif isinstance(said, Parked):
        wait_s = said.within_s or None
    if isinstance(said, Cancel | Parked) and wait_s is None:
        return said
    if isinstance(wait_s, int | float) and 0 <= wait_s <= WAIT_MAX_S:
        return said
    message = f"the wait of {said} must be seconds from 0 to {WAIT_MAX_S:g}"
    return Failure(Fault("bad_output", message, "ValueError"), is_retryable=False)


def _name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _parts(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    """Yield the parts of a container, each with its path."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield item, f"{place}.{key}" if isinstance(key, str) else f"{place}[{key!r}]"
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield item, f"{place}[{index}]"
    elif isinstance(value, msgspec.Struct):
        yield from _fields(value, value.__struct_fields__, place)
    elif dataclasses.is_dataclass(value):
        yield from _fields(value, [field.name for field in dataclasses.fields(value)], place)


def _fields(value: Any, names: Iterable[str], place: str) -> Iterator[tuple[Any, str]]:
    return ((getattr(value, name), f"{place}.{name}") for name in names if hasattr(value, name))


def _can_encode(value: Any) -> bool:
    try:
        _encoder.encode(value)
    except Exception:
        return False
    return True


def _complaint(value: Any, root: str, error: Exception) -> str:
    """Find the path of the first part that cannot be encoded. A value that contains itself has no such part."""
    place = root
    for _ in range(DEPTH_MAX):
        bad = next(((part, where) for part, where in _parts(value, place) if not _can_encode(part)), None)
        if bad is None:
            return f"{place} is {_name(value)}, which JSON cannot hold ({error})"
        value, place = bad
    return f"{root} is nested too deeply for JSON, or holds itself"


def _not_finite(value: Any, place: str, depth: int = 0) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else place
    if depth < DEPTH_MAX:
        for part, where in _parts(value, place):
            if (found := _not_finite(part, where, depth + 1)) is not None:
                return found
    return None
