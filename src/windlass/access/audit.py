"""Writing to the audit, and reading it.

An action's note is written in the action's own transaction. The engine's auditor turns notes into records of the chain
(`engine/loops/auditor.py`), so nobody who acts waits for the chain.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.audit import AuditEvent, payload_text
from windlass.store.statements import sql


async def write_note(
    connection: asyncpg.Connection,
    event: AuditEvent,
    caller: str | None,
    *,
    job_id: UUID | None = None,
    request_id: str | None = None,
    **payload: Any,
) -> None:
    """Note that something was done, in the transaction that this connection is in."""
    if job_id is not None:
        payload["job_id"] = str(job_id)
    if request_id is not None:
        payload["request_id"] = request_id
    await connection.execute(sql("audit_note"), event, caller, payload_text(payload))
