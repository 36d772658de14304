"""Whether a shell command of the docs exists: through the real command line, the API's routes, the Makefile, or pip."""

from __future__ import annotations

import re
import shlex
from typing import Any

import typer.main

from tests.docs.blocks import ROOT
from tests.docs.curl import curl_complaint
from windlass.cli.main import app

_ASSIGNMENT = re.compile(r"^[A-Z_]+=")


def command_lines(text: str) -> list[list[str]]:
    """The commands of a block, as words: comments dropped, continued lines joined, pipes cut."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        for stop in ("|", "&", ">", "&&"):
            words = words[: words.index(stop)] if stop in words else words
        if words:
            found.append(words)
    return found


def complaint(words: list[str]) -> str | None:
    """Why this command would not work, or None."""
    match words:
        case ["windlass", *rest]:
            return _windlass(rest)
        case ["make", *rest]:
            known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
            unknown = [word for word in rest if "=" not in word and word not in known]
            return f"no such target: {unknown}" if unknown else None
        case ["pip", "install", *packages]:
            strange = [name for name in packages if not re.fullmatch(r"windlass(\[[a-z0-9,]+\])?", name)]
            return f"pip installs {strange}" if strange else None
        case ["curl", *rest]:
            return curl_complaint(rest)
        case ["export" | "cd" | "mkdir" | "echo", *_]:
            return None
        case ["pytest" | "python", *_]:
            return None
    return f"nobody knows how to check `{' '.join(words)}`; mark the block `text` if it cannot be run"


def _windlass(arguments: list[str]) -> str | None:
    """Parse the arguments as the command line would, without running anything."""
    command: Any = typer.main.get_command(app)
    if arguments in (["--version"], ["--help"]):
        return None
    path = "windlass"
    parent = None
    try:
        while hasattr(command, "commands"):
            context = command.make_context(path, list(arguments), parent=parent)
            name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
            path, parent = f"{path} {name}", context
        command.make_context(path, list(arguments), parent=parent)
    except Exception as error:
        return f"{path}: {error or type(error).__name__}"
    return None
