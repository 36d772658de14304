"""What people type, turned into values: inputs, labels and times. Whatever cannot be used is refused by name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from windlass.core.errors import BadInput, BadSetting
from windlass.core.plan import Plan
from windlass.recipe.duration import duration_s
from windlass.recipe.schema import check_inputs


def parse_inputs(items: Iterable[str]) -> dict[str, Any]:
    """Read `--input` values: `k=v`, `k=@file`, or `@file.json` that holds an object (`@-` reads standard input).

    A value is JSON if it parses as JSON, and text otherwise; a later one wins over an earlier one.
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


def fitting_inputs(items: list[str], plan: Plan) -> dict[str, Any]:
    """The same for a recipe that is known: where it asks for text, `year=2049` is the text and not the number."""
    inputs = parse_inputs(items)
    texts = {name: value for name, equals, value in (item.partition("=") for item in items) if equals}
    for name, schema in plan.inputs_schema.get("properties", {}).items():
        value = texts.get(name, "@")
        if schema.get("type") == "string" and not isinstance(inputs.get(name, ""), str) and not value.startswith("@"):
            inputs[name] = value
    try:
        return check_inputs(plan, inputs)
    except BadInput as error:
        wanted = ", ".join(f"{name}=…" for name in plan.inputs_schema.get("properties", {})) or "none"
        error.remedy = error.remedy or f"The inputs of {plan.recipe}: {wanted}"
        raise


def json_or_text(value: str) -> Any:
    """The JSON value that the text is, or the text itself."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return value
    except RecursionError:
        raise _too_deep("an input") from None


def parse_labels(items: Iterable[str]) -> dict[str, str]:
    """Read `--label k=v` values."""
    labels: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadSetting(f"--label {item!r} is not a label", remedy="Write --label name=value")
        labels[name] = value
    return labels


def parse_seconds(flag: str, value: str | None) -> float | None:
    """Read a time: `90` seconds, `90s`, `2m`, `1h30m`, `3d`."""
    if value is None:
        return None
    return duration_s(float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else value, flag)


def parse_instant(flag: str, value: str | None) -> str | None:
    """Read a time with its zone, such as 2026-01-31T12:00:00Z; the answer is the same time in UTC."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise BadSetting(
            f"{flag} {value!r} is no time", remedy="Write it with its zone: 2026-01-31T12:00:00Z"
        ) from None


def parse_webhook(url: str | None, secret_file: str | None) -> tuple[str, str] | None:
    """Read `--webhook` and the file that holds its secret. Secrets are not typed: a process list shows what is."""
    if url is None and secret_file is None:
        return None
    if url is None or secret_file is None:
        raise BadSetting(
            "a webhook is an address and a secret", remedy="Give both: --webhook URL --webhook-secret-file FILE"
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
    """Read a JSON value, or the one in `@file` (`@-` reads standard input)."""
    given = _read(text[1:]) if text.startswith("@") else text
    try:
        return msgspec.json.decode(given)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise BadInput(f"{flag}: this is not JSON: {error}", remedy='Text is "quoted"; @file reads a file') from None


def parse_money(flag: str, text: str) -> Decimal:
    """Read an amount such as 12.50."""
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", text):
        raise BadInput(f"{flag}: {text!r} is no amount", remedy="Write one such as 12.50")
    return Decimal(text)
