"""The generated parts of the docs, each drawn from the code that it describes."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

import typer.main

from tests.conformance.requirements import families, tests_by_id
from windlass.api.app import bare
from windlass.app import settings
from windlass.app.job import JobCancelled, JobFailed
from windlass.cli import exits
from windlass.cli.main import app
from windlass.core import errors, states
from windlass.core.constraint import CONSTRAINT_FIELDS
from windlass.policy import keys as policy_keys_module
from windlass.policy import when as policy_when
from windlass.policy.request_keys import REQUEST_SECTIONS
from windlass.policy.scan.names import FAMILIES
from windlass.policy.scan.rule import family as scanner_family
from windlass.providers import config as providers_config
from windlass.providers import errors as provider_errors
from windlass.pure.problem import kind_of
from windlass.telemetry.instrument import INSTRUMENTS


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
    """Every error of the tree with its code, who must act, the exit code of the command line, and the HTTP status."""
    rows = ["| error | code | exit | HTTP | meaning |", "|---|---|---|---|---|"]
    for depth, kind in _tree(errors.WindlassError):
        if depth:
            indent = "&emsp;" * (depth - 1)
            status = "" if issubclass(kind, JobFailed) else str(kind_of(kind).status)
            names = f"| {indent}`{kind.__name__}` | `{kind.code}` | {int(_exit_of(kind))} | {status}"
            rows.append(f"{names} | {_summary(kind)} |")
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
        variables = [f"`{settings.PREFIX}{name.upper()}`", *([f"`{key.variable}`"] if key.variable else [])]
        rows.append(f"| `{name}` | {', '.join(variables)} | {shown} | {key.about} | `{key.example}` |")
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


def api() -> str:
    """Every route: who may use it, what it takes, what it answers."""
    document = bare().openapi()
    found: dict[str, list[str]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found[operation["tags"][0]].append(_route_text(method, path, operation))
    about = {tag["name"]: tag["description"] for tag in document["tags"]}
    return "\n\n".join(f"## {tag}\n\n{about[tag]}\n\n" + "\n\n".join(texts) for tag, texts in found.items() if texts)


def _route_text(method: str, path: str, operation: Mapping[str, Any]) -> str:
    answers = operation["responses"]
    refusals = sorted(
        {code for answer in answers.values() for code in re.findall(r"`([a-z_]+)`: ", answer["description"])}
    )
    parts = [f"### `{method.upper()} {path}`", f"{operation['summary']} (`{operation['operationId']}`)."]
    parts.append(inspect.cleandoc(operation.get("description", "")))
    rows = [
        f"| `{p['name']}` | {p['in']} | {p.get('description') or p['schema'].get('description') or ''} |"
        for p in operation.get("parameters", ())
    ]
    if rows:
        parts.append("\n".join(["| parameter | in | meaning |", "|---|---|---|", *rows]))
    good = ", ".join(status for status in answers if int(status) < 400)
    parts.append(f"Answers {good}. Refused with {', '.join(f'`{code}`' for code in refusals)}.")
    return "\n\n".join(parts)


def openapi() -> str:
    """The API's document for programs."""
    return json.dumps(bare().openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def metrics() -> str:
    """Every instrument: what it is called, of what kind it is, by what it is told apart."""
    rows = ["| metric | kind | labels | what it says |", "|---|---|---|---|"]
    for name, one in INSTRUMENTS.items():
        labels = ", ".join(f"`{label}`" for label in one.labels)
        rows.append(f"| `{name}` | {one.kind} | {labels} | {one.about} |")
    return "\n".join(rows)


# The purpose of each key of a provider. A missing or superfluous key is an error.
PROVIDER_KEYS = {
    "adapter": "who speaks its protocol: `openai`, `fal`, `replicate`, `http`, `package.module:Class`, or the name of "
    "an entry point; required",
    "base_url": "where it is, if not where its adapter expects it",
    "credential_env": "the environment variable that holds the credential",
    "concurrency": "how many pieces of work it does for us at a time",
    "rate": "how many requests a second it is sent, by all processes together",
    "timeout": "how long one request may take",
    "answer_max_bytes": "how much of one answer is read; more is an error",
    "wait": "how long a step waits for the end of its work, unless the step says otherwise",
    "poll": "when it is asked how the work stands: a list of waits, of which the last is repeated",
    "webhook": "how its webhooks are known to be its own; without it none are asked for and none are taken",
    "payment": "who pays: `PREPAID_POOL`, `ON_DEMAND` or `FORWARDED`; for your reports",
    "prices": "what it charges, by model; `*` is any other",
    "estimate": "what a step may cost that does not say so itself; it is set aside in budgets",
    "options": "the adapter's own",
}
WEBHOOK_KEYS = {
    "profile": "`standard`, `stripe`, `github`, `plain`, or one of the adapter's own; else the adapter's usual one",
    "secret_env": "the environment variable that holds the secret, or several, by commas; no other provider has it",
    "tolerance": "how old or how far ahead a signed time may be",
    "header": "where the plain profile's signature is",
}
PRICE_KEYS = {
    "call": "once for each piece of work",
    "second": "for each second that it was at work, as the provider tells",
    "item": "for each thing that it made",
    "tokens_in": "for a million tokens that it read",
    "tokens_out": "for a million tokens that it wrote",
}


def provider_keys() -> str:
    """Every key of a provider in `providers.yaml`."""
    return _keys_table(providers_config._KEYS, PROVIDER_KEYS, providers_config.ProviderConfig("", ""))


def webhook_keys() -> str:
    """Every key of a provider's `webhook`."""
    return _keys_table(providers_config._WEBHOOK_KEYS, WEBHOOK_KEYS, providers_config.WebhookConfig())


def price_keys() -> str:
    """Every key of a price."""
    return _keys_table(providers_config._PRICE_KEYS, PRICE_KEYS, providers_config.Price())


def _keys_table(keys: Iterable[str], about: Mapping[str, str], defaults: object) -> str:
    if set(keys) != set(about):
        raise ValueError(f"providers.yaml has other keys than the docs: {sorted(set(keys) ^ set(about))}")
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key in keys:
        value = getattr(defaults, f"{key}_s", getattr(defaults, key, None))
        rows.append(f"| `{key}` | {_shown(value, is_time=hasattr(defaults, f'{key}_s'))} | {about[key]} |")
    return "\n".join(rows)


def _shown(value: object, *, is_time: bool) -> str:
    if value is None or value == {} or value == "":
        return ""
    if is_time:
        waits = value if isinstance(value, tuple) else (value,)
        text = ", ".join(f"{wait:g}s" for wait in waits)
        return f"`[{text}]`" if isinstance(value, tuple) else f"`{text}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def provider_failures() -> str:
    """Every error of an adapter: what it means for the step, the round and the breaker."""
    rows = [
        "| error | code | another attempt | counts as a try | may have been taken | breaker |",
        "|---|---|---|---|---|---|",
    ]
    for depth, kind in _provider_tree(provider_errors.ProviderError):
        if depth and kind.__module__ == provider_errors.__name__:
            answers = (kind.is_retryable, kind.is_counted, kind.is_ambiguous, kind.counts_against_breaker)
            told = " | ".join("yes" if answer else "no" for answer in answers)
            rows.append(f"| {'&emsp;' * (depth - 1)}`{kind.__name__}` | `{kind.code}` | {told} |")
    return "\n".join(rows)


def _provider_tree(root: type[Any], depth: int = 0) -> Iterable[tuple[int, type[Any]]]:
    yield depth, root
    for kind in root.__subclasses__():
        yield from _provider_tree(kind, depth + 1)


def policy_keys() -> str:
    """Every key of a policy document, section by section."""
    return _policy_sections(policy_keys_module.SECTIONS)


def policy_request_keys() -> str:
    """Every key of a policy's tests."""
    return _policy_sections(REQUEST_SECTIONS)


# Where each section stands in a document.
POLICY_PLACES = {
    "document": "The document",
    "selector": "selector",
    "rule": "rules",
    "match": "rules: match",
    "mcp": "mcp",
    "delegation": "rules: match: delegation",
    "velocity": "rules: velocity",
    "approval": "approval",
    "who": "approval: who",
    "escalate": "approval: escalate",
    "constraints": "rules: constraints",
    "budgets": "constraints: budgets",
    "sandbox": "constraints: sandbox",
    "toolchain": "constraints: toolchain",
    "diff": "constraints: diff",
    "remediation": "rules: remediations",
    "input_rule": "input_rules",
    "input_match": "input_rules: match",
    "scope": "input_rules: match: scope",
    "output_rule": "output_rules",
    "output_match": "output_rules: match",
    "input_policy": "input_policy",
    "output_policy": "output_policy",
    "tenant": "tenants",
    "require_human": "require_human",
    "test": "tests in a document",
    "request": "request",
    "caller": "request: caller",
    "chain": "request: delegation",
    "content": "request: content",
    "finding": "request: content: findings",
    "expect": "expect",
}


def _policy_sections(sections: Mapping[str, Mapping[str, policy_keys_module.DocumentKey]]) -> str:
    parts = []
    for name, keys in sections.items():
        rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
        rows += [
            f"| `{key}` | {_policy_value(one)} | {_policy_default(one)} | {one.about} |" for key, one in keys.items()
        ]
        parts += [f"### {POLICY_PLACES[name]}", "\n".join(rows)]
    return "\n\n".join(parts)


def _policy_value(key: policy_keys_module.DocumentKey) -> str:
    if key.words:
        words = ", ".join(f"`{word}`" for word in key.words)
        return f"list of {words}" if key.kind == "words" else words
    if key.section:
        places = {"section": "{}", "sections": "list of {}", "map of sections": "map of {}"}
        return places[key.kind].format(f"`{POLICY_PLACES[key.section]}`")
    if key.kind == "whole":
        return f"{key.least:,} to {key.most:,}" if key.most < policy_keys_module.WHOLE_MAX else f"{key.least:,} or more"
    names = {"texts": "list of texts", "globs": "list of globs", "topics": "list of globs", "hosts": "list of hosts",
             "patterns": "list of regular expressions", "texts in order": "list of texts", "flag": "true or false",
             "when": "CEL", "key": "text", "predicate": "text", "number": f"number up to {key.most}"}  # fmt: skip
    return names.get(key.kind, key.kind)


def _policy_default(key: policy_keys_module.DocumentKey) -> str:
    return "required" if key.is_required else f"`{key.default}`" if key.default else ""


def policy_conditions() -> str:
    """Every name that a condition of a policy may read."""
    rows = ["| name | fields |", "|---|---|"]
    rows += [f"| `{name}` | {', '.join(f'`{one}`' for one in fields)} |" for name, fields in policy_when.FIELDS.items()]
    return "\n".join(rows)


def policy_constraints() -> str:
    """Every constraint: its group, its enforcer, and how the constraints of two tiers meet."""
    words = {"least": "the smaller", "both": "in both lists", "both_globs": "matched by both lists",
             "either": "in either", "level": "the stricter"}  # fmt: skip
    rows = ["| constraint | group | enforced by | of two tiers |", "|---|---|---|---|"]
    for name, one in CONSTRAINT_FIELDS.items():
        rows.append(f"| `{name}` | {f'`{one.group}`' if one.group else ''} | {one.enforced} | {words[one.meet]} |")
    return "\n".join(rows)


def scanner_rules() -> str:
    """Every rule of the built-in scanners."""
    parts = []
    for name in FAMILIES:
        rows = [
            f"| `{rule.id}` | {rule.about} | {rule.severity} | {rule.confidence:g} |"
            for rule in sorted(scanner_family(name).every, key=lambda rule: rule.id)
        ]
        kind = scanner_family(name).rules[0].type
        head = ["| rule | finds | severity | confidence |", "|---|---|---|---|"]
        parts += [f"### {name}", f"The findings have the type `{kind}`.", "\n".join((*head, *rows))]
    return "\n\n".join(parts)


def conformance_counts() -> str:
    """How many requirements of each family have a test."""
    shown = tests_by_id()
    rows = ["| family | requirements | with a test |", "|---|---|---|"]
    for family in families():
        count = sum(key in shown for key in family.sentences)
        rows.append(f"| {family.prefix}, {family.name} | {len(family.sentences)} | {count} |")
    return "\n".join(rows)


def conformance() -> str:
    """Every requirement with the tests that show it."""
    shown = tests_by_id()
    parts = []
    for family in families():
        parts.append(f"## {family.name}")
        for title, sentences in family.sections.items():
            rows = ["| id | requirement | shown by |", "|---|---|---|"]
            for key, text in sentences.items():
                tests = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in shown.get(key, ()))
                rows.append(f"| {key} | {text} | {tests} |")
            parts += [f"### {family.prefix}: {title}", "\n".join(rows)]
    return "\n\n".join(parts)


PARTS: dict[str, Callable[[], str]] = {
    "api": api,
    "conformance": conformance,
    "conformance-counts": conformance_counts,
    "job-states": job_states,
    "step-states": step_states,
    "cli": cli,
    "errors": error_codes,
    "exit-codes": exit_codes,
    "metrics": metrics,
    "policy-conditions": policy_conditions,
    "policy-constraints": policy_constraints,
    "policy-keys": policy_keys,
    "policy-request-keys": policy_request_keys,
    "price-keys": price_keys,
    "provider-failures": provider_failures,
    "provider-keys": provider_keys,
    "scanner-rules": scanner_rules,
    "settings": settings_table,
    "webhook-keys": webhook_keys,
}

# Generated as a whole, by their paths below docs/.
FILES: dict[str, Callable[[], str]] = {"reference/openapi.json": openapi}
