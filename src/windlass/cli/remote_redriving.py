"""Running jobs again at a server. Apart from what a database does, so that local commands need no HTTP client."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from windlass.cli import wire
from windlass.cli.redriving import Again
from windlass.client.async_client import AsyncClient


class RemoteRedriving:
    """Of a server."""

    _client: AsyncClient

    async def run_again(self, job_id: UUID, wish: Again) -> UUID:
        """Make the new job."""
        handle = self._client.job(job_id)
        if wish.action == "retry":
            return (await handle.retry()).id
        return (await handle.rerun(from_step=wish.from_step, inputs=await self._merged(job_id, wish))).id

    async def preview(self, job_id: UUID, wish: Again) -> dict[str, Any]:
        """What the new job would do."""
        handle = self._client.job(job_id)
        if wish.action == "retry":
            return wire.again_json(await handle.preview_retry())
        return wire.again_json(
            await handle.preview_rerun(from_step=wish.from_step, inputs=await self._merged(job_id, wish))
        )

    async def _merged(self, job_id: UUID, wish: Again) -> dict[str, Any] | None:
        return None if wish.edit is None else wish.edit.over(await self._client.job(job_id).input())

    async def dead_letters(self) -> list[dict[str, Any]]:
        """Every kind of failure that nobody has dealt with."""
        return [wire.dead_letter_json(kind, kind.count) for kind in await self._client.dead_letters()]

    async def deal(
        self, fingerprint: str, action: str, *, start: str, dry_run: bool, expect: int | None, reason: str
    ) -> dict[str, Any]:
        """Redrive or discard a kind."""
        if action == "discard":
            told = await self._client.discard(fingerprint, dry_run=dry_run, expect=expect, reason=reason)
        else:
            told = await self._client.redrive(fingerprint, start=start, dry_run=dry_run, expect=expect, reason=reason)
        found: dict[str, Any] = msgspec.to_builtins(told)
        return found
