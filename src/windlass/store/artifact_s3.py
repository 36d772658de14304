"""Artifacts in a bucket of any S3-compatible store, signed by hand (AWS Signature Version 4, single-chunk).

Two requests suffice, so there is no SDK: PUT and GET of one object, path-style, which every compatible server accepts.
Requests run in threads on the standard library's client.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from windlass.core.errors import BadSetting, NotFound
from windlass.store.artifact import Ref, check, check_part, ref_of

_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_EXCERPT_MAX = 300


def _utc_now() -> datetime:
    # A signature contains the time, and the server refuses a deviation of 15 minutes. No decision here depends on it.
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The keys that sign the requests. Temporary keys come with a session token."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Credentials:
        """Read the variables that every S3 tool reads."""
        try:
            return cls(environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"], environ.get("AWS_SESSION_TOKEN"))
        except KeyError as error:
            raise BadSetting(
                f"{error.args[0]} is not set, so the artifact bucket cannot be used",
                remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ) from None


def sign(
    method: str,
    path: str,
    headers: Mapping[str, str],
    payload_sha256: str,
    *,
    credentials: Credentials,
    region: str,
    at: datetime,
) -> str:
    """Return the Authorization header of a request without a query string. It signs all `headers`, so send them all."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    lower = sorted((name.lower(), value.strip()) for name, value in headers.items())
    names = ";".join(name for name, _ in lower)
    canonical = "\n".join([method, path, "", *(f"{name}:{value}" for name, value in lower), "", names, payload_sha256])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"


class S3Artifacts:
    """Artifacts as objects `<prefix><sha256>` of one bucket."""

    def __init__(
        self,
        bucket: str,
        *,
        credentials: Credentials,
        endpoint: str = "https://s3.amazonaws.com",
        region: str = "us-east-1",
        prefix: str = "windlass/",
        timeout_s: float = 30.0,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        address = urlsplit(endpoint)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise BadSetting(
                f"{endpoint!r} is not the address of an S3-compatible store", remedy="It looks like https://host:port"
            )
        self._address = address
        self._bucket = bucket
        self._credentials = credentials
        self._region = region
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._now = now

    async def put(self, body: bytes) -> Ref:
        """Write the object. An S3 store shows an object only when it is complete."""
        ref = ref_of(body)
        await asyncio.to_thread(self._request, "PUT", ref, body)
        return ref

    async def get(self, ref: Ref) -> bytes:
        """Read the object and verify its hash."""
        return check(ref, await asyncio.to_thread(self._request, "GET", ref, b""))

    async def part(self, ref: Ref, start: int, length: int) -> bytes:
        """Read a range of the object. A store without range support sends everything, and the rest is discarded."""
        if length <= 0 or start >= ref.size:
            return b""
        last = min(start + length, ref.size) - 1
        got = await asyncio.to_thread(self._request, "GET", ref, b"", f"bytes={start}-{last}")
        if len(got) == ref.size and len(got) > last - start + 1:
            got = got[start : last + 1]
        return check_part(ref, start, length, got)

    def _request(self, method: str, ref: Ref, body: bytes, range_: str | None = None) -> bytes:
        path = self._address.path.rstrip("/") + quote(f"/{self._bucket}/{self._prefix}{ref.sha256}", safe="/-_.~")
        payload_sha256 = ref.sha256 if method == "PUT" else _EMPTY_SHA256
        at = self._now()
        headers = {
            "host": self._address.netloc,
            "x-amz-content-sha256": payload_sha256,
            "x-amz-date": at.strftime("%Y%m%dT%H%M%SZ"),
        }
        if range_ is not None:
            headers["range"] = range_
        if self._credentials.session_token:
            headers["x-amz-security-token"] = self._credentials.session_token
        authorization = sign(
            method, path, headers, payload_sha256, credentials=self._credentials, region=self._region, at=at
        )
        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._address.hostname or "", self._address.port, timeout=self._timeout_s)
        try:
            connection.request(method, path, body or None, {**headers, "authorization": authorization})
            response = connection.getresponse()
            answer = response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"the artifact store did not speak HTTP: {error!r}") from error
        finally:
            connection.close()
        if response.status == 200 or (range_ is not None and response.status == 206):
            return answer
        raise self._refusal(method, response.status, answer, ref)

    def _refusal(self, method: str, status: int, answer: bytes, ref: Ref) -> Exception:
        if method == "GET" and status == 404:
            return NotFound(
                f"artifact {ref.sha256} is not in bucket {self._bucket!r}",
                remedy="Give all processes the same artifact store",
            )
        said = answer[:_EXCERPT_MAX].decode(errors="replace")
        if status in (408, 429) or status >= 500:
            return ConnectionError(f"the artifact store answered {status}: {said}")
        return BadSetting(
            f"the artifact store refused {method} with {status}: {said}",
            remedy="Check the bucket's name, the region, the keys and their rights",
        )
