"""Parses command-line text into inputs, labels, times and amounts. An error names the argument that it refuses."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from windlass.core.errors import BadInput, BadSetting
from windlass.recipe.duration import duration_s


def parse_inputs(items: Iterable[str]) -> dict[str, Any]:
    """Read `--input` values: `k=v`, `k=@file`, or `@file.json` that holds an object (`@-` reads standard input).

    A value is JSON if it parses as JSON, and text otherwise. A later value of a name replaces an earlier value.
    """
    inputs: dict[str, Any] = {}
    for item in items:
        if item.startswith("@"):
            inputs.update(_object_in(item[1:]))
            continue
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadInput(f"--input {item!r} has no name", remedy="Write --input name=value, or --input @file.json")
        inputs[name] = json_or_text(_read(value[1:]) if value.startswith("@") else value)
    return inputs


def typed_inputs(items: list[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Read `--input` values by the schema of a recipe: where it declares text, `year=2049` is text, not a number."""
    texts = {name for name, one in schema.get("properties", {}).items() if one.get("type") == "string"}
    return _as_text(items, texts)


def edited_inputs(items: list[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's `inputs` with the `--input` values applied. Text stays text, though `2049` could be a number."""
    texts = {name for name, value in inputs.items() if isinstance(value, str)}
    return {**inputs, **_as_text(items, texts)}


def _as_text(items: list[str], names: Collection[str]) -> dict[str, Any]:
    inputs = parse_inputs(items)
    typed = {name: value for name, equals, value in (item.partition("=") for item in items) if equals}
    for name in names:
        value = typed.get(name, "@")
        if not isinstance(inputs.get(name, ""), str) and not value.startswith("@"):
            inputs[name] = value
    return inputs


def json_or_text(value: str) -> Any:
    """Return the value of JSON text, or the text itself if it is not JSON."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return value
    except RecursionError:
        raise _too_deep("an input") from None


def parse_labels(items: Iterable[str]) -> dict[str, str]:
    """Read `--label k=v` values."""
    return dict(parse_pairs("--label", items))


def parse_pairs(flag: str, items: Iterable[str]) -> list[tuple[str, str]]:
    """Read `name=value` values of a flag."""
    pairs: list[tuple[str, str]] = []
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadSetting(f"{flag} {item!r} has no name or no value", remedy=f"Write {flag} name=value")
        pairs.append((name, value))
    return pairs


def parse_seconds(flag: str, value: str | None) -> float | None:
    """Read a time: `90` seconds, `90s`, `2m`, `1h30m`, `3d`."""
    if value is None:
        return None
    return duration_s(float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else value, flag)


def parse_instant(flag: str, value: str | None) -> str | None:
    """Read a time with its zone, such as 2026-01-31T12:00:00Z, and return it in UTC."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise BadSetting(
            f"{flag} {value!r} is not a time", remedy="Write it with its zone: 2026-01-31T12:00:00Z"
        ) from None


def parse_webhook(url: str | None, secret_file: str | None) -> tuple[str, str] | None:
    """Read `--webhook` and the file that holds its secret. A process list shows typed arguments, so a file holds it."""
    if url is None and secret_file is None:
        return None
    if url is None or secret_file is None:
        raise BadSetting(
            "a webhook needs a URL and a secret", remedy="Give both: --webhook URL --webhook-secret-file FILE"
        )
    return url, _read(secret_file).strip()


def _object_in(name: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(_read(name))
    except msgspec.DecodeError as error:
        raise BadInput(f"{name} is not JSON: {error}", remedy="Give a file that holds one JSON object") from None
    except RecursionError:
        raise _too_deep(name) from None
    if not isinstance(found, dict):
        raise BadInput(f"{name} does not hold a JSON object", remedy='It looks like {"topic": "sea"}')
    return found


def _too_deep(what: str) -> BadInput:
    return BadInput(f"{what} is JSON that is nested too deeply", remedy="Pass a path or a link to it instead")


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror or error}", remedy="Check the path after @") from None
    except UnicodeDecodeError:
        raise BadInput(f"{name} is not UTF-8 text", remedy="Pass a path or a link to binary data instead") from None


def parse_json(flag: str, text: str) -> Any:
    """Read a JSON value from the text, or from a file for `@file` (`@-` reads standard input)."""
    given = _read(text[1:]) if text.startswith("@") else text
    try:
        return msgspec.json.decode(given)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise BadInput(f"{flag}: this is not JSON: {error}", remedy='Text is "quoted"; @file reads a file') from None


def parse_money(flag: str, text: str) -> Decimal:
    """Read an amount such as 12.50."""
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", text):
        raise BadInput(f"{flag}: {text!r} is not an amount", remedy="Write one such as 12.50")
    return Decimal(text)
