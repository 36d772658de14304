"""Artifact stores keep their promise: the same bytes for a reference, or a clear refusal."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from windlass.core.errors import BadSetting, Broken, NotFound
from windlass.store.artifact import Artifacts, FolderArtifacts, Ref, ref_in, ref_of
from windlass.store.artifact_s3 import Credentials, S3Artifacts, sign

KEYS = Credentials("AKIDEXAMPLE", "a secret", "a session")


class Bucket(BaseHTTPRequestHandler):
    """An S3 server as small as can be, which checks every signature by itself."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self._is_signed(body):
            self.server.objects[self.path] = body  # type: ignore[attr-defined]
            self._answer(200)

    def do_GET(self) -> None:
        if self._is_signed(b""):
            body = self.server.objects.get(self.path)  # type: ignore[attr-defined]
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
            if body is None:
                self._answer(404, b"<Code>NoSuchKey</Code>")
            elif wanted is not None and self.server.knows_ranges:  # type: ignore[attr-defined]
                self._answer(206, body[int(wanted[1]) : int(wanted[2]) + 1])
            else:
                self._answer(200, body)

    def _is_signed(self, body: bytes) -> bool:
        fields = dict(part.split("=", 1) for part in self.headers["authorization"].split(" ", 1)[1].split(", "))
        access, day, region, service, end = fields["Credential"].split("/")
        signed = "".join(f"{name}:{self.headers[name]}\n" for name in fields["SignedHeaders"].split(";"))
        digest = hashlib.sha256(body).hexdigest()
        request = f"{self.command}\n{self.path}\n\n{signed}\n{fields['SignedHeaders']}\n{digest}"
        text = "\n".join(
            [
                "AWS4-HMAC-SHA256",
                self.headers["x-amz-date"],
                f"{day}/{region}/{service}/{end}",
                hashlib.sha256(request.encode()).hexdigest(),
            ]
        )
        key = b"AWS4" + KEYS.secret_key.encode()
        for part in (day, region, service, end):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        good = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        is_signed = (
            hmac.compare_digest(good, fields["Signature"])
            and access == KEYS.access_key
            and digest == self.headers["x-amz-content-sha256"]
            and {"host", "x-amz-date", "x-amz-content-sha256"} <= set(fields["SignedHeaders"].split(";"))
        )
        if not is_signed:
            self._answer(403, b"<Code>SignatureDoesNotMatch</Code>")
        return is_signed

    def _answer(self, status: int, body: bytes = b"") -> None:
        status = self.server.forced or status  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def bucket_server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        server.objects, server.forced, server.knows_ranges = {}, None, True  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def s3(server: ThreadingHTTPServer, credentials: Credentials = KEYS) -> S3Artifacts:
    return S3Artifacts("my bucket", credentials=credentials, endpoint=f"http://127.0.0.1:{server.server_port}")


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Artifacts]:
    if request.param == "folder":
        yield FolderArtifacts(tmp_path / "artifacts")
    else:
        with bucket_server() as server:
            yield s3(server)


@pytest.mark.parametrize("body", [b"", b"x", bytes(range(256)) * 4096])
def test_what_was_put_can_be_got(store: Artifacts, body: bytes) -> None:
    async def scene() -> None:
        ref = await store.put(body)
        assert ref == ref_of(body) == await store.put(body)
        assert await store.get(ref) == body

    asyncio.run(scene())


def test_what_was_never_put_is_not_found(store: Artifacts) -> None:
    with pytest.raises(NotFound, match="same artifact store"):
        asyncio.run(store.get(ref_of(b"never")))


@pytest.mark.parametrize(
    ("start", "length", "part"),
    [(0, 4, b"0123"), (4, 3, b"456"), (7, 99, b"789"), (0, 10, b"0123456789"), (10, 5, b""), (3, 0, b"")],
)
def test_a_part_is_those_bytes_and_no_others(store: Artifacts, start: int, length: int, part: bytes) -> None:
    async def scene() -> None:
        ref = await store.put(b"0123456789")
        assert await store.part(ref, start, length) == part

    asyncio.run(scene())


