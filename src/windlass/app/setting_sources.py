"""Reads the raw values of settings from the environment and from `windlass.toml`."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from windlass.core.errors import BadSetting
from windlass.extension.installed import names as extension_names

FILE_NAME = "windlass.toml"
PREFIX = "WINDLASS_"
# The path of the settings file can be set, but not in the file itself.
FILE_VARIABLE = "WINDLASS_CONFIG"


class KnownKey(Protocol):
    """A setting that the environment may have."""

    @property
    def variable(self) -> str:
        """A further name in the environment, without the prefix of Windlass; no text if it has none."""
        ...


def _extension_key(key: str) -> tuple[str, str] | None:
    """Return the extension that a variable is for, and its key there. Only variables that Windlass does not know get
    here.
    """
    name, _, rest = key.partition("_")
    return (name, rest) if rest and name in extension_names() else None


def from_environment(
    environ: Mapping[str, str], known: Mapping[str, KnownKey]
) -> Iterator[tuple[str, str | tuple[str, str], Any]]:
    """Yield the settings of the environment: the source, the key and the raw value of each."""
    # The name with the prefix of Windlass comes later, and so wins.
    for key, one in known.items():
        if one.variable and environ.get(one.variable, "").strip():
            yield one.variable, key, environ[one.variable]
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE:
            continue
        key = variable.removeprefix(PREFIX).lower()
        if key in known:
            if environ[variable].strip():  # an empty variable counts as not set
                yield variable, key, environ[variable]
            continue
        if (of_extension := _extension_key(key)) is not None:
            if environ[variable].strip():
                yield variable, of_extension, environ[variable]
            continue
        # An orchestrator that runs a service named windlass adds variables such as WINDLASS_PORT, so an unknown
        # variable is ignored. A variable that resembles a setting is a misspelling, and must not pass in silence.
        if close := difflib.get_close_matches(key, known, n=1, cutoff=0.8):
            raise BadSetting(
                f"there is no setting {variable}", remedy=f"Did you mean {PREFIX}{close[0].upper()}? Unset it otherwise"
            )


def from_file(
    environ: Mapping[str, str], start: Path, known: Collection[str]
) -> Iterator[tuple[str, str | tuple[str, str], Any]]:
    """Yield the settings of the file: the source, the key and the raw value of each."""
    named = environ.get(FILE_VARIABLE, "").strip()
    path = start / (named or FILE_NAME)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise BadSetting(
                f"{FILE_VARIABLE}={named!r}: there is no such file", remedy="Correct the path or unset it"
            ) from None
        return
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{path} cannot be read: {error}", remedy="Check the file and its permissions") from error
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path} is not TOML: {error}", remedy='A line looks like: home = "./.windlass"') from error
    for key, value in table.items():
        if key not in known and isinstance(value, dict) and key in extension_names():
            yield from ((f"{path.name}: [{key}] {name}", (key, name), one) for name, one in value.items())
            continue
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(known)}"
            raise BadSetting(f"{path}: there is no setting {key!r}", remedy=hint)
        if isinstance(value, str) and (
            key in ("home", "providers", "safety_kernel_tls_ca") or (key == "artifacts" and "://" not in value)
        ):
            value = str(path.parent / Path(value).expanduser())
        yield f"{path.name}: {key}", key, value
