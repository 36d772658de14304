"""What an installation on one machine needs before anybody can ask it anything: its secret, and a first key.

Both are files of the home that only its owner may read. They are made once, also when several processes begin at the
same time: whoever comes second takes what the first one wrote.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from windlass.access.keys import Keys
from windlass.access.secret import Secret
from windlass.app.embedded.home import make_private
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.client.place import SERVER_FILE as SERVER_FILE
from windlass.core.caller import Scope
from windlass.core.errors import BadSetting, Unauthenticated

_log = logging.getLogger("windlass.process")

KEY_FILE = "key"
SECRET_FILE = "secret"
SECRET_BYTES = 32
# Whose jobs the first key sees: those that the command line of this home makes.
KEY_NAME = "windlass up"
_PRIVATE = 0o600


def secret_of(settings: Settings) -> Secret:
    """Return the installation's secret: the setting, else the file in the home folder.

    The file is made for the embedded database only. A database that is set may have other servers: a secret of this
    machine alone would shut out the keys that they make, and a container would lose it. There it must be set.
    """
    if settings.secret:
        return Secret.of(settings.secret)
    path = settings.home / SECRET_FILE
    if not path.exists():
        if settings.database_url is not None:
            raise BadSetting(
                "the installation's secret is not set, and all of its processes must have the same",
                remedy="Make one with `openssl rand -hex 32`, keep it, and set it as WINDLASS_SECRET everywhere",
            )
        _log.info("made the installation's secret: %s", path)
    return Secret.of([private(path, lambda: secrets.token_hex(SECRET_BYTES))])


async def first_key(windlass: Windlass, secret: Secret) -> Path | None:
    """The file that holds this home's key, which is made when there is none or when it is good no more.

    None with Membership: there the keys are not ours to make.
    """
    settings = windlass.settings
    if settings.membership_url is not None:
        return None
    path = settings.home / KEY_FILE
    keys = Keys(windlass.db, secret, entropy=secrets.token_bytes)
    with contextlib.suppress(FileNotFoundError, Unauthenticated):
        await keys.verify(_read(path))
        return path
    made = await keys.create(settings.caller, name=KEY_NAME, scopes=frozenset({Scope.ADMIN}), by=settings.caller)
    _replace(path, made.text)
    return path


async def has_keys(windlass: Windlass, secret: Secret) -> bool:
    """Whether anybody has a key that is good."""
    keys = Keys(windlass.db, secret, entropy=secrets.token_bytes)
    return any(key.is_live for key in await keys.listing())


@contextmanager
def announced(home: Path, url: str) -> Iterator[None]:
    """Leave the server's address where the command line and clients of the same home look for it."""
    path = home / SERVER_FILE
    _replace(path, url)
    try:
        yield
    finally:
        # Another server of the same home may have written its own since.
        with contextlib.suppress(OSError):
            if _read(path) == url:
                path.unlink()


def private(path: Path, make: Callable[[], str]) -> str:
    """The text of a private file; made if there is none, by one process only."""
    with contextlib.suppress(FileNotFoundError):
        return _read(path)
    written = _written(path, make())
    try:
        os.link(written, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(written)
    return _read(path)


def _replace(path: Path, text: str) -> None:
    os.replace(_written(path, text), path)


def _written(path: Path, text: str) -> str:
    """A new private file beside `path`, whole on the disk before anybody can find it by its name."""
    try:
        make_private(path.parent)
        # mkstemp gives a file that nobody else may read from the start.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(path, error) from error
    return name


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            # Somebody copied it carelessly; what it lets in is worth more than the copy's mode.
            path.chmod(_PRIVATE)
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> BadSetting:
    return BadSetting(
        f"{path} cannot be used: {error.strerror or error}",
        remedy="Set WINDLASS_HOME to a folder that this user may write to",
    )
