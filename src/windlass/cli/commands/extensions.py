"""`windlass extensions`: lists the installed extensions and the parts that each adds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command

PANEL = "Set up"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "extensions", panel=PANEL, has_json=True, is_local=True)(extensions)


def extensions(
    at: Ambient,
    name: Annotated[str | None, typer.Argument(help="Show the settings and metrics of this extension.")] = None,
) -> None:
    """List the installed extensions with their versions and the parts that each adds."""
    from windlass.app import extending
    from windlass.core.errors import NotFound

    found = [one for one in extending.load(at.settings) if name in (None, one.name)]
    if name is not None and not found:
        raise NotFound(f"no extension is called {name!r}", remedy="`windlass extensions` lists them")
    if at.as_json:
        at.screen.document({"items": [_document(one, at) for one in found]})
        return
    if name is None:
        rows = [(one.name, f"{one.distribution} {one.version}", ", ".join(_adds(one.extension))) for one in found]
        at.screen.table(("name", "package", "adds"), rows)
        if not found:
            at.screen.note("none; an extension is a package with an entry point in windlass.extensions")
        return
    document = _document(found[0], at)
    at.screen.table(
        ("setting", "variable", "value", "about"),
        [(one["key"], one["variable"], str(one["value"]), one["about"]) for one in document["settings"]],
    )
    at.screen.table(("metric", "kind", "about"), [tuple(one.values()) for one in document["metrics"]])


def _adds(extension: Any) -> list[str]:
    counted = {
        "recipes": extension.recipes,
        "routers": extension.routers,
        "commands": extension.commands,
        "migrations": extension.migrations,
        "settings": extension.settings,
        "labels": extension.indexed_labels,
        "metrics": extension.metrics,
        "pages": extension.pages,
    }
    return [what for what, there in counted.items() if there]


def _document(one: Any, at: Ambient) -> dict[str, Any]:
    from windlass.app import extending
    from windlass.app.settings import PREFIX

    extension, values = one.extension, extending.values(one, at.settings)
    return {
        "name": one.name,
        "package": one.distribution,
        "version": one.version,
        "about": extension.about,
        "schema": extension.schema,
        "adds": _adds(extension),
        "settings": [
            {
                "key": f"[{one.name}] {key}",
                "variable": f"{PREFIX}{one.name}_{key}".upper(),
                "value": "…" if setting.is_secret else values[key],
                "about": setting.about,
            }
            for key, setting in extension.settings.items()
        ],
        "metrics": [
            {"name": name, "kind": metric.kind, "about": metric.about} for name, metric in extension.metrics.items()
        ],
    }
