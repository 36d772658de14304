"""The console's files, in memory, by the exact names that were found in the folder.

No path of a request reaches the file system, so no path can lead out of the folder. A build has some dozens of files
and about a megabyte.

The files are read again after the build has changed. A request for a page checks this at most once a second. Until a
new build is complete, the former build is served. Pages that were opened earlier load more of their files later, so the
files of the previous build are kept.

Nothing is compressed here: a build contains each text uncompressed, as brotli and as gzip.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

from windlass.api.console_files import INDEX, find_console
from windlass.core.errors import BadSetting

ASSETS = "assets"
LOOK_EVERY_S = 1.0
FILES_MAX = 2_000
BYTES_MAX = 64 * 1024 * 1024
_SUFFIXES = {"br": ".br", "gzip": ".gz"}
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_BINARY = "application/octet-stream"
POLICY = (
    "default-src 'self'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; worker-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'; object-src 'none'"
)
_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_log = logging.getLogger("windlass.api")


@dataclass(frozen=True, slots=True)
class File:
    """A file in each available coding; `identity` is uncompressed. The tag is a hash of the content."""

    media_type: str
    tag: str
    forms: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Build:
    """A console: its files by their names, and the content security policy of its pages."""

    kind: Literal["full", "lite"]
    files: Mapping[str, File]
    policy: str

    @property
    def hash(self) -> str:
        """Return a hash that differs for every build, as the first page names the other files by their contents."""
        return self.files[INDEX].tag[:12]


class Console:
    """The build that is served now."""

    def __init__(
        self, find: Callable[[], Path | None] = find_console, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = find
        self._clock = clock
        self._looked_s = clock()
        self._stamp: object = None
        # A missing folder that the settings name is reported before anything is served.
        self._newest = self._build = self._read(find()) or lite()

    def build(self) -> Build:
        """Return the build; checks for a new build if the last check was a while ago."""
        now_s = self._clock()
        if now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            # A folder that is being rewritten may lack its first page just now, so the build that was read before
            # stays.
            with contextlib.suppress(BadSetting):
                self._take(self._read(self._find()))
        return self._build

    def _take(self, found: Build | None) -> None:
        if found is not None:
            former = {name: file for name, file in self._newest.files.items() if name.startswith(f"{ASSETS}/")}
            self._newest, self._build = found, replace(found, files={**former, **found.files})

    def _read(self, folder: Path | None) -> Build | None:
        """Return the build in the folder if it is new and complete; else None."""
        if folder is None:
            return None
        try:
            stamp = _stamp(folder)
            if stamp == self._stamp:
                return None
            found = full(folder)
            if stamp != _stamp(folder) or INDEX not in found.files:
                return None
        except OSError as error:
            _log.warning("the console in %s cannot be read: %s", folder, error)
            return None
        self._stamp = stamp
        return found


def full(folder: Path) -> Build:
    """Read a build: the files of the folder itself and of its assets."""
    found: dict[str, File] = {}
    left = BYTES_MAX
    for name, path in _listed(folder):
        if path.suffix in _SUFFIXES.values() and path.with_suffix("").is_file():
            continue
        body = path.read_bytes()
        forms = {"identity": body, **compressed(path)}
        left -= sum(map(len, forms.values()))
        if left < 0 or len(found) >= FILES_MAX:
            raise BadSetting(
                f"the console in {folder} has over {FILES_MAX:,} files or {BYTES_MAX:,} bytes",
                remedy="Name a folder that holds nothing but a built console",
            )
        found[name] = File(media_type(path), sha256(body).hexdigest()[:32], forms)
    return Build("full", found, POLICY.format(scripts=""))


def lite() -> Build:
    """Return the lite page, which is always available. The policy allows its one inline script by its hash."""
    body = files("windlass.api").joinpath("lite.html").read_bytes()
    hashes = (base64.b64encode(sha256(script).digest()).decode() for script in _SCRIPT.findall(body))
    page = File(
        _TYPES[".html"], sha256(body).hexdigest()[:32], {"identity": body, "gzip": gzip.compress(body, mtime=0)}
    )
    return Build("lite", {INDEX: page}, POLICY.format(scripts="".join(f" 'sha256-{one}'" for one in hashes)))


def chosen(accepted: str, forms: Mapping[str, bytes]) -> str:
    """Return the best coding that the client accepts: brotli before gzip before identity."""
    weights = dict(map(_weight, accepted.lower().split(",")))
    rest = weights.get("*", 0.0)
    for coding in _SUFFIXES:
        if coding in forms and weights.get(coding, rest) > 0:
            return coding
    return "identity"


def _weight(text: str) -> tuple[str, float]:
    coding, _, parameter = text.partition(";")
    name, _, value = parameter.partition("=")
    try:
        return coding.strip(), float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return coding.strip(), 0.0


def _listed(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file with its name in a URL. A file may be a link: some installers create only links."""
    for place, prefix in ((folder, ""), (folder / ASSETS, f"{ASSETS}/")):
        if place.is_dir():
            for path in sorted(place.iterdir()):
                if path.is_file():
                    yield prefix + path.name, path


def media_type(path: Path) -> str:
    """Return the media type of a file, by its name."""
    return _TYPES.get(path.suffix, _BINARY)


def compressed(path: Path) -> dict[str, bytes]:
    """Return the compressed forms that a build has left beside a file."""
    beside = {coding: path.with_name(path.name + suffix) for coding, suffix in _SUFFIXES.items()}
    return {coding: one.read_bytes() for coding, one in beside.items() if one.is_file()}


def _stamp(folder: Path) -> object:
    """Return a stamp that changes with the build: a new build has another first page, or other files beside it."""
    names = (folder / INDEX, folder, folder / ASSETS)
    return [(one.stat().st_mtime_ns, one.stat().st_size) for one in names if one.exists()]
