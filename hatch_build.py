"""The package's build hook: the wheel carries the console, as the import package `windlass_console`.

It never fails an install: without Node, or when the build goes wrong, the wheel carries the console's sources instead,
the server shows its lite page, and `windlass console build` builds it later. WINDLASS_CONSOLE decides:

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

PACKAGE = "windlass_console"
MODES = ("auto", "skip", "require")


class Console(BuildHookInterface):
    """Called by hatchling for every wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the isolated build needs besides hatchling: a Node from the package index if the machine has none."""
        builder = self._builder()
        if self._mode == "skip" or self._is_built(builder) or builder.has_node():
            return []
        return [builder.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, or reuse what was built of the same sources, and put it into the wheel."""
        builder = self._builder()
        if not self._web.is_dir():
            return
        included = build_data["force_include_editable" if version == "editable" else "force_include"]
        if self._mode != "skip":
            try:
                builder.build(self._web, self._out, lambda text: self.app.display_info(f"windlass: {text}"))
            except builder.NotBuilt as why:
                if self._mode == "require":
                    raise
                self.app.display_warning(f"windlass: the console was not built: {why}")
        if self._is_built(builder):
            (self._out / "__init__.py").touch()
            included[str(self._out)] = PACKAGE
        elif version != "editable":
            for path in builder.sources(self._web):
                included[str(path)] = f"{PACKAGE}/web/{path.relative_to(self._web).as_posix()}"

    @property
    def _mode(self) -> str:
        mode = os.environ.get("WINDLASS_CONSOLE") or "auto"
        if mode not in MODES:
            raise ValueError(f"WINDLASS_CONSOLE is {mode!r}; it may be {', '.join(MODES)}")
        return mode

    @property
    def _web(self) -> Path:
        return Path(self.root, "web")

    @property
    def _out(self) -> Path:
        return Path(self.root, "build", "console")

    def _is_built(self, builder: ModuleType) -> bool:
        return self._web.is_dir() and builder.is_built(self._out, builder.fingerprint(self._web))

    def _builder(self) -> ModuleType:
        path = Path(self.root, "src", "windlass", "app", "console_build.py")
        spec = importlib.util.spec_from_file_location("console_build", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
