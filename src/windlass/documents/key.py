"""Documents about keys and audit records. Only the answer that creates a key contains the key's text."""

from __future__ import annotations

from typing import Any

import msgspec

from windlass.access.audit import ChainVerdict
from windlass.access.keys import KeyView
from windlass.core.caller import CallerType, Scope
from windlass.documents.values import known
from windlass.pure.audit import AuditEvent, Record


def key_values(view: KeyView) -> dict[str, Any]:
    """Return the fields of a key's document."""
    values = {name: getattr(view, name) for name in type(view).__slots__}
    return values | {"scopes": [known(Scope, scope) for scope in view.scopes], "roles": list(view.roles)}


def record_values(record: Record, digest: bytes) -> dict[str, Any]:
    """Return the fields of an audit record's document."""
    return {
        "no": record.no,
        "at": record.at,
        "event": known(AuditEvent, record.event),
        "caller": record.caller,
        "caller_type": None if record.caller_type is None else known(CallerType, record.caller_type),
        "tier": record.tier,
        "job_id": record.job_id,
        "request_id": record.request_id,
        "payload": msgspec.json.decode(record.payload),
        "hash": digest.hex(),
    }


def verdict_values(found: ChainVerdict) -> dict[str, Any]:
    """Return the fields of the document that says whether the audit's chain is whole."""
    flaw = found.flaw
    return {
        "is_good": found.is_whole,
        "checked": found.records,
        "head": found.head.hex() if found.records else None,
        "flaw_no": None if flaw is None else flaw.no,
        "flaw": None if flaw is None else flaw.reason,
        "next": found.next,
    }
