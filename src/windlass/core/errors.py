"""Every error that Windlass raises: one tree with three branches, ordered by the party that must act.

    WindlassError
    ├── Refused                fix the request; trying it again changes nothing
    │   ├── BadRecipe          a recipe that cannot be compiled; has `place`
    │   │   └── BadExpression  a `${…}` that cannot be parsed or is over a limit
    │   ├── BadPolicy          a policy that cannot be used; has `place` and `line`
    │   ├── BadInput           inputs that do not fit the recipe's schema
    │   ├── BadRequest         a body, header, cursor or query that cannot be read
    │   ├── BadMedia           a body of an unsupported media type
    │   ├── BadRange           a byte range outside of the content
    │   ├── BadUrl             an address that may not be called
    │   ├── BadSetting         a setting, flag or file that cannot be used
    │   ├── TooLarge           over a stated limit
    │   │   ├── HeadTooLarge   the headers of a request are over a limit
    │   │   └── UrlTooLong     the URL of a request is over a limit
    │   ├── TooSlow            a request that did not arrive in time
    │   ├── Unauthenticated    no key, or a key that is not valid
    │   │   └── BadSignature   a webhook or a token with an invalid or expired signature
    │   ├── Forbidden          the key is valid but does not allow this
    │   │   ├── BadCsrf        a browser's change that the console's page did not make
    │   │   └── Denied         the policy does not allow the job or its request; has `job_id` and `rule`
    │   │       └── DestinationDenied  the policy does not allow a request to this host
    │   ├── NotFound           no such job, step, recipe or artifact
    │   ├── MethodNotAllowed   the path exists but does not support the method
    │   ├── Conflict           the same idempotency key with another body
    │   │   ├── CountChanged   a bulk action would touch another number of jobs than was shown
    │   │   └── PolicyChanged  another version of the policy is in force than the publisher expected
    │   └── WrongState         the job or step is not in a state that allows it
    │       ├── OutputQuarantined  the output policy hides the content
    │       ├── ApprovalResolved       the approval has its result already
    │       ├── ApprovalTerminalRun    the approval's job has ended
    │       ├── ApprovalStale          something else would run than the voter saw
    │       ├── ApprovalOutdated       the policy has changed: another approval is asked for
    │       └── ApprovalNotActionable  the approval cannot be decided now
    ├── Unavailable            the request is correct; try again
    │   ├── ApprovalLocked     another transaction holds the approval's job
    │   ├── DatabaseUnavailable
    │   ├── MembershipUnavailable
    │   ├── ServerUnavailable  the client cannot reach the server
    │   ├── ProviderUnavailable  a provider does not answer, or reports that it is unavailable
    │   ├── SafetyUnavailable  the kernel that judges requests gives no verdict; has `is_silent`
    │   ├── Limited            over the caller's limit; has `retry_after_s`
    │   │   ├── Busy           too many steps wait in the queues
    │   │   └── TooManyStreams
    │   └── WaitTimeout        the job did not finish in the time the caller gave
    ├── Broken                 a bug in Windlass; please report it
    │   └── IllegalMove        a transition that the state tables do not have
    └── JobFailed              the awaited job ended without a result (pure/job_failed.py)
        └── JobCancelled

Each class has a stable `code`. An outcome of a handler (failed, snooze, parked, cancel) is a value in
`core/outcome.py`, not an error of this tree. For the same reason `Permanent` and `Transient`, which handlers may
raise, are not part of the tree.
"""

from __future__ import annotations


class WindlassError(Exception):
    """The root of the tree. `remedy` is a sentence that tells the reader what to do next."""

    code = "windlass_error"

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}. {self.remedy}"


class Refused(WindlassError):
    """The request is wrong: fix it before trying again."""

    code = "refused"


class BadRecipe(Refused):
    """The recipe cannot be compiled; `place` is the position, such as `steps.render.with.scene`."""

    code = "bad_recipe"

    def __init__(self, message: str, *, place: str = "", remedy: str | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message, remedy=remedy)
        self.place = place


class BadExpression(BadRecipe):
    """The expression cannot be parsed, or is over a limit."""

    code = "bad_expression"


class BadPolicy(Refused):
    """The policy cannot be used; `place` is the position, such as `rules[3].match.topics`, and `line` its line."""

    code = "bad_policy"

    def __init__(self, message: str, *, place: str = "", line: int | None = None, remedy: str | None = None) -> None:
        told = f"{place}: {message}" if place else message
        super().__init__(told if line is None else f"{told} (line {line})", remedy=remedy)
        self.place = place
        self.line = line


