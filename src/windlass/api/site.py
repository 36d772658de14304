"""The documentation site in its folder: the files by their exact names, and the policy of its pages.

A request's path is only looked up in the list of the folder's files, so no path can lead out of the folder. Files are
read on demand: the site has several megabytes that most processes never serve.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from windlass.api.console_files import checkout_folder
from windlass.api.static import FILES_MAX, POLICY, File, compressed, media_type

PACKAGE = "windlass_docs"
STAMP = "site.json"
INDEX = "index.html"
LOOK_EVERY_S = 1.0
_HASH = re.compile(r"[A-Za-z0-9+/]{43}=")


@dataclass(frozen=True, slots=True)
class SiteBuild:
    """A built site: its files by their names, and the content security policy of its pages."""

    paths: Mapping[str, Path]
    policy: str


def find_site() -> Path | None:
    """Return the folder of the built site, in a checkout or in the installed package; None if neither was built."""
    return next((folder for folder in _places() if (folder / STAMP).is_file()), None)


class DocsSite:
    """The site that is served now. Notices a new build within a second."""

    def __init__(
        self, find: Callable[[], Path | None] = find_site, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = find
        self._clock = clock
        self._next_look_s = 0.0
        self._stamp: object = None
        self._build: SiteBuild | None = None

    def build(self) -> SiteBuild | None:
        """Return the site, or None if none was built. Touches the disk: call it in a thread."""
        now_s = self._clock()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + LOOK_EVERY_S
            # A folder that is being replaced may be incomplete, so the build that was read before stays.
            with contextlib.suppress(OSError, ValueError):
                self._look()
        return self._build

    def file(self, name: str) -> tuple[SiteBuild | None, File | None]:
        """Return the site and its file of this name. Touches the disk: call it in a thread."""
        build = self.build()
        path = None if build is None else build.paths.get(name)
        try:
            return build, None if path is None else read_file(path)
        except FileNotFoundError:
            # A new build has just replaced this build.
            return build, None

    def _look(self) -> None:
        folder = self._find()
        stamp = None if folder is None else (folder, (folder / STAMP).stat().st_mtime_ns)
        if stamp != self._stamp:
            self._build = None if folder is None else read_build(folder)
            self._stamp = stamp


def read_build(folder: Path) -> SiteBuild:
    """Read the site in the folder. The policy allows inline scripts by the hashes that the build recorded."""
    noted = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    hashes = [one for one in noted.get("scripts", ()) if isinstance(one, str) and _HASH.fullmatch(one)]
    files = dict(islice(_listed(folder), FILES_MAX))
    return SiteBuild(files, POLICY.format(scripts="".join(f" 'sha256-{one}'" for one in hashes)))


def read_file(path: Path) -> File:
    """Read the file in all its codings."""
    body = path.read_bytes()
    return File(media_type(path), sha256(body).hexdigest()[:32], {"identity": body, **compressed(path)})


def _listed(folder: Path) -> Iterator[tuple[str, Path]]:
    for place, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            path = Path(place, name)
            is_compressed = path.suffix == ".gz" and path.with_suffix("").is_file()
            if not is_compressed and path.suffix != ".py" and path != folder / STAMP:
                yield path.relative_to(folder).as_posix(), path


def _places() -> Iterator[Path]:
    checkout = checkout_folder()
    if checkout is not None:
        yield checkout / "build" / "site"
    spec = find_spec(PACKAGE)
    if spec is not None:
        yield from map(Path, spec.submodule_search_locations or ())
