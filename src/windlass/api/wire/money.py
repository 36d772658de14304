"""Money on the wire: decimal text, because programs that parse JSON numbers as floats would lose cents."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from windlass.documents.values import money_text

WHOLE_MAX = 12
PARTS_MAX = 9
_FORM = re.compile(rf"\d{{1,{WHOLE_MAX}}}(\.\d{{1,{PARTS_MAX}}})?")


def money(value: Any) -> Decimal:
    """Return an amount from text or a number; raises ValueError if it is not an amount."""
    if isinstance(value, float) and math.isfinite(value):
        value = f"{value:.{PARTS_MAX}f}"
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**WHOLE_MAX:
        value = str(value)
    if not isinstance(value, str) or not value.isascii() or not _FORM.fullmatch(value):
        raise ValueError(f'it must be an amount such as "12.50", of at most {WHOLE_MAX} digits and {PARTS_MAX} after')
    return Decimal(value)


Money = Annotated[
    Decimal,
    BeforeValidator(money),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": f"^{_FORM.pattern}$"},
                {"type": "number", "minimum": 0, "exclusiveMaximum": 10**WHOLE_MAX},
            ],
            "description": "An amount as decimal text or a number.",
            "examples": ["12.50", 5],
        },
        mode="validation",
    ),
]
MoneyTold = Annotated[
    Decimal,
    PlainSerializer(money_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["12.5"]}),
]
