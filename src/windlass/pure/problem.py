"""Maps errors to HTTP: the status, a title, whether a retry may help, and a hint, in one table.

An error without its own row uses the row of its nearest base class. So a new error gets a sensible response before
it has a row. A test compares the tree of `core/errors.py` with this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.errors import (
    ApprovalLocked,
    ApprovalNotActionable,
    ApprovalOutdated,
    ApprovalResolved,
    ApprovalStale,
    ApprovalTerminalRun,
    BadCsrf,
    BadExpression,
    BadInput,
    BadMedia,
    BadPolicy,
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
    Denied,
    DestinationDenied,
    Forbidden,
    HeadTooLarge,
    IllegalMove,
    Limited,
    MembershipUnavailable,
    MethodNotAllowed,
    NotFound,
    OutputQuarantined,
    PolicyChanged,
    ProviderUnavailable,
    Refused,
    SafetyUnavailable,
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

# The text that a client gets for any internal error. The log has the details under the request's id.
FAULT_OF_OURS = "internal error"


@dataclass(frozen=True, slots=True)
class Kind:
    """The HTTP form of one class of errors. `hint` applies if the error itself has no remedy."""

    error: type[WindlassError]
    status: int
    title: str
    hint: str
    is_retryable: bool = False
    retry_after_s: int | None = None

    @property
    def code(self) -> str:
        """The code of the error."""
        return self.error.code


_ROWS = (
    Kind(Refused, 400, "The request was refused", "Change the request; trying it again changes nothing."),
    Kind(BadRequest, 400, "The request cannot be read", "Check the body, the headers and the query."),
    Kind(BadInput, 422, "The request is not valid", "Correct the fields that `errors` lists."),
    Kind(BadRecipe, 422, "The recipe cannot be used", "Correct the recipe."),
    Kind(BadExpression, 422, "An expression cannot be used", "Correct the expression."),
    Kind(BadPolicy, 422, "The policy cannot be used", "Correct the policy."),
    Kind(BadSetting, 422, "A setting cannot be used", "Correct the setting."),
    Kind(BadUrl, 422, "The address may not be called", "Give a public http or https address."),
    Kind(Unauthenticated, 401, "Unauthorized", "Send a key in X-API-Key, or as Authorization: Bearer."),
    Kind(BadSignature, 401, "Invalid signature", "Sign the raw body with the secret, and send it at once."),
    Kind(Forbidden, 403, "The key does not allow this", "Use a key with the named scope."),
    Kind(BadCsrf, 403, "Invalid CSRF token", "Send the session's `csrf` in X-Windlass-CSRF."),
    Kind(Denied, 403, "The policy does not allow the job", "Read the job's `error`, or ask the policy's operators."),
    Kind(DestinationDenied, 403, "The policy does not allow this destination", "Ask the policy's operators."),
    Kind(NotFound, 404, "Not found", "Check the path; resources of other callers are not shown."),
    Kind(MethodNotAllowed, 405, "Method not allowed", "Use one of the methods in `Allow`."),
    Kind(Conflict, 409, "The idempotency key was used for another body", "Use a new key for a new request."),
    Kind(CountChanged, 409, "The number of jobs has changed", "Repeat the dry run, and send the new count."),
    Kind(PolicyChanged, 409, "Another policy is in force", "Read the version in force, and publish on top of it."),
    Kind(WrongState, 409, "Not in this state", "Look at the job's status."),
    Kind(OutputQuarantined, 409, "The output is quarantined", "Ask an operator to review it, or run the job again."),
    Kind(ApprovalResolved, 409, "The approval is decided already", "Read the approval: it names its result."),
    Kind(ApprovalTerminalRun, 409, "The job has ended", "Nothing is left to decide."),
    Kind(ApprovalStale, 409, "Something else would run", "Read the approval again, then decide."),
    Kind(ApprovalOutdated, 409, "The policy has changed", "Decide on the new request that took its place."),
    Kind(ApprovalNotActionable, 409, "The approval cannot be decided now", "Read the approval: it says why."),
    Kind(ApprovalLocked, 409, "The job is busy", "Send the vote again.", True, 1),
    Kind(TooLarge, 413, "Too large", "Send less; the limit is named."),
    Kind(UrlTooLong, 414, "The URL is too long", "Send a shorter URL; the limit is named."),
    Kind(HeadTooLarge, 431, "The headers are too large", "Send fewer or shorter headers; the limit is named."),
    Kind(TooSlow, 408, "The request did not arrive in time", "Send the whole request without pauses."),
    Kind(BadMedia, 415, "Unsupported media type", "Send application/json."),
    Kind(BadRange, 416, "Range not satisfiable", "Ask for a range within the size that `Content-Range` names."),
    Kind(Limited, 429, "Over the limit", "Wait as long as `Retry-After` says.", True),
    Kind(Busy, 429, "The queues are full", "Wait as long as `Retry-After` says.", True),
    Kind(TooManyStreams, 429, "Too many open streams", "Close one, or wait as long as `Retry-After` says.", True),
    Kind(Unavailable, 503, "Not available now", "Try again; accepted work is safe.", True, 2),
    Kind(DatabaseUnavailable, 503, "The database is unavailable", "Try again; accepted work is safe.", True, 2),
    Kind(MembershipUnavailable, 503, "The Membership service is unavailable", "Try again later.", True, 30),
    Kind(ProviderUnavailable, 503, "The provider is unavailable", "Try again later.", True, 30),
    Kind(SafetyUnavailable, 503, "The safety kernel is unavailable", "Try again later.", True, 5),
    Kind(ServerUnavailable, 503, "The server is unavailable", "Try again.", True, 2),
    Kind(WaitTimeout, 504, "Not finished in time", "The job continues; ask for it again.", True),
    Kind(Broken, 500, "Internal error", "Report it with the request's id."),
    Kind(IllegalMove, 500, "Internal error", "Report it with the request's id."),
)

KINDS: dict[str, Kind] = {row.code: row for row in _ROWS}


def kind_of(error: type[WindlassError]) -> Kind:
    """Return the row of an error's class, or of its nearest base class with a row."""
    for above in error.__mro__:
        row = KINDS.get(getattr(above, "code", ""))
        if row is not None and row.error is above:
            return row
    return KINDS[Broken.code]


def hint_of(error: WindlassError) -> str:
    """Return the next step for the reader. A remedy with a command only helps on this machine; others get the hint."""
    row = kind_of(type(error))
    if row.status >= 500 and not row.is_retryable:
        return row.hint
    if error.remedy is None or "`windlass" in error.remedy or "--" in error.remedy:
        return row.hint
    return error.remedy if error.remedy.endswith((".", "?", "!")) else f"{error.remedy}."
