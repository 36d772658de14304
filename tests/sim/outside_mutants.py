"""Planted flaws in what concerns the world outside: providers, lines, money, webhooks and signals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.sim.mutants import Patch, change_sql, mutant
from windlass.core import settle
from windlass.core.draft import Draft, Step
from windlass.core.external import ProviderStatus, Said, WorkKey
from windlass.core.gate import Gate
from windlass.core.outcome import Failure, Fault, Lost
from windlass.engine import answer, external, signals
from windlass.engine.answer import Applied
from windlass.engine.external import Intent
from windlass.engine.loops import granter
from windlass.providers.desk import Desk
from windlass.providers.errors import ConnectionLost, RateLimited
from windlass.store import writers
from windlass.store.resources import places
from windlass.store.resources.money import Money, MoneyRoom
from windlass.store.statements import sql


@mutant(is_outer=True)
def places_are_counted_with_a_time_to_live(patch: Patch) -> None:
    recent = "s.state = 'HELD' AND s.since > windlass.clock() - interval '10 seconds' AND s.provider = $1"
    change_sql(patch, "provider_gate", ("s.state = 'HELD' AND s.provider = $1", recent))


@mutant(is_outer=True)
def a_keys_places_are_not_counted(patch: Patch) -> None:
    change_sql(patch, "grant_keys", ("s.state = 'HELD' AND s.key = k.key", "false AND s.key = k.key"))
    change_sql(patch, "grant_front", ("s.state = 'HELD' AND s.key = k.key", "false AND s.key = k.key"))


@mutant(is_outer=True)
def the_amounts_of_places_are_forgotten(patch: Patch) -> None:
    change_sql(patch, "provider_gate", ("coalesce(sum(least(s.places, p.concurrency)), 0)", "count(*)"))


@mutant(is_outer=True)
def the_amounts_of_keys_are_forgotten(patch: Patch) -> None:
    for name in ("grant_keys", "grant_front"):
        change_sql(patch, name, ("coalesce(sum(s.takes), 0) AS held", "count(*) AS held"))


@mutant(is_outer=True)
def a_resource_is_given_back_twice(patch: Patch) -> None:
    give = Money.give

    async def twice(self: Money, connection: Any, slots: Any) -> None:
        await give(self, connection, slots)
        await give(self, connection, [slot._replace(spent=Decimal(0)) for slot in slots])

    patch.setattr(Money, "give", twice)


@mutant(is_outer=True)
def a_grant_keeps_the_fence(patch: Patch) -> None:
    change_sql(patch, "slot_move", ("fence + ($3 = 'HELD')::int", "greatest(fence, ($3 = 'HELD')::int)"))


@mutant(200, is_outer=True)
def places_are_counted_before_the_lock(patch: Patch) -> None:
    grant, read = granter._grant, places.provider_row
    early: dict[int, Any] = {}

    async def hasty(connection: Any, line: str) -> int:
        if line:
            early[id(connection)] = await connection.fetchrow(sql("provider_gate"), line)
        return await grant(connection, line)

    async def remembered(connection: Any, name: str) -> Any:
        return early.pop(id(connection), None) or await read(connection, name)

    patch.setattr(granter, "_grant", hasty)
    patch.setattr(places, "provider_row", remembered)


@mutant(is_outer=True)
def effects_are_written_out_of_lock_order(patch: Patch) -> None:
    patch.setattr(writers, "WRITERS", writers.WRITERS[::-1])


@mutant(is_outer=True)
def a_lost_worker_gives_its_place_away(patch: Patch) -> None:
    def lost(draft: Draft, step: Step, _: Lost) -> None:
        step.losses += 1
        draft.admit(step, payload={"because": "worker_lost"})

    patch.setattr(settle, "_lost", lost)


@mutant(is_outer=True)
def the_end_of_a_job_leaves_its_slots(patch: Patch) -> None:
    change_sql(patch, "slot_sweep", ("WHERE job_id = ANY($1::uuid[])", "WHERE job_id = ANY($1::uuid[]) AND false"))


@mutant(is_outer=True)
def a_webhook_is_applied_to_whatever_attempt_there_is(patch: Patch) -> None:
    def judge(item: Any, work: Any, draft: Draft, notes: Any) -> Applied:
        outcome = answer.outcome_of(item.answer.said)
        if outcome is None:
            return Applied.NOTED
        work.attempt = draft.steps[work.key.no].attempt
        is_heard = settle.settle(draft, answer._report(item.answer, work, outcome), 0.0)
        work.change(answer.ENDED)
        return Applied.APPLIED if is_heard else Applied.LATE

    patch.setattr(answer, "_judge", judge)


@mutant(is_outer=True)
def a_provider_is_asked_before_that_is_written_down(patch: Patch) -> None:
    async def intend(_: Any, job_id: Any, no: int, *__: Any, **___: Any) -> Intent:
        return Intent(WorkKey(job_id, no, 1), None, "SUBMITTING", True)

    patch.setattr(external, "intend", intend)


@mutant(is_outer=True)
def every_attempt_asks_with_a_key_of_its_own(patch: Patch) -> None:
    change_sql(patch, "work_intend", ("state || '' IN ('SUBMITTING', 'RUNNING')", "state = 'NEVER'"))


@mutant(is_outer=True)
def an_answer_that_was_lost_is_taken_for_a_no(patch: Patch) -> None:
    patch.setattr(ConnectionLost, "is_ambiguous", False)


@mutant(is_outer=True)
def a_webhooks_id_is_stored_in_a_commit_of_its_own(patch: Patch) -> None:
    apply = answer._apply

    async def early(connection: Any, items: Any) -> None:
        told = [item for item in items if item.answer.event is not None and item.was is None]
        await answer._refuse(connection, told)
        new = [item for item in told if item.result is not Applied.REPLAYED]
        for item in new:
            await connection.execute(
                "INSERT INTO windlass.provider_events (provider, id, at, external_id, state, headers, body)"
                " VALUES ($1, $2, windlass.clock(), $3, 'APPLIED', '{}', '') ON CONFLICT DO NOTHING",
                *(item.answer.provider, item.event_id, item.external_id),
            )
            item.answer = item.answer._replace(event=None)
        await apply(connection, [item for item in items if item.result is not Applied.REPLAYED])

    patch.setattr(answer, "_apply", early)


@mutant(is_outer=True)
def unknown_is_taken_for_failed(patch: Patch) -> None:
    ends = (ProviderStatus.SUCCEEDED, ProviderStatus.FAILED, ProviderStatus.CANCELLED, ProviderStatus.UNKNOWN)
    outcome_of = answer.outcome_of

    def hasty(said: Said) -> Any:
        return Failure(Fault("unknown", "?")) if said.status is ProviderStatus.UNKNOWN else outcome_of(said)

    patch.setattr(ProviderStatus, "is_terminal", property(lambda status: status in ends))
    patch.setattr(answer, "outcome_of", hasty)


@mutant(is_outer=True)
def an_early_webhook_is_kept_and_never_looked_at(patch: Patch) -> None:
    change_sql(patch, "event_known", ("SET state = 'DUE'", "SET state = 'WAITING'"))


@mutant(is_outer=True)
def an_early_signal_is_dropped(patch: Patch) -> None:
    async def load(*_: Any) -> signals.Early:
        return signals.Early()

    patch.setattr(signals.Early, "load", load)


@mutant(is_outer=True)
def no_money_is_set_aside(patch: Patch) -> None:
    change_sql(patch, "budget_add", ("reserved = b.reserved + excluded.reserved", "reserved = b.reserved"))


@mutant(is_outer=True)
def money_is_looked_at_only_when_it_is_spent(patch: Patch) -> None:
    patch.setattr(MoneyRoom, "lack", lambda *_: None)


@mutant(is_outer=True)
def a_cancel_never_reaches_the_provider(patch: Patch) -> None:
    cancelling = "SET state = 'CANCELLING', polls = 0, due_at = windlass.clock()"
    change_sql(patch, "work_swept", (cancelling, "SET state = 'ENDED', due_at = NULL"))


@mutant(is_outer=True)
def work_that_came_too_late_is_forgotten(patch: Patch) -> None:
    async def disown(*_: Any) -> None:
        return

    patch.setattr(Desk, "_disown", disown)


@mutant(is_outer=True)
def a_busy_provider_is_asked_all_the_same(patch: Patch) -> None:
    gate_of = places.gate_of
    patch.setattr(places, "gate_of", lambda row: gate_of({**row, "paused_until": None}))


@mutant(is_outer=True)
def a_busy_provider_counts_as_a_failure(patch: Patch) -> None:
    patch.setattr(RateLimited, "is_counted", True)


@mutant(is_outer=True)
def requests_are_not_counted_against_the_rate(patch: Patch) -> None:
    patch.setattr(Gate, "taken", lambda gate, *_: gate)


@mutant(is_outer=True)
def a_wait_for_a_provider_has_no_end(patch: Patch) -> None:
    patch.setattr(settle, "_within_s", lambda *_: None)
