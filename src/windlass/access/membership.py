"""The remote verifier: a Membership service tells whether a key is good, and who holds it.

    POST {url}/auth, the key in `X-API-Key` and in the body
      200, 201   good; the JSON object of the answer, if there is one, are the caller's claims
      401, 409   bad
      all else   not known: MembershipUnavailable, which is answered with 503. An outage refuses no caller.

A good answer is kept for 60 s and a bad answer for 10 s, in memory only, under the whole keyed digest of the key. All
simultaneous requests with one key share one question to the service. After three outages in a row the breaker opens:
requests fail at once, and one question every 30 s tests whether the service is back. Only 5xx answers and missing
answers count as outages: a flood of bad keys shuts no caller out.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, Self

import httpx
import msgspec

from windlass.access.callers import Callers, named_id
from windlass.access.secret import Secret
from windlass.core.breaker import Breaker
from windlass.core.caller import CallerContext, context_of, stranger
from windlass.core.errors import MembershipUnavailable

GOOD_S = 60.0
BAD_S = 10.0
TIMEOUT_S = 2.0
KEPT_MAX = 10_000
ANSWER_MAX_BYTES = 64 * 1024
# Text that fits a header and has a key's length. Other text is no key, and the service is not asked.
_FORM = re.compile(r"[!-~]{1,512}")
_REMEDY = "It is asked again at the next request; try again in a moment"


class Hears(Protocol):
    """Receives the results of questions for the metrics; `telemetry/meters.py` implements it."""

    def membership(self, result: str) -> None:
        """Count a question: answered (good, bad, odd), unanswered (outage), or not asked (open)."""
        ...

    def breaker(self, name: str, is_open: bool) -> None:
        """Record whether the breaker is open."""
        ...


class _Outage(Exception):
    """The service did not answer, or answered with a 5xx status."""


class Membership:
    """A Verifier that asks a Membership service."""

    def __init__(
        self,
        url: str,
        secret: Secret,
        callers: Callers,
        *,
        client: httpx.AsyncClient,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: float = TIMEOUT_S,
        meters: Hears | None = None,
    ) -> None:
        self._url = url.rstrip("/") + "/auth"
        self._secret = secret
        self._callers = callers
        self._client = client
        self._clock = clock
        self._timeout_s = timeout_s
        self._meters = meters
        # Apart, so that a flood of bad keys cannot push out good keys. A good key stays after its time, so that its
        # turning bad can end the caller's streams.
        self._good: dict[bytes, tuple[CallerContext, float]] = {}
        self._bad: dict[bytes, float] = {}
        self._asking: dict[bytes, asyncio.Task[CallerContext | None]] = {}
        self._forget: list[Callable[[str], None]] = []
        self.breaker = Breaker()

    @classmethod
    def open(cls, url: str, secret: Secret, callers: Callers, meters: Hears | None = None) -> Self:
        """Open with a separate HTTP client, which follows no redirect and takes no proxy from the environment."""
        limits = httpx.Limits(max_connections=32, max_keepalive_connections=8)
        client = httpx.AsyncClient(timeout=TIMEOUT_S, limits=limits, trust_env=False, follow_redirects=False)
        return cls(url, secret, callers, client=client, meters=meters)

    async def close(self) -> None:
        """Cancel the questions under way and close the client."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._client.aclose()

    def close_on(self, forget: Callable[[str], None]) -> None:
        """Call `forget` with a caller's id when a good key of the caller turns bad."""
        self._forget.append(forget)

    async def verify(self, credential: str) -> CallerContext:
        """Return the holder of the key. For an unnamed holder, the database gives the id."""
        if not _FORM.fullmatch(credential):
            raise stranger()
        digest = self._secret.digest("key", credential.encode())
        now_s = self._clock()
        known = self._good.get(digest)
        if known is not None and now_s < known[1]:
            return known[0]
        if now_s < self._bad.get(digest, 0.0):
            raise stranger()
        caller = await self._one_flight(digest, credential)
        if caller is None:
            raise stranger()
        return caller

    async def _one_flight(self, digest: bytes, credential: str) -> CallerContext | None:
        task = self._asking.get(digest)
        if task is None:
            task = asyncio.create_task(self._learn(digest, credential), name="windlass-membership")
            self._asking[digest] = task
            task.add_done_callback(lambda done: self._landed(digest, done))
        # A cancelled request must not take the answer from the other requests that wait for it.
        return await asyncio.shield(task)

    def _landed(self, digest: bytes, task: asyncio.Task[CallerContext | None]) -> None:
        del self._asking[digest]
        if not task.cancelled():
            # Every waiting request may be gone; reading the exception keeps asyncio from reporting it.
            task.exception()

    async def _learn(self, digest: bytes, credential: str) -> CallerContext | None:
        claims = await self._ask(credential)
        before = self._good.pop(digest, None)
        if claims is None:
            _keep(self._bad, digest, self._clock() + BAD_S)
            if before is not None:
                for forget in self._forget:
                    forget(before[0].caller_id)
            return None
        aliases = self._secret.digests("alias", credential.encode())
        caller_id = await self._callers.id_of(aliases, claims)
        found = context_of({**claims, "caller_id": caller_id}, caller_id)
        caller = replace(found, is_named=named_id(claims) is not None)
        self._bad.pop(digest, None)
        _keep(self._good, digest, (caller, self._clock() + GOOD_S))
        return caller

    async def _ask(self, credential: str) -> dict[str, Any] | None:
        """Return the claims, or None for a bad key; only an outage counts against the service."""
        may, self.breaker = self.breaker.may_pass(self._clock())
        if not may:
            self._tell("open")
            raise MembershipUnavailable("the Membership service does not answer", remedy=_REMEDY)
        try:
            status, body = await self._post(credential)
        except _Outage as outage:
            self.breaker = self.breaker.failed(self._clock())
            self._tell("outage")
            # Without the cause: an exception of the client can hold the request, and with it the key.
            raise MembershipUnavailable(str(outage), remedy=_REMEDY) from None
        if status in (401, 409):
            self.breaker = self.breaker.succeeded()
            self._tell("bad")
            return None
        if status not in (200, 201) or body is None:
            self._tell("odd")
            what = f"with {status}" if body is not None else "with a body that is too long"
            raise MembershipUnavailable(f"the Membership service answered {what}", remedy=_REMEDY)
        self.breaker = self.breaker.succeeded()
        self._tell("good")
        return _claims(body)

    async def _post(self, credential: str) -> tuple[int, bytes | None]:
        """Return the status and the body of the answer; the body is None when it is too long."""
        content = msgspec.json.encode({"api_key": credential})
        headers = {"X-API-Key": credential, "Content-Type": "application/json"}
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream("POST", self._url, content=content, headers=headers) as answer,
            ):
                if answer.status_code >= 500:
                    raise _Outage(f"the Membership service answered with {answer.status_code}")
                body = b""
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > ANSWER_MAX_BYTES:
                        return answer.status_code, None
                return answer.status_code, body
        except TimeoutError:
            raise _Outage(f"the Membership service did not answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise _Outage(f"the Membership service cannot be reached ({type(error).__name__})") from None

    def _tell(self, result: str) -> None:
        if self._meters is not None:
            self._meters.membership(result)
            self._meters.breaker("membership", self.breaker.is_open)


def _claims(body: bytes) -> dict[str, Any]:
    """Return the claims in the answer's body; an unreadable body has none."""
    try:
        claims = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _keep(kept: dict[bytes, Any], digest: bytes, what: Any) -> None:
    kept.pop(digest, None)
    while len(kept) >= KEPT_MAX:
        del kept[next(iter(kept))]
    kept[digest] = what
