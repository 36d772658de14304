"""Names the installed scanners: the built-in ones, and plug-ins by entry points of the group `windlass.scanners`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from windlass.core.errors import BadSetting

GROUP = "windlass.scanners"
FAMILIES = ("secret", "pii", "injection")
# The scanner of findings whose rules a policy wrote.
PATTERN, KEYWORD = "pattern", "keyword"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


@cache
def entry_points() -> tuple[Any, ...]:
    """Return the entry points of plug-ins, in the order of their names."""
    # Imported late: most processes read no policy that names a plug-in.
    from importlib import metadata

    return tuple(sorted(metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def installed_names() -> frozenset[str]:
    """Return the names of all installed scanners, without importing any. Raises BadSetting for a bad name."""
    names = set(FAMILIES)
    for point in entry_points():
        if not _NAME.fullmatch(point.name) or point.name in (*names, PATTERN, KEYWORD):
            package = "" if point.dist is None else f" of {point.dist.name} {point.dist.version}"
            raise BadSetting(
                f"the scanner {point.name!r}{package} has a name that is taken or not allowed",
                remedy="Upgrade or uninstall the package: a name has small letters, digits, `-` and `_`",
            )
        names.add(point.name)
    return frozenset(names)
