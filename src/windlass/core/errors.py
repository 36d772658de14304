"""Every error that Windlass raises, in one tree with three branches, by who must act.

    WindlassError
    ├── Refused                fix the request; trying it again changes nothing
    │   ├── BadRecipe          a recipe that cannot be compiled; has `place`
    │   │   └── BadExpression  a `${…}` that cannot be parsed or is over a limit
    │   ├── BadInput           inputs that do not fit the recipe's schema
    │   ├── BadRequest         a body, header, cursor or query that cannot be read
    │   ├── BadMedia           a body of a kind that is not taken
    │   ├── BadRange           a range outside of what there is
    │   ├── BadUrl             an address that may not be called
    │   ├── BadSetting         a setting, flag or file that cannot be used
    │   ├── TooLarge           over a stated limit
    │   │   ├── HeadTooLarge   the headers of a request are over a limit
    │   │   └── UrlTooLong     the URL of a request is over a limit
    │   ├── TooSlow            a request that did not arrive in time
    │   ├── Unauthenticated    no key, or none that is good
    │   │   └── BadSignature   a provider's webhook, or a token, that is not signed as it must be
    │   ├── Forbidden          the key is good and does not allow this
    │   │   └── BadCsrf        a change by a browser that its own page did not make
    │   ├── NotFound           no such job, step, recipe or artifact
    │   ├── MethodNotAllowed   the path is known, the method is not
    │   ├── Conflict           the same idempotency key with another body
    │   │   └── CountChanged   a bulk action would touch another number of jobs than was shown
    │   └── WrongState         the job or step is not in a state that allows it
    │       └── OutputQuarantined  the output policy decides who may see it
    ├── Unavailable            nothing is wrong with the request; try again
    │   ├── DatabaseUnavailable
    │   ├── MembershipUnavailable
    │   ├── ServerUnavailable  the client cannot reach the server
    │   ├── ProviderUnavailable  a provider does not answer, or says that it cannot now
    │   ├── Limited            over the caller's limit; has `retry_after_s`
    │   │   ├── Busy           too much waits in the queues already
    │   │   └── TooManyStreams
    │   └── WaitTimeout        the job did not finish in the time the caller gave
    ├── Broken                 a fault of ours; please report it
    │   └── IllegalMove        a transition that the state tables do not have
    └── JobFailed              the job that was waited for has no result (pure/job_failed.py)
        └── JobCancelled

Each class has a stable `code`. What a handler says of its own work (failed, snooze, parked, cancel) is a value in
`core/outcome.py`, not an error of this tree; `Permanent` and `Transient`, which handlers may raise, stand apart for
that reason.
"""

from __future__ import annotations


class WindlassError(Exception):
    """The root. `remedy` is the sentence that tells the reader what to do next."""

    code = "windlass_error"

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}. {self.remedy}"


class Refused(WindlassError):
    """Fix the request."""

    code = "refused"


class BadRecipe(Refused):
    """The recipe cannot be compiled; `place` says where, as `steps.render.with.scene`."""

    code = "bad_recipe"

    def __init__(self, message: str, *, place: str = "", remedy: str | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message, remedy=remedy)
        self.place = place


class BadExpression(BadRecipe):
    """An expression that cannot be parsed, or is over a limit."""

    code = "bad_expression"


class BadInput(Refused):
    """The inputs do not fit the recipe's schema; `errors` says where (JSON pointers) and what, if there is more."""

    code = "bad_input"

    def __init__(self, message: str, *, errors: tuple[tuple[str, str], ...] = (), remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.errors = errors


class BadRequest(Refused):
    """A body, header, cursor or query that cannot be read."""

    code = "bad_request"


class BadMedia(Refused):
    """A body of a kind that is not taken."""

    code = "bad_media"


class BadRange(Refused):
    """A range outside of what there is; `size` is how much that is."""

    code = "bad_range"

    def __init__(self, message: str, *, size: int, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.size = size


class BadUrl(Refused):
    """An address that may not be called. It is never said what the name resolved to."""

    code = "bad_url"


class BadSetting(Refused):
    """A setting, flag or file that cannot be used."""

    code = "bad_setting"


class TooLarge(Refused):
    """Over a stated limit."""

    code = "too_large"


class HeadTooLarge(TooLarge):
    """The request line and the headers of a request are over a limit."""

    code = "head_too_large"


class UrlTooLong(TooLarge):
    """The URL of a request is over a limit."""

    code = "url_too_long"


class TooSlow(Refused):
    """A request whose head or body did not arrive in time."""

    code = "too_slow"


class Unauthenticated(Refused):
    """No key, or none that is good: unknown, revoked, expired. Which of these is not told."""

    code = "unauthenticated"


class BadSignature(Unauthenticated):
    """A webhook or a token that is not signed as it must be, or too old."""

    code = "bad_signature"


class Forbidden(Refused):
    """The key is good and does not allow this."""

    code = "forbidden"


class BadCsrf(Forbidden):
    """A browser's cookie was sent, without the sign that only the console's own page has."""

    code = "bad_csrf"


class NotFound(Refused):
    """No such thing."""

    code = "not_found"


class MethodNotAllowed(Refused):
    """The path is known, the method is not; `allowed` are those that are."""

    code = "method_not_allowed"

    def __init__(self, message: str, *, allowed: tuple[str, ...] = (), remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.allowed = allowed


class Conflict(Refused):
    """The same idempotency key was used for another body."""

    code = "conflict"


class CountChanged(Conflict):
    """A bulk action would touch another number of jobs than was shown before."""

    code = "count_changed"


class WrongState(Refused):
    """The job or step is not in a state that allows this."""

    code = "wrong_state"


class OutputQuarantined(WrongState):
    """The output policy quarantined what was asked for."""

    code = "output_quarantined"


class Unavailable(WindlassError):
    """Try again."""

    code = "unavailable"


class DatabaseUnavailable(Unavailable):
    """PostgreSQL cannot be reached, or dropped the connection."""

    code = "database_unavailable"


class MembershipUnavailable(Unavailable):
    """The Membership service does not answer, so nobody can say whether the key is good."""

    code = "membership_unavailable"


class ServerUnavailable(Unavailable):
    """The client cannot reach the server."""

    code = "server_unavailable"


class ProviderUnavailable(Unavailable):
    """A provider does not answer, or says that it cannot now."""

    code = "provider_unavailable"


class Limited(Unavailable):
    """Over the caller's limit; there is room again after `retry_after_s`."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after_s: float, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s


class Busy(Limited):
    """Too much waits in the queues already, whoever asks."""

    code = "busy"


class TooManyStreams(Limited):
    """The caller, or this process, has as many open streams as it may."""

    code = "too_many_streams"


class WaitTimeout(Unavailable):
    """The job did not finish in the time that the caller gave it; it goes on."""

    code = "wait_timeout"


class Broken(WindlassError):
    """A fault of ours."""

    code = "broken"


class IllegalMove(Broken):
    """A transition that the state tables do not have."""

    code = "illegal_move"


class Permanent(Exception):
    """Raise this in a handler when another attempt cannot help: the step fails at once."""


class Transient(Exception):
    """Raise this in a handler when another attempt may help; `after_s` asks for a wait before it."""

    def __init__(self, *args: object, after_s: float | None = None) -> None:
        super().__init__(*args)
        self.after_s = after_s
