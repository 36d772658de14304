"""The handler's view of its attempt: ids, deadline, progress, checkpoint, cost, provider and child jobs.

A handler gets its `Context` through a parameter of that type, or from `context()`. The interface is the same in an
`async` handler, in a thread and in a `cpu=True` process; only the transport of its notes differs. No method waits for
the database: notes are joined with earlier notes and written by another task.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, MutableMapping
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, Protocol
from uuid import UUID

import msgspec

from windlass.core.errors import BadInput, TooLarge, WrongState
from windlass.core.outcome import Cost
from windlass.telemetry.logs import prefix, running
from windlass.worker.log_tail import LEVEL, Tail, line_of
from windlass.worker.output import encode

# Notes of an attempt that are not written yet: any of progress_pct, message, preview and checkpoint (JSON text), and
# `log`, a Tail of its log lines.
Words = dict[str, Any]
LOG = "log"

SAID_MAX_CHARS = 256 * 1024

_log = logging.getLogger("windlass.step")


class Cancelled(BaseException):
    """Raised by `check_cancelled`. Like asyncio's error it is not an Exception, so `except Exception` lets it pass."""


class StepProvider(Protocol):
    """The provider of the running step, as its handler sees it."""

    @property
    def name(self) -> str:
        """The provider's name in recipes; empty for a step without a provider."""
        ...

    def start(self, model: str = "", input: Any = None) -> Any:
        """Start this work at the provider, once, however many attempts the step has.

        Return its result from the handler. For work that takes a while it is a `Parked`, and the provider's result
        becomes the step's output. For a provider that answers at once it is the output itself. Await it in an `async`
        handler; in a plain handler the call blocks.
        """
        ...


class Outside(Protocol):
    """The services outside the worker that one attempt can use (`worker/outside.py`)."""

    @property
    def provider(self) -> StepProvider:
        """The step's provider."""
        ...

    def token(self) -> str:
        """Sign a token for the attempt."""
        ...

    def spawn(self, recipe: Any, inputs: Mapping[str, Any], key: str | None) -> Any:
        """Start a job."""
        ...

    def constraints(self) -> Any:
        """Read the constraints of the job."""
        ...


