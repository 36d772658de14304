"""Polls providers for the status of submitted work and cancels work that no step waits for.

    next_due ──► one round per provider ──► take (rows, for a lease) ──► ask, some at a time ──► answer, polled
       ▲                                                                       │ the poller dies
       └───────────────────────────────────────────────────────────────────────┴──► the lease expires: due again

One loop serves all work of all providers: waiting work is a row, and costs nothing here. A round belongs to one
provider, so a provider that hangs delays no other provider. The answers of other providers are written meanwhile. The
poller first asks the database how many requests it may send (`take`): all processes share the provider's rate.

An answer goes through the same function as a webhook, and the second of two changes nothing. UNKNOWN, an error or a 404
ends nothing. The step has its own deadline.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from windlass.core.bell import PollDue
from windlass.core.errors import Unavailable
from windlass.core.external import ProviderStatus, poll_wait_s
from windlass.engine import external, providers
from windlass.engine.external import Answer, Polled, Work
from windlass.engine.loops.duty import Done
from windlass.engine.loops.sender import PAUSE_S, SenderLoop
from windlass.providers.desk import Counts, HasAdapter
from windlass.providers.errors import NotFound, ProviderError, ProviderTimeout, RateLimited
from windlass.providers.health import BUSY_S, tell
from windlass.providers.output import fit_output
from windlass.pure.observer import Observer
from windlass.store.artifact import Artifacts
from windlass.store.database import Database

SOURCE = "poller"
BATCH_MAX = 200
# The most concurrent requests to one provider.
AT_ONCE = 16
LEASE_S = 120.0
# A bell can be lost, so the poller checks this often without one.
LOOK_EVERY_S = 5.0
GLANCE_S = 0.1
# Work that becomes due within this time is polled together.
GATHER_S = 0.5
FLUSH_S = 1.0
# After so many failures in a row, the rest of the round is put off.
FAILURES_MAX = 5
PUT_OFF_S = 10.0
# How often a cancellation is tried before people must look.
CANCELS_MAX = 10
# How long a submit may stay under way beyond the time of two requests, and how often its work is looked for meanwhile.
ON_ITS_WAY_S = 60.0
LOOKS_MAX = 4

# The statuses of work that no cancellation could reach; a sweep lists these.
GAVE_UP = "gave_up"
NEVER_TOLD = "the provider never reported an id for it"
CANNOT_CANCEL = "cannot_cancel"
NOT_THERE = "not_there"
LOOKED_FOR = "looked_for"
_STATUS_MAX = 200

_log = logging.getLogger("windlass.providers")


class _Round:
    """The unwritten results of one round."""

    def __init__(self, provider: HasAdapter, works: Sequence[Work], until_s: float) -> None:
        self.provider = provider
        self.left: Iterator[Work] = iter(works)
        self.until_s = until_s
        self.answers: list[tuple[Work, Answer]] = []
        self.polled: list[Polled] = []
        self.failures = 0
        self.is_answered = False
        # Set when the round must send no more requests: how long to put off the rest.
        self.put_off_s: float | None = None

    def give_back(self, work: Work, after_s: float) -> None:
        """Return the work without a request."""
        self.polled.append(Polled(work, work.status, after_s, is_poll=False))


class Poller(SenderLoop):
    """Polls providers.

    Any number of pollers may run, in any process: a row belongs to one poller until its lease expires.
    """

    name = "poller"
    bell = PollDue
    title = "the poller of providers"

    def __init__(
        self,
        db: Database,
        registry: Mapping[str, HasAdapter],
        artifacts: Artifacts,
        *,
        spread: Callable[[], float],
        clock_s: Callable[[], float],
        output_max_bytes: int = 256 * 1024,
        batch_max: int = BATCH_MAX,
        at_once: int = AT_ONCE,
        observer: Observer | None = None,
        counts: Counts | None = None,
    ) -> None:
        super().__init__(db, _log, clock_s)
        self._registry = registry
        self._artifacts = artifacts
        self._spread = spread
        self._output_max_bytes = output_max_bytes
        self._batch_max = batch_max
        self._at_once = at_once
        self._observer = observer
        self._counts = counts
        # No bell rings when work begins, so the poller must wake for its first poll.
        first_s = [provider.config.poll_s[0] for provider in registry.values()]
        self._look_every_s = max(GLANCE_S, min([LOOK_EVERY_S, *first_s]))
        self._rounds: dict[str, asyncio.Task[None]] = {}
        # By provider: when, by `clock_s`, the next round may begin.
        self._not_before_s: dict[str, float] = {}

    async def stop(self) -> None:
        """Stop. Work under way is polled again when its lease has expired."""
        await super().stop()
        for task in self._rounds.values():
            task.cancel()
        await asyncio.gather(*self._rounds.values(), return_exceptions=True)

    async def run_once(self, names: Sequence[str] | None = None) -> Done:
        """Run one round of every provider with due work, one after the other. For tests."""
        count = 0
        names = sorted(self._registry) if names is None else names
        for name, due_s in sorted((await external.next_due(self._db, names)).items()):
            if due_s <= 0:
                count += await self._round(name)
        return Done(count, False)

    # The loop.

    def under_way(self) -> Iterable[asyncio.Task[None]]:
        """Return the rounds under way."""
        return self._rounds.values()

    async def turn(self) -> float:
        """Begin the rounds that are due."""
        self._rounds = {name: task for name, task in self._rounds.items() if not task.done()}
        due = await external.next_due(self._db, sorted(self._registry.keys() - self._rounds.keys()))
        now_s = self._clock_s()
        wait_s = self._look_every_s
        for name, due_s in sorted(due.items()):
            after_s = max(due_s, self._not_before_s.get(name, 0.0) - now_s)
            if after_s > 0:
                wait_s = min(wait_s, after_s + 0.005)
            else:
                self._rounds[name] = asyncio.create_task(self._in_background(name), name=f"windlass-poll-{name}")
        return wait_s

    async def _in_background(self, name: str) -> None:
        count, began_s = 0, self._clock_s()
        pause_s = GATHER_S
        try:
            count = await self._round(name)
            if self._observer is not None and count:
                self._observer.looped(self.name, count, self._clock_s() - began_s)
        except Unavailable as error:
            self._outages.note(error)
            pause_s = PAUSE_S
        except Exception:
            _log.exception("a round of polls of %s failed; its work is polled again later", name)
            pause_s = PAUSE_S
        if count < self._batch_max:
            self._not_before_s[name] = self._clock_s() + pause_s

    # A round.

    async def _round(self, name: str) -> int:
        provider = self._registry[name]
        # At most about a second's worth: work beyond the rate would only be taken to be returned.
        limit = max(1, min(self._batch_max, round(provider.config.rate)))
        began_s = self._clock_s()
        works = await external.due(self._db, limit, LEASE_S, provider=name)
        if not works:
            return 0
        allowed = await providers.take(self._db, name, len(works))
        heard = _Round(provider, works[:allowed], began_s + LEASE_S / 2)
        # While no request is allowed (the provider is busy, or its breaker open), its work is taken less often.
        least_s = 0.1 if allowed else PAUSE_S
        for at, work in enumerate(works[allowed:], 1):
            heard.give_back(work, max(least_s, at / provider.config.rate))
        await self._ask_all(heard, allowed)
        return allowed

    async def _ask_all(self, heard: _Round, count: int) -> None:
        if self._at_once == 1:
            await self._hand(heard)
            await self._write(heard)
            return
        hands = {asyncio.create_task(self._hand(heard)) for _ in range(min(self._at_once, count))}
        try:
            while hands:
                done, hands = await asyncio.wait(hands, timeout=FLUSH_S)
                await self._write(heard)
                for hand in done:
                    hand.result()
        finally:
            for hand in hands:
                hand.cancel()
            await asyncio.gather(*hands, return_exceptions=True)
        await self._write(heard)

    async def _hand(self, heard: _Round) -> None:
        for work in heard.left:
            if heard.put_off_s is not None:
                heard.give_back(work, heard.put_off_s)
            elif self._clock_s() >= heard.until_s:
                # The lease would expire in the middle of the request.
                heard.give_back(work, 0.1)
            else:
                await self._one(heard, work)

    async def _one(self, heard: _Round, work: Work) -> None:
        name = heard.provider.config.name
        try:
            async with asyncio.timeout(2 * heard.provider.config.timeout_s):
                if work.state == "CANCELLING":
                    await self._cancel(heard, work)
                else:
                    await self._ask(heard, work)
        except ProviderError as error:
            await self._failed(heard, work, error)
            return
        except TimeoutError:
            await self._failed(heard, work, ProviderTimeout(f"{name} did not answer in time"))
            return
        except Exception as error:
            # The adapter is at fault: this work is polled again, and the other work is not affected.
            _log.exception("%s could not be polled about %s", name, work.external_id)
            heard.polled.append(Polled(work, _text(f"{type(error).__name__}: {error}"), self._wait_s(heard, work)))
            return
        heard.failures, heard.is_answered = 0, True
        self._count(name, work, "ok")

    async def _ask(self, heard: _Round, work: Work) -> None:
        assert work.external_id is not None
        name = heard.provider.config.name
        said = await heard.provider.adapter.get_job_status(work.external_id)
        is_news = said.progress_pct is not None or said.message is not None or said.preview is not None
        if said.status.is_terminal or is_news:
            said = await fit_output(self._artifacts, said, self._output_max_bytes)
            heard.answers.append((work, Answer(name, work.external_id, said, SOURCE, work.key)))
        if not said.status.is_terminal:
            heard.polled.append(Polled(work, said.status, self._wait_s(heard, work)))

    def _count(self, name: str, work: Work, result: str) -> None:
        if self._counts is not None:
            self._counts.called(name, "cancel" if work.state == "CANCELLING" else "status", result)

    async def _failed(self, heard: _Round, work: Work, error: ProviderError) -> None:
        """Record a request without an answer. The work goes on."""
        self._count(work.provider, work, error.code)
        is_cancel = work.state == "CANCELLING"
        if isinstance(error, RateLimited):
            heard.put_off_s = BUSY_S if error.after_s is None else error.after_s
            heard.give_back(work, heard.put_off_s)
        elif is_cancel and not error.counts_against_breaker:
            self._try_again(heard, work, f"{error.code}: {error.message}")
        else:
            # A cancel that did not reach the provider does not count as a try.
            wait_s = self._wait_s(heard, work)
            heard.polled.append(Polled(work, _text(error.code), wait_s, is_poll=not is_cancel))
        if error.counts_against_breaker:
            heard.failures += 1
            if heard.failures >= FAILURES_MAX:
                heard.put_off_s = PUT_OFF_S
        await tell(self._db, heard.provider.config.name, error)

    def _wait_s(self, heard: _Round, work: Work) -> float:
        return poll_wait_s(work.polls + 1, self._spread(), waits_s=heard.provider.config.poll_s)

    # Cancelling.

    async def _cancel(self, heard: _Round, work: Work) -> None:
        adapter = heard.provider.adapter
        if not adapter.can_cancel:
            heard.polled.append(Polled(work, CANNOT_CANCEL, None, is_over=True))
            return
        external_id = work.external_id
        if external_id is None and adapter.can_find:
            external_id = await adapter.find_job(str(work.key))
        if external_id is None:
            self._not_found(heard, work)
            return
        try:
            status = await adapter.cancel_job(external_id)
        except NotFound:
            status = ProviderStatus.UNKNOWN
        if status.is_terminal or status is ProviderStatus.UNKNOWN:
            heard.polled.append(Polled(work, status, None, is_over=True))
        else:
            self._try_again(heard, work, status)

    def _not_found(self, heard: _Round, work: Work) -> None:
        """Handle a cancel of work without a known id, which may not even have begun.

        The request that starts the work may still be under way, because its worker was stopped in the middle of it. So
        the poller looks for the work a few times, for longer than any request takes. After that it does not exist, if
        the provider can look work up.
        """
        on_its_way_s = ON_ITS_WAY_S + 2 * heard.provider.config.timeout_s
        if work.polls < LOOKS_MAX:
            heard.polled.append(Polled(work, LOOKED_FOR, on_its_way_s / LOOKS_MAX))
        elif heard.provider.adapter.can_find:
            heard.polled.append(Polled(work, NOT_THERE, None, is_over=True))
        else:
            self._give_up(heard, work, NEVER_TOLD)

    def _try_again(self, heard: _Round, work: Work, why: str) -> None:
        if work.polls + 1 >= CANCELS_MAX:
            self._give_up(heard, work, why)
        else:
            heard.polled.append(Polled(work, _text(why), self._wait_s(heard, work)))

    def _give_up(self, heard: _Round, work: Work, why: str) -> None:
        _log.warning("work %s at %s cannot be cancelled: %s", work.key, work.provider, why)
        heard.polled.append(Polled(work, _text(f"{GAVE_UP}: {why}"), None))

    # Writing.

    async def _write(self, heard: _Round) -> None:
        answers, heard.answers = heard.answers, []
        polled, heard.polled = heard.polled, []
        if answers:
            polled += await self._answer(heard, answers)
        if polled:
            await external.polled(self._db, polled)
        if heard.is_answered:
            heard.is_answered = False
            await tell(self._db, heard.provider.config.name, None)

    async def _answer(self, heard: _Round, answers: list[tuple[Work, Answer]]) -> list[Polled]:
        """Settle the answers in one commit. An answer that cannot be written must not block the others."""
        try:
            await external.answer(self._db, [answer for _, answer in answers], spread=self._spread)
            return []
        except Unavailable:
            raise
        except Exception:
            if len(answers) > 1:
                _log.exception("%d answers of a provider were refused; each is now written alone", len(answers))
                return [one for pair in answers for one in await self._answer(heard, [pair])]
            work, answer = answers[0]
            _log.exception("the answer of %s about %s cannot be written", work.provider, work.external_id)
            return [Polled(work, _text(f"unwritable: {answer.said.status}"), self._wait_s(heard, work))]


def _text(status: Any) -> str:
    """Format a status for its row."""
    return str(status).replace("\x00", "")[:_STATUS_MAX]
