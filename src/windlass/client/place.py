"""Finds the server that a client uses, and the key for it.

The arguments come first, then `WINDLASS_SERVER` and `WINDLASS_API_KEY`, then `windlass.toml`. Last come the files that
`windlass up` left in the same folder: its address and its key. That key is sent only to this machine.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from windlass.core.errors import BadSetting

KEY_FILE = "key"
SERVER_FILE = "server"
_PREFIX = "WINDLASS_"
_SETTINGS_FILE = "windlass.toml"


@dataclass(frozen=True, slots=True)
class Place:
    """A server's address, and the key for it."""

    url: str
    api_key: str | None = field(repr=False)

    @property
    def is_here(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")


def find(
    server: str | None,
    api_key: str | None,
    *,
    home: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Place:
    """Return the server's address and key; raise BadSetting if no source names a server."""
    start = folder or Path.cwd()
    settings = _settings(environ, start)
    home = home or start / Path(settings.get("home") or ".windlass").expanduser()
    url = server or settings.get("server") or _first_line(home / SERVER_FILE)
    if not url:
        raise BadSetting(
            f"no server: none was given, WINDLASS_SERVER is not set, and no `windlass up` runs in {home}",
            remedy="Start one with `windlass up`, or give its address, such as https://windlass.example",
        )
    place = Place(_checked(url), api_key or settings.get("api_key"))
    if place.api_key is None and place.is_here:
        place = Place(place.url, _first_line(home / KEY_FILE))
    return place


def is_loopback(host: str) -> bool:
    """Return whether a host is `localhost` or a loopback address. No name is resolved."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _checked(url: str) -> str:
    text = url.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_fine = False
    if not is_fine:
        raise BadSetting(f"the server {url!r} is not an address", remedy="It looks like https://windlass.example")
    return text


def _settings(environ: Mapping[str, str], start: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    path = start / (environ.get(f"{_PREFIX}CONFIG", "").strip() or _SETTINGS_FILE)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        table = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"{path} cannot be read: {error}", remedy="Correct it, or give server and api_key") from None
    for name in ("server", "api_key", "home"):
        text = environ.get(f"{_PREFIX}{name.upper()}", "").strip() or str(table.get(name) or "").strip()
        if text:
            found[name] = text
    return found


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip().partition("\n")[0].strip() or None
    except (OSError, UnicodeDecodeError):
        return None
