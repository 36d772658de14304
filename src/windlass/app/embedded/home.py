"""The home folder (`.windlass`): only its user may enter it, and only its user may read its files.

It holds the database, its log, the artifacts, the installation's secret and a key. A folder that Windlass creates is
0700. An existing folder is tightened at start. If it also holds other files, it is shared with another use, and only
the files of Windlass are tightened. Root's server runs as another user, so root's folder can be passed through (0711),
but not listed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

# The names in a home folder; any other file belongs to another use.
_FILES = frozenset({"pg.log", "pg.lock", "pg.users", "up.lock", "key", "secret"})
_FOLDERS = frozenset({"artifacts"})
# Other users may read the server's address; the database protects its own folder.
_OTHERS = frozenset({"pg", "pg.new", "server"})


def make_private(home: Path) -> None:
    """Make the folder, or close an existing folder to other users; raises OSError if it cannot be made."""
    closed = 0o066 if os.geteuid() == 0 else 0o077
    try:
        home.mkdir(parents=True, mode=0o777 & ~closed)
    except FileExistsError:
        names = set(os.listdir(home))
        if all(_is_ours(name) for name in names):
            _close(home, closed)
        for name in sorted(names & (_FILES | _FOLDERS)):
            _close(home / name, 0o077)


def _is_ours(name: str) -> bool:
    # A name with a dot is a private file that is being written; see `app/first_key.py`.
    return name in _FILES | _FOLDERS | _OTHERS or name.startswith((".key-", ".secret-", ".server-"))


def _close(path: Path, bits: int) -> None:
    # Another process may be removing the file just now. A file of another user is for that user to close.
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & bits and not path.is_symlink():
            path.chmod(mode & ~bits)
