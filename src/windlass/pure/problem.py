"""What an error is over HTTP: its status, a title, whether trying again may help, and what to do. The one table.

An error whose own code is not here has the row of the nearest class above it that has one, so a new error is answered
sensibly before anyone has thought of it. A test walks the tree of `core/errors.py` and this table together.
"""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.errors import (
    BadCsrf,
    BadExpression,
    BadInput,
    BadMedia,
    BadRange,
    BadRecipe,
    BadRequest,
    BadSetting,
    BadSignature,
    BadUrl,
    Broken,
    Busy,
    Conflict,
    CountChanged,
    DatabaseUnavailable,
    Forbidden,
    HeadTooLarge,
    IllegalMove,
    Limited,
    MembershipUnavailable,
    MethodNotAllowed,
    NotFound,
    OutputQuarantined,
    ProviderUnavailable,
    Refused,
    ServerUnavailable,
    TooLarge,
    TooManyStreams,
    TooSlow,
    Unauthenticated,
    Unavailable,
    UrlTooLong,
    WaitTimeout,
    WindlassError,
    WrongState,
)

# What a client is told of a fault of ours, whatever it was: the rest is in the log, under the request's id.
FAULT_OF_OURS = "a fault of ours"


@dataclass(frozen=True, slots=True)
class Kind:
    """How an error of one class is told. `hint` is what to do when the error itself does not say."""

    error: type[WindlassError]
    status: int
    title: str
    hint: str
    is_retryable: bool = False
    retry_after_s: int | None = None

    @property
    def code(self) -> str:
        """The error's code."""
        return self.error.code


_ROWS = (
    Kind(Refused, 400, "The request was refused", "Change the request; trying it again changes nothing."),
    Kind(BadRequest, 400, "The request cannot be read", "Check the body, the headers and the query."),
    Kind(BadInput, 422, "The request does not fit", "Correct what `errors` names."),
    Kind(BadRecipe, 422, "The recipe cannot be used", "Correct the recipe."),
    Kind(BadExpression, 422, "An expression cannot be used", "Correct the expression."),
    Kind(BadSetting, 422, "A setting cannot be used", "Correct the setting."),
    Kind(BadUrl, 422, "The address may not be called", "Give a public http or https address."),
    Kind(Unauthenticated, 401, "No good key", "Send a key in X-API-Key, or as Authorization: Bearer."),
    Kind(BadSignature, 401, "Not signed as it must be", "Sign the raw body with the secret, and send it at once."),
    Kind(Forbidden, 403, "The key does not allow this", "Ask for a key with the scope that is named."),
    Kind(BadCsrf, 403, "A page that is not the console sent it", "Send the session's `csrf` in X-Windlass-CSRF."),
    Kind(NotFound, 404, "No such thing", "Check the path; what belongs to another caller is not shown either."),
    Kind(MethodNotAllowed, 405, "The path has no such method", "Use one of the methods in `Allow`."),
    Kind(Conflict, 409, "The idempotency key was used for another body", "Use a new key for a new request."),
    Kind(CountChanged, 409, "The number of jobs has changed", "Ask again with dry_run, and give the new count."),
    Kind(WrongState, 409, "Not in this state", "Look at the job's status."),
    Kind(OutputQuarantined, 409, "The output is quarantined", "Ask an operator to review it, or run the job again."),
    Kind(TooLarge, 413, "Too large", "Send less; the limit is named."),
    Kind(UrlTooLong, 414, "The URL is too long", "Send a shorter URL; the limit is named."),
    Kind(HeadTooLarge, 431, "The headers are too large", "Send fewer or shorter headers; the limit is named."),
    Kind(TooSlow, 408, "The request did not arrive in time", "Send the whole request without pauses."),
    Kind(BadMedia, 415, "Not a kind of body that is taken", "Send application/json."),
    Kind(BadRange, 416, "No such range", "Ask for a range within the size that `Content-Range` names."),
    Kind(Limited, 429, "Over the limit", "Wait as long as `Retry-After` says.", True),
    Kind(Busy, 429, "Too much waits already", "Wait as long as `Retry-After` says.", True),
    Kind(TooManyStreams, 429, "Too many open streams", "Close one, or wait as long as `Retry-After` says.", True),
    Kind(Unavailable, 503, "Not available now", "Try again; nothing that was accepted is lost.", True, 2),
    Kind(DatabaseUnavailable, 503, "The database is away", "Try again; nothing that was accepted is lost.", True, 2),
    Kind(MembershipUnavailable, 503, "The Membership service is away", "Try again later.", True, 30),
    Kind(ProviderUnavailable, 503, "The provider is away", "Try again later.", True, 30),
    Kind(ServerUnavailable, 503, "The server is away", "Try again.", True, 2),
    Kind(WaitTimeout, 504, "Not finished in time", "The job goes on; ask for it again.", True),
    Kind(Broken, 500, "A fault of ours", "Report it with the request's id."),
    Kind(IllegalMove, 500, "A fault of ours", "Report it with the request's id."),
)

KINDS: dict[str, Kind] = {row.code: row for row in _ROWS}


def kind_of(error: type[WindlassError]) -> Kind:
    """The row of an error's class, or of the nearest class above it."""
    for above in error.__mro__:
        row = KINDS.get(getattr(above, "code", ""))
        if row is not None and row.error is above:
            return row
    return KINDS[Broken.code]


def hint_of(error: WindlassError) -> str:
    """What to do next. A remedy that names a command is for whoever sits at this machine; others get the row's hint."""
    row = kind_of(type(error))
    if row.status >= 500 and not row.is_retryable:
        return row.hint
    if error.remedy is None or "`windlass" in error.remedy or "--" in error.remedy:
        return row.hint
    return error.remedy if error.remedy.endswith((".", "?", "!")) else f"{error.remedy}."
