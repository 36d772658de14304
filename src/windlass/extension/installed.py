"""Finds installed extensions. A process reads the entry points once, and only if it needs them.

An extension that cannot be loaded stops the process. Without it the installation would run without routes, settings or
migrations that its users rely on. The setting `extensions` can leave it out on purpose.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from windlass.core.errors import BadSetting, WindlassError
from windlass.extension.declaration import Extension

GROUP = "windlass.extensions"


@dataclass(frozen=True, slots=True)
class Installed:
    """An extension and the distribution that contains it."""

    extension: Extension
    distribution: str
    version: str

    @property
    def name(self) -> str:
        """The extension's name."""
        return self.extension.name

    def attribute(self, reference: str) -> Any:
        """Load `module:attribute`. BadSetting names the package at fault."""
        module, _, name = reference.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (Exception, SystemExit) as error:
            raise self.broken(f"{reference} cannot be loaded: {_said(error)}") from error

    def texts(self, folder: str | None) -> list[tuple[str, str]]:
        """Return the names, without suffix, and the texts of the .sql files in a folder of the package."""
        if folder is None:
            return []
        try:
            entries = sorted(files(self.extension.package).joinpath(folder).iterdir(), key=lambda entry: entry.name)
            found = [(one.name.removesuffix(".sql"), one) for one in entries if one.name.endswith(".sql")]
            return [(name, one.read_text(encoding="utf-8")) for name, one in found]
        except (OSError, ImportError, UnicodeDecodeError) as error:
            raise self.broken(f"its folder {folder!r} cannot be read: {_said(error)}") from error

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """Provide a folder of the package, as files, inside the block."""
        try:
            with as_file(files(self.extension.package).joinpath(name)) as path:
                yield path
        except (OSError, ImportError) as error:
            raise self.broken(f"its folder {name!r} cannot be read: {_said(error)}") from error

    def broken(self, what: str) -> BadSetting:
        """Build the error that stops a process: the package at fault, the problem and what to do."""
        return broken(self.name, f"{self.distribution} {self.version}", what)


def broken(name: str, package: str, what: str) -> BadSetting:
    """Build the error for an extension that cannot be used."""
    return BadSetting(
        f"the extension {name} of {package}: {what}",
        remedy=f"Upgrade or uninstall {package.partition(' ')[0]}, or name the extensions to load with `extensions`",
    )


@cache
def _entry_points() -> tuple[Any, ...]:
    # Imported late: reading settings must stay quick, and few settings belong to an extension.
    from importlib import metadata

    return tuple(sorted(metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def names() -> frozenset[str]:
    """Return the names of the installed extensions, without importing any."""
    return frozenset(point.name for point in _entry_points())


@cache
def load(wanted: tuple[str, ...] | None) -> tuple[Installed, ...]:
    """Load all installed extensions, or the named ones. Raises BadSetting if one cannot be loaded."""
    missing = sorted(set(wanted or ()) - names())
    if missing:
        known = ", ".join(sorted(names())) or "none"
        raise BadSetting(f"extensions: {missing[0]!r} is not installed", remedy=f"Installed: {known}")
    found = [_loaded(point) for point in _entry_points() if wanted is None or point.name in wanted]
    _check_apart(found)
    return tuple(found)


def _loaded(point: Any) -> Installed:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
    try:
        extension = point.load()
    except (Exception, SystemExit) as error:
        raise broken(point.name, package, f"{point.value} cannot be imported: {_said(error)}") from error
    if not isinstance(extension, Extension):
        kind = type(extension).__name__
        raise broken(point.name, package, f"{point.value} is a {kind}, and must be a windlass.Extension")
    if extension.name != point.name:
        raise broken(point.name, package, f"its entry point is {point.name!r}, but its name {extension.name!r}")
    name, _, version = package.partition(" ")
    return Installed(extension, name, version)


def _check_apart(found: Iterable[Installed]) -> None:
    """Refuse two extensions that claim one name."""
    taken: dict[str, Installed] = {}
    for one in found:
        for what in _claims(one.extension):
            other = taken.setdefault(what, one)
            if other is not one:
                raise one.broken(f"{what} is taken by the extension {other.name} of {other.distribution}")


def _claims(extension: Extension) -> Iterator[str]:
    yield f"the name {extension.name}"
    yield from (f"the metric {name}" for name in extension.metrics)


def _said(error: BaseException) -> str:
    return error.message if isinstance(error, WindlassError) else f"{type(error).__name__}: {error}"
