"""The store for outputs that are too large for a row: a port of three methods, and an adapter for a folder.

An artifact is named by the SHA-256 of its bytes. So writing an artifact twice is harmless, a reference never changes
its meaning, and a reader can verify the bytes.

The column of a step's output may hold a reference, and only Windlass may create it. Otherwise a caller that knows a
hash could read another caller's bytes. Therefore `fitted` prepares every output before it is stored. An output that
looks like a reference goes to the store as ordinary bytes, and the row refers to those bytes.

    output                                row                                      a reader gets
    {"n": 1}                              {"n": 1}                                 {"n": 1}
    300 KB of JSON                        {"$artifact": …} made by us              the 300 KB
    {"$artifact": …} made by a user       {"$artifact": …} made by us, of its text {"$artifact": …}, as plain data
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from windlass.core.errors import BadSetting, Broken, NotFound

REFERENCE_KEY = "$artifact"
# Larger outputs go to the store, and the row holds a reference.
INLINE_MAX = 256 * 1024
# An object whose first key starts like the key of a reference, or with an escape. Other texts are not decoded.
_MAY_BE_REFERENCE = re.compile(r'\s*\{\s*"[$\\]')
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Ref:
    """The name of an artifact: the hex SHA-256 and the number of its bytes."""

    sha256: str
    size: int

    def as_json(self) -> dict[str, Any]:
        """Return the value that replaces the output in the step's row."""
        return {REFERENCE_KEY: {"sha256": self.sha256, "size": self.size}}


def ref_of(body: bytes) -> Ref:
    """Return the reference of these bytes, which is the same in every store."""
    return Ref(hashlib.sha256(body).hexdigest(), len(body))


def ref_in(value: Any) -> Ref | None:
    """Return the reference that a stored output holds, or None for an ordinary value."""
    match value:
        # The name becomes a path, so only a digest is accepted.
        case {"$artifact": {"sha256": str(sha256), "size": int(size)}} if len(value) == 1 and _SHA256.fullmatch(sha256):
            return Ref(sha256, size)
    return None


def is_reference(text: str) -> bool:
    """Return whether any reader could take this JSON text for a reference. Stricter readers accept fewer texts."""
    if _MAY_BE_REFERENCE.match(text) is None:
        return False
    try:
        return list(msgspec.json.decode(text, type=dict[str, msgspec.Raw])) == [REFERENCE_KEY]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # Not a JSON object. Storing the text will show whether it is JSON at all.
        return False


def is_inline(text: str, max_bytes: int) -> bool:
    """Return whether a row may hold this output unchanged."""
    if len(text) > max_bytes // 4 and len(text.encode()) > max_bytes:
        return False
    return not is_reference(text)


class Artifacts(Protocol):
    """A store of bytes by content.

    It promises: after `put` has returned, `get` returns the same bytes in every process that uses the same store, also
    after a crash. A failed `put` leaves nothing that `get` could return. Putting the same bytes again is harmless, and
    renews the artifact's age.
    """

    async def put(self, body: bytes) -> Ref:
        """Store these bytes; raises OSError if they cannot be stored now."""
        ...

    async def get(self, ref: Ref) -> bytes:
        """Return the bytes; raises NotFound if there are none, and OSError if the store cannot be reached."""
        ...

    async def part(self, ref: Ref, start: int, length: int) -> bytes:
        """Return up to `length` bytes from `start`; raises as `get` does. It checks only the size."""
        ...


async def fitted(artifacts: Artifacts, text: str, max_bytes: int) -> str:
    """Return the JSON text for the row: the output itself, or the reference to an artifact with its bytes.

    Every output passes through here once before it is stored. Call it outside of transactions; raises as `put` does.
    """
    if is_inline(text, max_bytes):
        return text
    ref = await artifacts.put(text.encode())
    return msgspec.json.encode(ref.as_json()).decode()


def check(ref: Ref, body: bytes) -> bytes:
    """Return the bytes after verifying them against the reference."""
    if len(body) != ref.size or hashlib.sha256(body).hexdigest() != ref.sha256:
        raise Broken(f"artifact {ref.sha256} is damaged: {len(body)} bytes were read where {ref.size} were written")
    return body


def check_part(ref: Ref, start: int, length: int, body: bytes) -> bytes:
    """Return a part after verifying its length. Its hash cannot be verified without the rest."""
    if len(body) != max(0, min(length, ref.size - start)):
        raise Broken(f"artifact {ref.sha256} is damaged: it ends before its {ref.size} bytes")
    return body


class FolderArtifacts:
    """Artifacts as files of one folder, which all workers must share (one machine, or a network folder)."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadSetting(
                f"the artifact folder {self.folder} cannot be made: {error.strerror or error}",
                remedy="Give a folder that this user may write to",
            ) from error

    async def put(self, body: bytes) -> Ref:
        """Write a file that appears whole or not at all."""
        return await asyncio.to_thread(self._write, body)

    async def get(self, ref: Ref) -> bytes:
        """Read the file and verify its hash."""
        return await asyncio.to_thread(self._read, ref)

    async def part(self, ref: Ref, start: int, length: int) -> bytes:
        """Read a range of the file."""
        return await asyncio.to_thread(self._read_part, ref, start, length)

    def _path(self, sha256: str) -> Path:
        # The first two letters of the name are the folder, so that no folder grows to millions of files.
        return self.folder / sha256[:2] / sha256

    def _write(self, body: bytes) -> Ref:
        ref = ref_of(body)
        path = self._path(ref.sha256)
        if path.exists() and path.stat().st_size == ref.size:
            # As in a bucket, a file's age counts from its last write, not from its first.
            os.utime(path)
            return ref
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        # The name must survive a power failure too, because the reference is about to become durable.
        for folder in (path.parent, self.folder):
            _sync_folder(folder)
        return ref

    def _read(self, ref: Ref) -> bytes:
        try:
            body = self._path(ref.sha256).read_bytes()
        except FileNotFoundError:
            raise self._missing(ref) from None
        return check(ref, body)

    def _read_part(self, ref: Ref, start: int, length: int) -> bytes:
        try:
            with self._path(ref.sha256).open("rb") as file:
                file.seek(start)
                return check_part(ref, start, length, file.read(length))
        except FileNotFoundError:
            raise self._missing(ref) from None

    def _missing(self, ref: Ref) -> NotFound:
        return NotFound(
            f"artifact {ref.sha256} is not in {self.folder}",
            remedy="Give all processes the same artifact store",
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
