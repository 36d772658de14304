"""The package's build hook: the wheel carries the console and the documentation, as import packages of their own.

They are `windlass_console` and `windlass_docs`. Neither fails an install. Without Node, or when its build goes wrong,
the wheel carries the console's sources instead, the server shows its lite page, and `windlass console build` builds it
later. Without the site's generator the server says under /docs that the documentation was not built. WINDLASS_CONSOLE
and WINDLASS_DOCS decide:

    auto      build if it can be built (the default)
    skip      do not build
    require   fail when it cannot be built
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CONSOLE_PACKAGE = "windlass_console"
DOCS_PACKAGE = "windlass_docs"
MODES = ("auto", "skip", "require")


class Package(BuildHookInterface):
    """Called by hatchling for every wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the isolated build needs besides hatchling: the site's generator, and Node if the machine has none."""
        needed = []
        console = self._console_builder()
        if _mode("WINDLASS_CONSOLE") != "skip" and not self._is_console_built(console) and not console.has_node():
            needed.append(console.NODE_PACKAGE)
        if _mode("WINDLASS_DOCS") != "skip" and self._has_docs and not self._is_site_built(self._site_builder()):
            needed.append(self._site_builder().GENERATOR_PACKAGE)
        return needed

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build both, or reuse what was built of the same sources, and put them into the wheel."""
        included = build_data["force_include_editable" if version == "editable" else "force_include"]
        if self._web.is_dir():
            self._include_console(included, is_editable=version == "editable")
        if self._has_docs:
            self._include_site(included)

    def _include_console(self, included: dict[str, str], is_editable: bool) -> None:
        builder = self._console_builder()
        if (mode := _mode("WINDLASS_CONSOLE")) != "skip":
            try:
                builder.build(self._web, self._console, self._say)
            except builder.NotBuilt as why:
                if mode == "require":
                    raise
                self.app.display_warning(f"windlass: the console was not built: {why}")
        if self._is_console_built(builder):
            (self._console / "__init__.py").touch()
            included[str(self._console)] = CONSOLE_PACKAGE
        elif not is_editable:
            for path in builder.sources(self._web):
                included[str(path)] = f"{CONSOLE_PACKAGE}/web/{path.relative_to(self._web).as_posix()}"

    def _include_site(self, included: dict[str, str]) -> None:
        builder = self._site_builder()
        if (mode := _mode("WINDLASS_DOCS")) != "skip":
            try:
                builder.build(Path(self.root), self._site, self._say)
            except builder.NotBuilt as why:
                if mode == "require":
                    raise
                self.app.display_warning(f"windlass: the documentation was not built: {why}")
        if self._is_site_built(builder):
            (self._site / "__init__.py").touch()
            included[str(self._site)] = DOCS_PACKAGE

    def _say(self, text: str) -> None:
        self.app.display_info(f"windlass: {text}")

    @property
    def _web(self) -> Path:
        return Path(self.root, "web")

    @property
    def _console(self) -> Path:
        return Path(self.root, "build", "console")

    @property
    def _site(self) -> Path:
        return Path(self.root, "build", "site")

    @property
    def _has_docs(self) -> bool:
        return Path(self.root, "docs", "site").is_dir()

    def _is_console_built(self, builder: ModuleType) -> bool:
        return self._web.is_dir() and builder.is_built(self._console, builder.fingerprint(self._web))

    def _is_site_built(self, builder: ModuleType) -> bool:
        return builder.is_built(self._site, builder.fingerprint(Path(self.root)))

    def _console_builder(self) -> ModuleType:
        return _loaded(Path(self.root, "src", "windlass", "app", "console_build.py"))

    def _site_builder(self) -> ModuleType:
        return _loaded(Path(self.root, "docs", "site", "site_build.py"))


def _mode(variable: str) -> str:
    mode = os.environ.get(variable) or "auto"
    if mode not in MODES:
        raise ValueError(f"{variable} is {mode!r}; it may be {', '.join(MODES)}")
    return mode


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