class _Log(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry the attempt's ids, and whose lines begin with job, step and attempt."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        mine = self.extra or {}
        kwargs["extra"] = {**mine, **(kwargs.get("extra") or {})}
        return f"{prefix(mine.get('job'), mine.get('step'), mine.get('attempt'))}{msg}", kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Write a line. The step keeps it even if the process's log level drops it."""
        if self.isEnabledFor(level) or level < LEVEL or self.logger.manager.disable >= level:
            super().log(level, msg, *args, **kwargs)
        elif (attempt := running.get(None)) is not None:
            attempt._keep(self.logger.makeRecord(self.name, level, "", 0, msg, args, None))


class Context:
    """One attempt, as its handler sees it."""

    __slots__ = (
        "_cancelled",
        "_checkpoint",
        "_cost",
        "_ends_s",
        "_key",
        "_logger",
        "_outside",
        "_say",
        "_spend",
        "attempt",
        "index",
        "job_id",
        "request_id",
        "step",
    )

    def __init__(
        self,
        job_id: UUID,
        step: str,
        index: int | None,
        attempt: int,
        *,
        checkpoint: str | None = None,
        timeout_s: float | None = None,
        say: Callable[[Words], None] | None = None,
        request_id: str | None = None,
        outside: Callable[[], Outside] | None = None,
        spend: Callable[[Cost], None] | None = None,
        key: str | None = None,
    ) -> None:
        self.job_id = job_id
        self.step = step
        self.index = index
        self.attempt = attempt
        # The id of the request that made the job; None for a job without a request.
        self.request_id = request_id
        self._key = key
        self._checkpoint = checkpoint
        self._ends_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._say = say
        self._outside = outside
        # Called with the total cost. None in the worker's process, which reads the cost at the end.
        self._spend = spend
        self._cost: Cost | None = None
        self._cancelled = False
        self._logger: _Log | None = None

    @property
    def key(self) -> str:
        """The step's idempotency key: the same on every attempt, and unique among all steps of all jobs.

        The key of an undo step is `undo/` and the key of the step that it undoes.
        """
        if self._key is not None:
            return self._key
        place = self.step if self.index is None else f"{self.step}[{self.index}]"
        return f"{self.job_id}/{place}"

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that prefixes each line with its job, step and attempt."""
        if self._logger is None:
            ids = {"job": str(self.job_id), "step": self.step, "index": self.index, "attempt": self.attempt}
            self._logger = _Log(_log, {**ids, "request_id": self.request_id})
        return self._logger

    @property
    def deadline(self) -> float:
        """The seconds that the attempt has left; infinite without a limit, 0 when its time is over."""
        return math.inf if self._ends_s is None else max(0.0, self._ends_s - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the attempt should stop: its job was cancelled, or this worker no longer holds the step."""
        return self._cancelled

    def check_cancelled(self) -> None:
        """Raise `Cancelled` if the attempt should stop. For plain handlers; asyncio cancels async handlers."""
        if self._cancelled:
            raise Cancelled(f"attempt {self.attempt} of {self.key} was cancelled")

    def progress(self, pct: float, message: str = "") -> None:
        """Report how far the step is, from 0 to 100. Cheap: call it as often as you like."""
        if not math.isfinite(pct):
            raise ValueError(f"progress is a number from 0 to 100, not {pct}")
        self._tell({"progress_pct": min(100.0, max(0.0, float(pct))), "message": str(message)})

    def preview(self, value: Any) -> None:
        """Show a first, partial or small form of the result before the step is done. Any JSON value."""
        self._tell({"preview": _said(value, "preview")})

    @property
    def checkpoint(self) -> Any:
        """The value of the step's last `save`, also from an earlier attempt; None when nothing was saved."""
        return None if self._checkpoint is None else msgspec.json.decode(self._checkpoint)

    def save(self, value: Any) -> None:
        """Keep a JSON value for the next attempt, should this one fail. The latest wins; written within 0.5 s."""
        self._checkpoint = _said(value, "checkpoint")
        self._tell({"checkpoint": self._checkpoint})

    def cost(
        self,
        amount: Decimal | str | float = 0,
        *,
        tokens_in: int = 0,
        tokens_out: int = 0,
        seconds: float = 0.0,
        provider: str = "",
    ) -> None:
        """Report what the attempt has spent, in money and in tokens or seconds. Several calls add up.

        The cost is stored with every outcome, also a failure, and counts against the budgets. Pass money as text or
        Decimal; a float counts as it prints. Costs of `ctx.provider` are added without this call.
        """
        money = _money(amount)
        if min(tokens_in, tokens_out) < 0 or not (math.isfinite(seconds) and seconds >= 0):
            raise BadInput("tokens and seconds must be numbers of at least 0")
        self._spent(Cost(f"{money:f}", int(tokens_in), int(tokens_out), float(seconds), provider))

    @property
    def provider(self) -> StepProvider:
        """The step's provider: `return await ctx.provider.start(model=…, input=…)`; a plain handler needs no await."""
        return self._beyond().provider

    @property
    def token(self) -> str:
        """A token with which an outside system reports the end of the step, valid for this attempt only.

        Pass it on with the work, and return `Parked`. `POST /jobs/{id}/complete` accepts it.
        """
        return self._beyond().token()

    def spawn(self, recipe: Any, inputs: Mapping[str, Any] | None = None, *, key: str | None = None) -> Any:
        """Start a job of another recipe without waiting for it. Returns the job's id; await it in an `async` handler.

        The job is a child of this job: it is cancelled with this job and has its deadline. The same `key` in the same
        step returns the same job, so a repeated attempt starts no second job. No step waits for it.
        """
        return self._beyond().spawn(recipe, dict(inputs or {}), key)

    def constraints(self) -> Any:
        """Return the limits that the policy sets for the job, as a document has them. Await it in an `async` handler.

        Windlass enforces some of them. Only the handler can keep those of `sandbox`, `toolchain`, `diff` and tokens.
        """
        return self._beyond().constraints()

    def _beyond(self) -> Outside:
        if self._outside is None:
            raise WrongState(
                "the handler's attempt is over, or it runs on no worker",
                remedy="Use ctx.provider, ctx.token, ctx.spawn and ctx.constraints while the handler runs",
            )
        return self._outside()

    def _spent(self, cost: Cost) -> None:
        self._cost = cost if self._cost is None else added(self._cost, cost)
        if self._spend is not None:
            self._spend(self._cost)

    def _keep(self, record: logging.LogRecord) -> None:
        """Keep a line that was logged while this attempt runs."""
        if self._say is not None:
            tail = Tail()
            tail.add(line_of(record))
            self._tell({LOG: tail})

    def _tell(self, words: Words) -> None:
        # Notes of an attempt that is over are dropped, for example of a thread whose time limit has passed.
        if self._say is not None:
            self._say(words)

    def _cancel(self) -> None:
        self._cancelled = True

    def _close(self) -> None:
        self._say = None
        self._outside = None


def added(one: Cost, other: Cost) -> Cost:
    """Add two costs. The provider is the last one named."""
    return Cost(
        f"{Decimal(one.amount) + Decimal(other.amount):f}",
        one.tokens_in + other.tokens_in,
        one.tokens_out + other.tokens_out,
        one.seconds + other.seconds,
        other.provider or one.provider,
    )


def _money(amount: Decimal | str | float) -> Decimal:
    try:
        money = Decimal(str(amount))
    except InvalidOperation:
        raise BadInput(f"{amount!r} is not an amount of money") from None
    if not money.is_finite() or money < 0:
        raise BadInput(f"{amount!r} is not an amount of money of at least 0")
    return money


def refuse_cpu() -> NoReturn:
    """Refuse a `cpu=True` handler that uses its provider, its token or spawns a job."""
    raise WrongState(
        "a cpu=True handler runs in a separate process, which has no access to providers, tokens or other jobs",
        remedy="Do that in a step without cpu=True, before or after it",
    )


def join_words(said: Words, words: Words) -> None:
    """Join later notes with earlier ones: the latest value wins, except that log lines are appended."""
    earlier, later = said.get(LOG), words.get(LOG)
    said.update(words)
    if earlier is not None and later is not None:
        earlier.join(later)
        said[LOG] = earlier


def _said(value: Any, what: str) -> str:
    text = encode(value, what)
    if len(text) > SAID_MAX_CHARS:
        raise TooLarge(
            f"the {what} has {len(text):,} characters, and may have {SAID_MAX_CHARS:,}",
            remedy="Store it in a file or bucket, and return its address",
        )
    return text


def context() -> Context:
    """Return the context of the handler that is running here."""
    try:
        return running.get()  # type: ignore[no-any-return]
    except LookupError:
        raise WrongState(
            "no handler is running here, so there is no context",
            remedy="Call windlass.context() inside a step's function",
        ) from None


def enter(ctx: Context) -> None:
    """Make `ctx` the result of `context()` in the current contextvars context."""
    running.set(ctx)