class BadInput(Refused):
    """The inputs do not fit the recipe's schema. `errors` lists further errors as (JSON pointer, message)."""

    code = "bad_input"

    def __init__(self, message: str, *, errors: tuple[tuple[str, str], ...] = (), remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.errors = errors


class BadRequest(Refused):
    """A body, header, cursor or query cannot be read."""

    code = "bad_request"


class BadMedia(Refused):
    """The body has an unsupported media type."""

    code = "bad_media"


class BadRange(Refused):
    """The byte range lies outside of the content; `size` is the content's length."""

    code = "bad_range"

    def __init__(self, message: str, *, size: int, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.size = size


class BadUrl(Refused):
    """The address may not be called. The error never reveals what the host name resolved to."""

    code = "bad_url"


class BadSetting(Refused):
    """A setting, flag or file cannot be used."""

    code = "bad_setting"


class TooLarge(Refused):
    """A value is over a stated limit."""

    code = "too_large"


class HeadTooLarge(TooLarge):
    """The request line and the headers of a request are over a limit."""

    code = "head_too_large"


class UrlTooLong(TooLarge):
    """The URL of a request is over a limit."""

    code = "url_too_long"


class TooSlow(Refused):
    """The head or body of a request did not arrive in time."""

    code = "too_slow"


class Unauthenticated(Refused):
    """The key is missing, unknown, revoked or expired. The error does not reveal which."""

    code = "unauthenticated"


class BadSignature(Unauthenticated):
    """The signature of a webhook or a token is invalid or too old."""

    code = "bad_signature"


class Forbidden(Refused):
    """The key is valid but does not allow this."""

    code = "forbidden"


class BadCsrf(Forbidden):
    """A browser sent the session cookie without the token that only the console's page has."""

    code = "bad_csrf"


class Denied(Forbidden):
    """The policy does not allow the job. The job `job_id` is kept in the state DENIED; `rule` is the policy's rule."""

    code = "safety_denied"

    def __init__(self, message: str, *, job_id: str = "", rule: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.job_id = job_id
        self.rule = rule


class DestinationDenied(Denied):
    """The policy does not allow a request to this host."""

    code = "destination_denied"


class NotFound(Refused):
    """The job, step, recipe or artifact does not exist."""

    code = "not_found"


class MethodNotAllowed(Refused):
    """The path exists but does not support the method; `allowed` lists the supported methods."""

    code = "method_not_allowed"

    def __init__(self, message: str, *, allowed: tuple[str, ...] = (), remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.allowed = allowed


class Conflict(Refused):
    """The idempotency key was already used with another body."""

    code = "conflict"


class CountChanged(Conflict):
    """A bulk action would touch another number of jobs than the caller confirmed."""

    code = "count_changed"


class PolicyChanged(Conflict):
    """Another version of the policy is in force than the publisher expected."""

    code = "policy_changed"


class WrongState(Refused):
    """The job or step is not in a state that allows this."""

    code = "wrong_state"


class OutputQuarantined(WrongState):
    """The output policy quarantined the requested content."""

    code = "output_quarantined"


class ApprovalResolved(WrongState):
    """The approval has its result already."""

    code = "approval_already_resolved"


class ApprovalTerminalRun(WrongState):
    """The approval's job has ended."""

    code = "approval_terminal_run"


class ApprovalStale(WrongState):
    """Something else would run than the voter saw."""

    code = "approval_stale_request"


class ApprovalOutdated(WrongState):
    """The policy has changed since the approval was requested, so another approval is asked for."""

    code = "approval_stale_snapshot"


class ApprovalNotActionable(WrongState):
    """The approval cannot be decided now: its time is over, or nothing waits for it."""

    code = "approval_not_actionable"


class Unavailable(WindlassError):
    """The request is correct but cannot be served now: try again."""

    code = "unavailable"


class ApprovalLocked(Unavailable):
    """Another transaction held the approval's job for too long."""

    code = "approval_retryable_lock"


class DatabaseUnavailable(Unavailable):
    """PostgreSQL cannot be reached, or dropped the connection."""

    code = "database_unavailable"


class MembershipUnavailable(Unavailable):
    """The Membership service does not answer, so the key cannot be validated."""

    code = "membership_unavailable"


class ServerUnavailable(Unavailable):
    """The client cannot reach the server."""

    code = "server_unavailable"


class ProviderUnavailable(Unavailable):
    """A provider does not answer, or reports that it is unavailable."""

    code = "provider_unavailable"


class SafetyUnavailable(Unavailable):
    """The kernel that judges requests gives no verdict.

    `is_silent` says that no answer came. Only silence may be bypassed, and only in the fail mode `open`. An answer that
    is an error proves that the kernel was reached, so the request waits in both modes.
    """

    code = "safety_unavailable"

    def __init__(self, message: str, *, is_silent: bool = False, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.is_silent = is_silent


class Limited(Unavailable):
    """The caller is over its limit and may try again after `retry_after_s`."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after_s: float, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s


class Busy(Limited):
    """Too many steps wait in the queues. This limit applies to all callers."""

    code = "busy"


class TooManyStreams(Limited):
    """The caller, or this process, already has as many open streams as allowed."""

    code = "too_many_streams"


class WaitTimeout(Unavailable):
    """The job did not finish in the time that the caller gave; the job continues."""

    code = "wait_timeout"


class Broken(WindlassError):
    """A bug in Windlass."""

    code = "broken"


class IllegalMove(Broken):
    """The state tables do not have this transition."""

    code = "illegal_move"


class Permanent(Exception):
    """Raise this in a handler when another attempt cannot help: the step fails at once."""


class Transient(Exception):
    """Raise this in a handler when another attempt may help; `after_s` asks for a wait before it."""

    def __init__(self, *args: object, after_s: float | None = None) -> None:
        super().__init__(*args)
        self.after_s = after_s
