"""Callback tokens under the installation's secret: workers sign them, the API reads them."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from windlass.access.secret import Secret
from windlass.pure.token import PURPOSE, Token, make_token, parse_token


class Callbacks:
    """Signs and reads callback tokens. `clock` gives the seconds since 1970."""

    def __init__(self, secret: Secret, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._clock = clock

    def sign(self, job_id: UUID, no: int, attempt: int, ttl_s: float) -> str:
        """Return a token for one attempt of one step, valid for `ttl_s` seconds."""
        token = Token(job_id, no, attempt, int(self._clock() + ttl_s) + 1)
        return make_token(token, lambda body: self._secret.digest(PURPOSE, body))

    def read(self, text: str) -> Token:
        """Return the step and attempt that a token stands for; raises BadSignature."""
        return parse_token(text, lambda body: self._secret.digests(PURPOSE, body), now_s=self._clock())
