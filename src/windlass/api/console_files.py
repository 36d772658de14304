"""Finds the console's built files. Uses only the standard library, because the command line must start quickly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from windlass.core.errors import BadSetting

VARIABLE = "WINDLASS_CONSOLE_DIR"
PACKAGE = "windlass_console"
INDEX = "index.html"


def find_console() -> Path | None:
    """Return the folder of the built console, or None: then the server shows the lite page.

    The folder that the environment names comes first, and must exist. Then come the build of a checkout, the installed
    package, and the build that `windlass console build` left in the user's cache.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        folder = Path(named).expanduser().absolute()
        if not _is_build(folder):
            raise BadSetting(
                f"{VARIABLE}={named!r}: there is no {INDEX} in it",
                remedy="Name the folder of a built console, or unset it",
            )
        return folder
    return next(filter(_is_build, _places()), None)


def cache_folder() -> Path:
    """Return the folder where `windlass console build` puts this user's console."""
    root = os.environ.get("XDG_CACHE_HOME", "").strip()
    # The XDG specification says that a relative path is ignored.
    cache = Path(root) if root.startswith("/") else Path.home() / ".cache"
    return cache / "windlass" / "console"


def checkout_folder() -> Path | None:
    """Return the checkout that this process runs from, or None."""
    package = Path(__file__).resolve().parents[1]
    is_checkout = package.parent.name == "src" and (package.parents[1] / "pyproject.toml").is_file()
    return package.parents[1] if is_checkout else None


def packaged_sources() -> Path | None:
    """Return the console's sources, which an installed package contains if the console could not be built with it."""
    return next((folder / "web" for folder in _packages() if (folder / "web").is_dir()), None)


def _packages() -> Iterator[Path]:
    spec = find_spec(PACKAGE)
    if spec is not None:
        yield from map(Path, spec.submodule_search_locations or ())


def _places() -> Iterator[Path]:
    checkout = checkout_folder()
    if checkout is not None:
        yield checkout / "build" / "console"
    yield from _packages()
    # A service without a home directory has no cache either.
    try:
        yield cache_folder()
    except RuntimeError:
        return


def _is_build(folder: Path) -> bool:
    try:
        return (folder / INDEX).is_file()
    except OSError:
        return False
