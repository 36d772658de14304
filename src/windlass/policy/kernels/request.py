"""A question as the JSON document that a kernel outside of the process gets."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

import msgspec

from windlass.core.verdict import Verdict
from windlass.policy.kernel import INPUT_BYTES_MAX
from windlass.policy.kernel_answer import unknown
from windlass.policy.question import Question


def inputs_json(question: Question, kernel: str) -> bytes | Verdict:
    """Return the inputs as JSON, or the refusal of a question whose inputs cannot be sent whole."""
    try:
        found = msgspec.json.encode(question.inputs)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        return unknown(kernel, f"the inputs cannot be sent to the kernel {kernel}: {type(error).__name__}")
    if len(found) > INPUT_BYTES_MAX:
        return unknown(
            kernel, f"the inputs have {len(found):,} bytes, and kernels are sent at most {INPUT_BYTES_MAX:,}"
        )
    return found


def request_json(question: Question) -> dict[str, Any]:
    """Return every part of a question under its name. Sets are sorted lists, and an amount of money is text."""
    found: dict[str, Any] = _plain(question)
    return found


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        # `inputs` are JSON already, and may be large.
        return {
            each.name: found if each.name == "inputs" else _plain(found)
            for each in fields(value)
            if (found := getattr(value, each.name)) is not None
        }
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    return value
