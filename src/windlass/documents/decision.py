"""The document of the policy's decisions about a job."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from windlass.views.decisions import Decisions


def decisions_values(found: Decisions) -> dict[str, Any]:
    """Return the fields of the document."""
    return {"policy": found.policy, "rule": found.rule, "items": [asdict(one) for one in found.verdicts]}
