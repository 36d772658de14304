"""The generated parts of the docs, each drawn from the code that it describes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

import typer.main

from windlass.app import settings
from windlass.app.job import JobCancelled, JobFailed
from windlass.cli import exits
from windlass.cli.main import app
from windlass.core import errors, states


def job_states() -> str:
    """The job's state machine as a picture."""
    return _picture(states.JOB_MOVES, states.JOB_TERMINAL, first=("PENDING", "QUEUED"))


def step_states() -> str:
    """The step's state machine as a picture."""
    return _picture(states.STEP_MOVES, states.STEP_TERMINAL, first=("BLOCKED", "READY", "QUEUED"))


def _picture(moves: Mapping[Any, frozenset[Any]], terminal: Iterable[StrEnum], first: Iterable[str]) -> str:
    ends = set(terminal)
    going = [state for state in moves if state not in ends]
    # An ending that is open to every unfinished state is drawn once, from the box around them all.
    shared = frozenset.intersection(*(moves[state] for state in going)) & ends
    lines = ["```mermaid", "stateDiagram-v2", *(f"    [*] --> {state}" for state in first), "    state unfinished {"]
    for state in going:
        lines += [f"        {state} --> {target}" for target in moves if target in moves[state] - ends]
    lines.append("    }")
    for target in (state for state in moves if state in ends):
        if target in shared:
            lines.append(f"    unfinished --> {target}")
        lines += [f"    {state} --> {target}" for state in moves if target in moves[state] and target not in shared]
    lines += [f"    {state} --> [*]" for state in moves if state in ends and not moves[state]]
    return "\n".join([*lines, "```"])


def error_codes() -> str:
    """Every error of the tree with its code, who must act, and the exit code of the command line."""
    rows = ["| error | code | exit | meaning |", "|---|---|---|---|"]
    for depth, kind in _tree(errors.WindlassError):
        if depth:
            indent = "&emsp;" * (depth - 1)
            rows.append(f"| {indent}`{kind.__name__}` | `{kind.code}` | {int(_exit_of(kind))} | {_summary(kind)} |")
    return "\n".join(rows)


def _exit_of(kind: type[errors.WindlassError]) -> exits.Exit:
    if issubclass(kind, JobFailed):
        return exits.exit_for_job(states.JobState.CANCELLED if kind is JobCancelled else states.JobState.FAILED)
    return exits.exit_for_error(kind.__new__(kind))


def exit_codes() -> str:
    """Every exit code of the command line."""
    rows = ["| exit | meaning |", "|---|---|"]
    return "\n".join([*rows, *(f"| {code.value} | {meaning} |" for code, meaning in exits.MEANING.items())])


def settings_table() -> str:
    """Every setting: its name in the file and in the environment, its default, what it is for."""
    rows = ["| in `windlass.toml` | in the environment | default | what it is for | example |", "|---|---|---|---|---|"]
    defaults = settings.Settings()
    for name, key in settings.KEYS.items():
        default = getattr(defaults, name)
        shown = "" if default in (None, ()) else f"`{default}`"
        rows.append(f"| `{name}` | `{settings.PREFIX}{name.upper()}` | {shown} | {key.about} | `{key.example}` |")
    return "\n".join(rows)


def cli() -> str:
    """Every command with its arguments and options, as the command line itself knows them."""
    return "\n\n".join(_command_text(path, command) for path, command in _commands(typer.main.get_command(app)))


def _commands(group: Any, path: tuple[str, ...] = ("windlass",)) -> Iterable[tuple[str, Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def _command_text(path: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join([path, *(_argument(p) for p in arguments), *(["[options]"] if options else [])])
    parts = [f"## `{path}`", inspect.cleandoc(command.help or ""), f"```text\n{usage}\n```"]
    if options:
        rows = [f"| `{', '.join([*p.opts, *p.secondary_opts])}` | {p.help or ''}{_default(p)} |" for p in options]
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(part for part in parts if part)


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _default(parameter: Any) -> str:
    value = parameter.default
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return f" Default: `{value}`." if plain and parameter.show_default and value != "" else ""


def _tree(root: type[errors.WindlassError], depth: int = 0) -> Iterable[tuple[int, type[errors.WindlassError]]]:
    yield depth, root
    for kind in root.__subclasses__():
        if kind.__module__.startswith("windlass."):
            yield from _tree(kind, depth + 1)


def _summary(thing: object) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


PARTS: dict[str, Callable[[], str]] = {
    "job-states": job_states,
    "step-states": step_states,
    "cli": cli,
    "errors": error_codes,
    "exit-codes": exit_codes,
    "settings": settings_table,
}
