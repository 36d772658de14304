"""Creates the secret and the first key that an installation on one machine needs before it can serve a request.

Both are files of the home folder that only its owner may read. They are created once, also when several processes start
at the same time: the second process takes the file of the first.
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
from windlass.engine import installation

_log = logging.getLogger("windlass.process")

KEY_FILE = "key"
SECRET_FILE = "secret"
SECRET_BYTES = 32
# The first key belongs to the caller of this home's command line, so it sees the jobs submitted there.
KEY_NAME = "windlass up"
_PRIVATE = 0o600


def secret_of(settings: Settings) -> Secret:
    """Return the installation's secret: the setting, else the file in the home folder.

    The file is created only for the embedded database. A database that is set may have other servers. A secret of this
    machine alone would reject the keys that they create, and a container would lose it. There it must be set.
    """
    if settings.secret:
        return Secret.of(settings.secret)
    path = settings.home / SECRET_FILE
    if not path.exists():
        if settings.database_url is not None:
            raise BadSetting(
                "the installation's secret is not set, and all its processes need the same secret",
                remedy="Make one with `openssl rand -hex 32`, keep it, and set it as WINDLASS_SECRET everywhere",
            )
        _log.info("created the installation's secret: %s", path)
    return Secret.of([private(path, lambda: secrets.token_hex(SECRET_BYTES))])


async def served_secret(windlass: Windlass) -> Secret:
    """The secret, if servers use the same one: what is made with another would be of no use to them."""
    secret = secret_of(windlass.settings)
    is_served = (await installation.read(windlass.db)).is_served
    if is_served and not await installation.is_secret(windlass.db, secret.digests("check", b"")):
        raise BadSetting(
            "the secret here is not the secret of this installation's servers",
            remedy="Set WINDLASS_SECRET as for its servers, or ask one of them: --server URL",
        )
    return secret


async def first_key(windlass: Windlass, secret: Secret) -> Path | None:
    """Return the file that holds this home's key. Create the key when there is none or when it is no longer valid.

    Return None with Membership, whose keys Windlass cannot create.
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
    """Tell whether any live key exists."""
    keys = Keys(windlass.db, secret, entropy=secrets.token_bytes)
    return any(key.is_live for key in await keys.listing())


@contextmanager
def announced(home: Path, url: str) -> Iterator[None]:
    """Write the server's address where the command line and clients of the same home look for it."""
    path = home / SERVER_FILE
    _replace(path, url)
    try:
        yield
    finally:
        # Another server of the same home may have written its own address since.
        with contextlib.suppress(OSError):
            if _read(path) == url:
                path.unlink()


def private(path: Path, make: Callable[[], str]) -> str:
    """Return the text of a private file. Without a file, exactly one process creates it."""
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
    """Write a new private file beside `path`, complete on the disk before its name can be found."""
    try:
        make_private(path.parent)
        # mkstemp creates a file that only this user may read from the start.
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
            # The file was copied with too open a mode; its content is worth more than the mode of the copy.
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