def test_a_part_of_what_was_never_put_is_not_found(store: Artifacts) -> None:
    with pytest.raises(NotFound, match="same artifact store"):
        asyncio.run(store.part(ref_of(b"never"), 0, 2))


def test_a_part_of_what_was_cut_short_is_not_returned(tmp_path: Path) -> None:
    store = FolderArtifacts(tmp_path)
    ref = asyncio.run(store.put(b"0123456789"))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(b"0123")
    with pytest.raises(Broken, match="damaged"):
        asyncio.run(store.part(ref, 2, 5))


def test_a_bucket_that_knows_no_ranges_is_read_whole() -> None:
    with bucket_server() as server:
        server.knows_ranges = False  # type: ignore[attr-defined]
        store = s3(server)
        ref = asyncio.run(store.put(b"0123456789"))
        assert asyncio.run(store.part(ref, 2, 3)) == b"234"


def test_a_reference_is_told_from_a_value() -> None:
    ref = Ref("ab" * 32, 3)
    assert ref_in(ref.as_json()) == ref
    for value in (None, 1, "x", [], {}, {"$artifact": 1}, ref.as_json() | {"more": 1}):
        assert ref_in(value) is None


def test_a_damaged_file_is_not_returned(tmp_path: Path) -> None:
    store = FolderArtifacts(tmp_path)
    ref = asyncio.run(store.put(b"whole"))
    next(path for path in tmp_path.rglob("*") if path.is_file()).write_bytes(b"hole!")
    with pytest.raises(Broken, match="damaged"):
        asyncio.run(store.get(ref))


def test_a_put_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderArtifacts(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            asyncio.run(store.put(b"much"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadSetting, match="cannot be made"):
        FolderArtifacts(tmp_path / "file" / "folder")


def test_the_signature_is_that_of_the_published_example() -> None:
    """The worked example of the Amazon S3 reference, "GET Object"."""
    empty = hashlib.sha256(b"").hexdigest()
    headers = {
        "Host": "examplebucket.s3.amazonaws.com",
        "Range": "bytes=0-9",
        "x-amz-content-sha256": empty,
        "x-amz-date": "20130524T000000Z",
    }
    credentials = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    at = datetime(2013, 5, 24, tzinfo=UTC)
    authorization = sign("GET", "/test.txt", headers, empty, credentials=credentials, region="us-east-1", at=at)
    assert authorization.endswith("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")


def test_a_wrong_key_is_the_settings_fault_and_a_busy_store_is_not() -> None:
    async def scene() -> None:
        with bucket_server() as server:
            with pytest.raises(BadSetting, match="SignatureDoesNotMatch"):
                await s3(server, Credentials("AKIDEXAMPLE", "another")).put(b"x")
            server.forced = 503  # type: ignore[attr-defined]
            with pytest.raises(ConnectionError, match="503"):
                await s3(server).put(b"x")
        with pytest.raises(OSError, match="refused"):
            await s3(server).put(b"x")

    asyncio.run(scene())


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(BadSetting, match="not the address"):
        S3Artifacts("bucket", credentials=KEYS, endpoint="minio:9000")
    with pytest.raises(BadSetting, match="AWS_SECRET_ACCESS_KEY is not set"):
        Credentials.from_environment({"AWS_ACCESS_KEY_ID": "x"})
    assert Credentials.from_environment({"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}).secret_key == "y"
    assert "a secret" not in repr(KEYS)


async def test_writing_the_same_bytes_again_renews_the_age_of_the_file(tmp_path: Path) -> None:
    store = FolderArtifacts(tmp_path)
    ref = await store.put(b"the same bytes")
    path = tmp_path / ref.sha256[:2] / ref.sha256
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert await store.put(b"the same bytes") == ref
    assert path.stat().st_mtime > 1_000_000_000
