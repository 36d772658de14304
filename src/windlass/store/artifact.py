"""Where outputs live that are too big for a row: a port of three methods, and a folder that keeps the promise.

An artifact is named by the SHA-256 of its bytes. So writing one twice is writing it once, a reference can never come
to mean something else, and a reader can tell whether it got what was written.

A reference stands in the column of a step's output, and only Windlass may make one: otherwise a caller who knows a
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
# Outputs of more bytes than this go to the store and travel by reference.
INLINE_MAX = 256 * 1024
# An object whose first key begins as the key of a reference does, or with an escape. Other texts are not decoded.
_MAY_BE_REFERENCE = re.compile(r'\s*\{\s*"[$\\]')
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Ref:
    """The name of an artifact: the hex SHA-256 of its bytes, and how many they are."""

    sha256: str
    size: int

    def as_json(self) -> dict[str, Any]:
        """What stands in a step's output in place of the value."""
        return {REFERENCE_KEY: {"sha256": self.sha256, "size": self.size}}


def ref_of(body: bytes) -> Ref:
    """The reference that these bytes have in every store."""
    return Ref(hashlib.sha256(body).hexdigest(), len(body))


def ref_in(value: Any) -> Ref | None:
    """The reference that a stored output is, or None when it is an ordinary value."""
    match value:
        # The name becomes a path: what is no digest must not be taken for one.
        case {"$artifact": {"sha256": str(sha256), "size": int(size)}} if len(value) == 1 and _SHA256.fullmatch(sha256):
            return Ref(sha256, size)
    return None


def is_reference(text: str) -> bool:
    """Whether a reader could take this JSON text for a reference. Stricter readers accept fewer texts, never more."""
    if _MAY_BE_REFERENCE.match(text) is None:
        return False
    try:
        return list(msgspec.json.decode(text, type=dict[str, msgspec.Raw])) == [REFERENCE_KEY]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # Not a JSON object. Storing the text finds out whether it is JSON at all.
        return False


def is_inline(text: str, max_bytes: int) -> bool:
    """Whether a row may hold this output as it is."""
    if len(text) > max_bytes // 4 and len(text.encode()) > max_bytes:
        return False
    return not is_reference(text)


class Artifacts(Protocol):
    """A store of bytes by content.

    It promises: once `put` has returned, `get` gives the same bytes to every process that uses the same store, also
    after a crash; a `put` that fails leaves nothing that `get` could return; putting the same bytes again is harmless,
    and renews the artifact's age.
    """

    async def put(self, body: bytes) -> Ref:
        """Keep these bytes; raises OSError when they cannot be kept now."""
        ...

    async def get(self, ref: Ref) -> bytes:
        """The bytes; raises NotFound when there are none, and OSError when the store cannot be reached."""
        ...

    async def part(self, ref: Ref, start: int, length: int) -> bytes:
        """These bytes of it, as many as there are from `start`; raises as `get` does. Only the size is checked."""
        ...


async def fitted(artifacts: Artifacts, text: str, max_bytes: int) -> str:
    """The JSON text that a row holds for this output: the text itself, or the reference to an artifact with its bytes.

    Every output passes through here once before it is stored. Call it outside of transactions; raises as `put` does.
    """
    if is_inline(text, max_bytes):
        return text
    ref = await artifacts.put(text.encode())
    return msgspec.json.encode(ref.as_json()).decode()


def check(ref: Ref, body: bytes) -> bytes:
    """The bytes themselves, after making sure that they are what the reference names."""
    if len(body) != ref.size or hashlib.sha256(body).hexdigest() != ref.sha256:
        raise Broken(f"artifact {ref.sha256} is damaged: {len(body)} bytes were read where {ref.size} were written")
    return body


def check_part(ref: Ref, start: int, length: int, body: bytes) -> bytes:
    """A part, after making sure that it is as long as it must be: its hash cannot be known without the rest."""
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
        """Read it back, and make sure of it."""
        return await asyncio.to_thread(self._read, ref)

    async def part(self, ref: Ref, start: int, length: int) -> bytes:
        """Read some of it."""
        return await asyncio.to_thread(self._read_part, ref, start, length)

    def _path(self, sha256: str) -> Path:
        # Two letters of the name make the folder: no folder grows to millions of files.
        return self.folder / sha256[:2] / sha256

    def _write(self, body: bytes) -> Ref:
        ref = ref_of(body)
        path = self._path(ref.sha256)
        if path.exists() and path.stat().st_size == ref.size:
            # The age of a file says when it was last written, as it does in a bucket, not when it was first written.
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
        # The name must outlive a power cut as well: the reference is about to become durable.
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
            remedy="All processes must be given the same artifact store",
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
