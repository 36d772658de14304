"""The declaration of an extension. It imports nothing: code is named as `module:attribute` and loaded where it is used.

A worker does not use routes and a command does not use recipes, and neither should need the other's dependencies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from windlass.pure.label import check_indexed

_NAME = re.compile(r"[a-z][a-z0-9]{1,23}")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")
_METRIC = re.compile(r"[a-z][a-z0-9_]{2,79}")
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_FOLDER = re.compile(r"[A-Za-z0-9_]+")
_PAGE = re.compile(r"[a-z][a-z0-9-]{0,39}")
_MODULE = re.compile(r"[A-Za-z0-9_-]+\.js")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an extension: its parser for text or a TOML value, its purpose, and its default.

    `parse` raises ValueError with a sentence that says what the value must be. A secret is never shown.
    """

    parse: Callable[[Any], Any]
    about: str
    default: Any = None
    example: str = ""
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of an extension. Its labels never contain an id or a caller: requests must not create series."""

    kind: Literal["counter", "gauge", "histogram"]
    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the console at `/console/x/EXTENSION/path`.

    `module` is a file in the extension's folder `console`: an ES module that exports `mount(element, api)`, which
    returns a function that removes the page. `icon` is the name of a Lucide icon that the console knows.
    """

    title: str
    module: str
    path: str = ""
    icon: str = "puzzle"


@dataclass(frozen=True, slots=True)
class Extension:
    """The additions of an installed package to Windlass. Its entry point is in the group `windlass.extensions`.

    `package` is the Python package that has the folders. `recipes` are targets as `windlass worker` takes them.
    `routers` and `commands` are `module:attribute`; `migrations`, `statements`, `console` are folders of the package.
    """

    name: str
    package: str
    about: str = ""
    recipes: tuple[str, ...] = ()
    routers: tuple[str, ...] = ()
    commands: str | None = None
    migrations: str | None = None
    statements: str | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    indexed_labels: tuple[str, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    pages: tuple[Page, ...] = ()
    console: str = "console"

    @property
    def schema(self) -> str:
        """The extension's own PostgreSQL schema."""
        return f"windlass_{self.name}"

    def __post_init__(self) -> None:
        """Refuse invalid values with ValueError."""
        _must(_NAME.fullmatch(self.name), f"the name {self.name!r} must have 2 to 24 lower-case letters and digits")
        for reference in (*self.routers, *([self.commands] if self.commands else [])):
            _must(_REFERENCE.fullmatch(reference), f"{reference!r} must be module:attribute")
        for folder in filter(None, (self.migrations, self.statements, self.console)):
            _must(_FOLDER.fullmatch(folder), f"{folder!r} must be a folder of {self.package}")
        for key in self.settings:
            _must(_KEY.fullmatch(key), f"the setting {key!r} must have lower-case letters, digits and _")
        for label in self.indexed_labels:
            check_indexed(label)
        for metric in self.metrics:
            is_ours = metric.startswith("windlass_")
            told = f"the metric {metric!r} must have lower-case letters, digits and _, and not begin with windlass_"
            _must(_METRIC.fullmatch(metric) and not is_ours, told)
        for page in self.pages:
            _must(not page.path or _PAGE.fullmatch(page.path), f"the page {page.path!r} must be one word")
            _must(_MODULE.fullmatch(page.module), f"the module {page.module!r} of a page must be a .js file")
        paths = [page.path for page in self.pages]
        _must(len(paths) == len(set(paths)), f"two pages have the same path: {paths}")


def _must(is_so: object, message: str) -> None:
    if not is_so:
        raise ValueError(message)
