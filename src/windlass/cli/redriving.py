"""Running jobs again at a database: from a step, with other inputs, and whole kinds of failures. See `Desk`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from windlass.app.windlass import Windlass
from windlass.cli import wire
from windlass.cli.arguments import parse_inputs
from windlass.core.errors import BadInput
from windlass.engine import redrive, rerun
from windlass.engine.bulk import BULK_MAX
from windlass.views import dead_letters, read


class Edit(NamedTuple):
    """Inputs that are to be others: their values, and how they were typed."""

    values: Mapping[str, Any]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, items: list[str]) -> Edit:
        """From what was typed after `--input`."""
        pairs = [item.partition("=") for item in items if not item.startswith("@")]
        return cls(parse_inputs(items), {name: text for name, _, text in pairs if not text.startswith("@")})

    def over(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """All inputs of a job; what was text stays text, though `2049` alone could be a number."""
        is_text = {name for name, value in inputs.items() if isinstance(value, str)}
        given = {name: self.texts.get(name, value) if name in is_text else value for name, value in self.values.items()}
        return {**inputs, **given}


class Again(NamedTuple):
    """How a job is run again: `retry` or `rerun`, from which step, and with which inputs in place of its own."""

    action: str
    from_step: str | None = None
    edit: Edit | None = None


class LocalRedriving:
    """Of a database."""

    _windlass: Windlass

    async def run_again(self, job_id: UUID, wish: Again) -> UUID:
        """Make the new job."""
        windlass = self._windlass
        return await rerun.make(
            windlass.db, job_id, await self._wish(job_id, wish), windlass.ids.new(), source="caller"
        )

    async def preview(self, job_id: UUID, wish: Again) -> dict[str, Any]:
        """What the new job would do."""
        found = await rerun.preview(self._windlass.db, job_id, await self._wish(job_id, wish))
        return wire.again_json(found)

    async def _wish(self, job_id: UUID, wish: Again) -> rerun.Wish:
        if wish.action == "retry":
            return rerun.Wish("retry")
        inputs = None if wish.edit is None else wish.edit.over((await read.job(self._windlass.db, job_id)).input)
        return rerun.Wish("rerun", wish.from_step, inputs)

    async def dead_letters(self) -> list[dict[str, Any]]:
        """Every kind of failure that nobody has dealt with."""
        found = await dead_letters.look(self._windlass.db, None)
        return [wire.dead_letter_json(kind, len(kind.job_ids)) for kind in found.kinds]

    async def deal(
        self, fingerprint: str, action: str, *, start: str, dry_run: bool, expect: int | None, reason: str
    ) -> dict[str, Any]:
        """Redrive or discard a kind."""
        windlass, db = self._windlass, self._windlass.db
        caller = windlass.settings.caller
        found = await dead_letters.of_kind(db, None, fingerprint, None if dry_run else expect)
        if action == "discard":
            done = await redrive.discard(db, found, dry_run=dry_run, reason=reason, source=caller)
        else:
            done = await redrive.redrive(
                db,
                found,
                "first" if start == "first" else "failed",
                new_id=windlass.ids.new,
                limit=BULK_MAX,
                dry_run=dry_run,
                source=caller,
                request_id=None,
            )
        return {
            "action": action,
            "dry_run": dry_run,
            "matched": done.matched,
            "is_more": done.is_more,
            "done": [{"job_id": old, "new_job_id": new} for old, new in done.done],
            "refused": [{"job_id": old, "code": code} for old, code in done.refused],
        }


def named(found: list[dict[str, Any]], text: str) -> str:
    """The fingerprint that the text is, or is the beginning of."""
    fits = [one["fingerprint"] for one in found if one["fingerprint"].startswith(text.strip().lower())]
    if not text.strip() or len(fits) > 1:
        raise BadInput(f"more than one kind's fingerprint begins with {text!r}", remedy="Give more of it")
    # One that is not there is refused by whoever is asked.
    return fits[0] if fits else text.strip()
