"""Combines extensions with this installation: reads their settings, and collects their migrations and labels."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from windlass.app.settings import KEYS, PREFIX, Settings
from windlass.core.errors import BadSetting, WindlassError
from windlass.extension import installed
from windlass.extension.declaration import Setting
from windlass.extension.installed import Installed
from windlass.recipe.app import load as load_app
from windlass.store.migrate import Folder


def load(settings: Settings) -> tuple[Installed, ...]:
    """Load the extensions of this installation and check their settings; raises BadSetting if one cannot be used."""
    found = _apart_from_ours(settings.extensions)
    for one in found:
        values(one, settings)
    return found


@cache
def _apart_from_ours(wanted: tuple[str, ...] | None) -> tuple[Installed, ...]:
    found = installed.load(wanted)
    for one in found:
        taken = [name for name in (one.name, *(f"{one.name}_{key}" for key in one.extension.settings)) if name in KEYS]
        if taken:
            raise one.broken(f"{taken[0]!r} is a setting of Windlass")
    return found


def targets(settings: Settings) -> list[str]:
    """Return the recipe modules of all extensions, which a worker loads beside its app."""
    found = [(one, target) for one in load(settings) for target in one.extension.recipes]
    for one, target in found:
        try:
            load_app(target)
        except WindlassError as error:
            raise one.broken(f"its recipes in {target} cannot be loaded: {error.message}") from error
    return [target for _, target in found]


def folders(found: Sequence[Installed]) -> list[Folder]:
    """Return the migrations of these extensions."""
    return [
        Folder(one.name, one.extension.schema, one.texts(one.extension.migrations))
        for one in found
        if one.extension.migrations is not None
    ]


def indexed_labels(settings: Settings, found: Sequence[Installed]) -> set[str]:
    """Return the labels that this installation and its extensions declare indexed."""
    return {*settings.indexed_labels, *(label for one in found for label in one.extension.indexed_labels)}


def values(one: Installed, settings: Settings) -> dict[str, Any]:
    """Return the extension's settings: the given value of each, else its default."""
    declared = one.extension.settings
    found = {key: setting.default for key, setting in declared.items()}
    for key, (source, value) in settings.of_extensions.get(one.name, {}).items():
        if key in declared:
            found[key] = _parsed(source, declared[key], value)
        elif not source.startswith(PREFIX):
            raise _unknown(source, key, declared)
        elif difflib.get_close_matches(key, declared, n=1, cutoff=0.8):
            # As for Windlass's own settings, an unknown variable is ignored, but a likely misspelling is not.
            raise _unknown(source, key, declared)
    return found


def _parsed(source: str, setting: Setting, value: Any) -> Any:
    try:
        return setting.parse(value)
    except ValueError as error:
        shown = "…" if setting.is_secret else str(value)
        remedy = f"For example: {setting.example}" if setting.example else setting.about
        raise BadSetting(f"{source}={shown!r}: {error}", remedy=remedy) from None


def _unknown(source: str, key: str, declared: Mapping[str, Setting]) -> BadSetting:
    close = difflib.get_close_matches(key, declared, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(declared) or 'none'}"
    return BadSetting(f"{source}: there is no such setting", remedy=hint)
