"""The policy commands about files: validate, test, explain, compare, and print an example.

`explain` and `diff` can use the policy of the installation in place of a file.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands import policy_published
from windlass.cli.commands.policy_published import Version
from windlass.cli.exits import Exit

PANEL = "Set up"

File = Annotated[str, typer.Argument(metavar="FILE", help="A policy; - reads standard input.")]
Others = Annotated[
    list[str] | None, typer.Option("--with", metavar="FILE", help="Another policy that is in force too; repeatable.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Policies: check, test, publish and explain them.", no_args_is_help=True)
    command(group, "validate", panel=PANEL, has_json=True, is_local=True)(validate)
    command(group, "test", panel=PANEL, has_json=True, is_local=True)(test)
    command(group, "explain", panel=PANEL, has_json=True)(explain)
    command(group, "diff", panel=PANEL, has_json=True)(diff)
    command(group, "example", panel=PANEL, is_local=True)(example)
    policy_published.add_to(group, PANEL)
    app.add_typer(group, name="policy", rich_help_panel=PANEL)


def validate(at: Ambient, file: File) -> None:
    """Check a policy without its tests, and print its hash. Exits with 2 at the first mistake."""
    from windlass.documents.policy import policy_values

    told = policy_values(_read(file))
    if at.as_json:
        at.screen.document(told)
        return
    counts = (("rules", "rule"), ("input_rules", "input rule"), ("output_rules", "output rule"), ("tests", "test"))
    told_counts = ", ".join(f"{told[key]} {name}{'' if told[key] == 1 else 's'}" for key, name in counts)
    default = f"default {told['default_decision'] or 'of the other tiers'}"
    at.screen.line(f"{file} is a policy of tier {told['tier']}: {told_counts}; {default}")
    at.screen.line(f"hash {told['hash']}")


def test(
    at: Ambient,
    file: File,
    mutate: Annotated[bool, typer.Option("--mutate", help="Change each rule and expect a test to fail.")] = False,
    others: Others = None,
    recipes: Annotated[
        list[str] | None, typer.Option(metavar="APP", help="module, file.py, file.yaml: topics are of its recipes.")
    ] = None,
) -> Exit:
    """Run a policy's tests, and check that each rule can be reached and is tested. Exits with 2 if one fails."""
    from windlass.documents.policy import report_values
    from windlass.policy.testing import mutate as mutants_of
    from windlass.policy.testing import run_tests

    document = _read(file)
    beside = [_read(other) for other in others or ()]
    report = run_tests(document, others=beside, topics=_topics(recipes))
    mutants = mutants_of(document, others=beside) if mutate else None
    told = report_values(report, mutants)
    if at.as_json:
        at.screen.document(told)
    else:
        _show_report(at, file, told)
    return Exit.DONE if told["is_good"] else Exit.USAGE


async def explain(
    at: Ambient,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="A policy. Without it, the installation's policy is asked.")
    ],
    request: Annotated[
        str | None, typer.Argument(metavar="REQUEST.json", help="The request; - reads standard input.")
    ] = None,
    others: Others = None,
    version: Version = None,
) -> None:
    """Show the verdict about a request, and for each rule its first condition that failed."""
    from windlass.core.errors import BadSetting
    from windlass.documents.policy import explanation_values
    from windlass.policy.explain import explain as explained
    from windlass.policy.reader import read_question
    from windlass.policy.rules import compile_policy

    if request is None:
        if others:
            raise BadSetting("--with goes with a FILE", remedy="Publish the other policy, or name a FILE")
        told = await _explained_there(at, request_of(file), version)
    else:
        if version is not None:
            raise BadSetting("--version goes without a FILE", remedy="Leave out the FILE or --version")
        policy = compile_policy([_read(file), *(_read(other) for other in others or ())])
        told = explanation_values(explained(policy, read_question(request_of(request))))
    if at.as_json:
        at.screen.document(told)
        return
    for document in told["documents"]:
        if document["mismatch"] is not None:
            at.screen.note(f"tier {document['tier']} does not apply: its {document['mismatch']} is another")
    columns = ("tier", "rule", "what came of it", "condition", "detail")
    rows = [
        (document["tier"], one["rule"], one["fate"], one["condition"], one["detail"])
        for document in told["documents"]
        for one in document["rules"]
    ]
    at.screen.table(columns, rows)
    show_would(at, told)
    show_verdict(at, told)


async def _explained_there(at: Ambient, request: Any, version: int | None) -> dict[str, Any]:
    from windlass.cli.session import client

    async with client(at) as ask:
        return await ask.explain_policy(request, version)


async def diff(
    at: Ambient,
    before: Annotated[
        str,
        typer.Argument(metavar="[BEFORE]", help="A policy. Without it, the document in force with the name of AFTER."),
    ],
    after: Annotated[str | None, typer.Argument(metavar="AFTER", help="Another one.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the document in force. Default: the file's.")
    ] = None,
) -> None:
    """Compare two policies: their rules, and their verdicts about the requests of both policies' tests."""
    from windlass.documents.policy import diff_values
    from windlass.policy.diff import diff_policies

    if after is None:
        document = name or policy_published.document_name(before)
        told = diff_values(diff_policies(await _in_force(at, document), _read(before)))
    else:
        told = diff_values(diff_policies(_read(before), _read(after)))
    if at.as_json:
        at.screen.document(told)
        return
    if told["is_equal"]:
        at.screen.note("both mean the same")
        return
    changes = [(one["kind"], one["place"], one["detail"]) for one in told["changes"]]
    at.screen.table(("change", "place", "detail"), changes)
    for one in told["verdicts"]:
        mark = "looser" if one["is_looser"] else "stricter"
        at.screen.line(f"{mark}: {one['name'] or one['topic']}: {one['before']} → {one['after']}")


async def _in_force(at: Ambient, name: str) -> Any:
    """Return the document in force that has this name."""
    from windlass.cli.session import client
    from windlass.core.errors import NotFound
    from windlass.policy.reader import read_policy

    async with client(at) as ask:
        no = (await ask.policy())["version"]
        texts = {one.name: one.text for one in (await ask.policy_version(no)).texts} if no else {}
    if name not in texts:
        known = f"version {no} has {', '.join(texts)}" if texts else "no policy was published"
        raise NotFound(f"no document {name[:100]!r} is in force: {known}", remedy="Name it with --name")
    return read_policy(texts[name])


def example(
    at: Ambient, name: Annotated[str, typer.Argument(metavar="NAME", help="starter or strict.")] = "strict"
) -> None:
    """Print a policy that comes with Windlass, with comments: `windlass policy example strict > policy.yaml`."""
    from windlass.policy.shipped import shipped_policy

    at.screen.line(shipped_policy(name).rstrip())


def _show_report(at: Ambient, file: str, told: dict[str, Any]) -> None:
    for one in told["failed"]:
        at.screen.line(f"FAIL{_on(one)} {one['name']}: expected {one['expected']}, found {one['found']}")
    for one in told["problems"]:
        at.screen.line(f"{one['kind']}{_on(one)} {one['message']}")
    mutants = told["mutants"]
    for one in [] if mutants is None else mutants["unnoticed"]:
        at.screen.line(f"unnoticed{_on(one)} no test fails if {one['rule']} {one['change']}")
    tried = (
        ""
        if mutants is None
        else f", {mutants['tried'] - len(mutants['unnoticed'])} of {mutants['tried']} changes noticed"
    )
    problems = f", {len(told['problems'])} problems" if told["problems"] else ""
    at.screen.line(f"{file}: {told['passed']} tests passed, {len(told['failed'])} failed{problems}{tried}")
    if mutants is not None and mutants["unnoticed"]:
        at.screen.note("add a test for each, or `rule: NAME` to what a test expects")


def show_would(at: Ambient, told: dict[str, Any]) -> None:
    """Print the verdicts of shadow rules."""
    for one in told["would"]:
        at.screen.line(f"would be {one['decision']} by {one['rule_id']}: {one['reason']}")


def show_verdict(at: Ambient, verdict: dict[str, Any]) -> None:
    """Print a verdict."""
    at.screen.line(f"verdict    {verdict['decision']}")
    at.screen.line(f"rule       {verdict['rule_id']}")
    at.screen.line(f"reason     {verdict['reason']}")
    for name, enforcer in verdict.get("enforced", {}).items():
        at.screen.line(f"constraint {name}, enforced by the {enforcer}")


def _on(one: dict[str, Any]) -> str:
    return "" if one["line"] is None else f" (line {one['line']})"


def _topics(apps: list[str] | None) -> frozenset[str] | None:
    """Return the topics of the recipes of these apps, or None if none is named."""
    from windlass.policy.question import topic_of
    from windlass.recipe.app import load

    if not apps:
        return None
    found = set()
    for recipe in load(*apps).recipes.values():
        found.add(topic_of(recipe.name))
        found |= {topic_of(recipe.name, node.name) for node in recipe.plan.nodes}
    return frozenset(found)


def request_of(name: str) -> Any:
    """Return the request in a file. Raises BadPolicy unless it is one."""
    from windlass.core.errors import BadPolicy, BadRecipe, TooLarge
    from windlass.policy.reader import read_question
    from windlass.recipe.yaml_text import read_document

    try:
        value, _ = read_document(_bytes(name), has_aliases=False)
    except (BadRecipe, TooLarge) as error:
        raise BadPolicy(f"{name}: {error.message}", remedy=error.remedy) from None
    read_question(value)
    return value


def text_of(name: str) -> str:
    """Return the text of a policy that can be read. Raises BadPolicy with the file's name."""
    _read(name, found := _bytes(name))
    return found.decode()


def _read(name: str, text: bytes | None = None) -> Any:
    from windlass.core.errors import BadPolicy
    from windlass.policy.reader import read_policy

    try:
        return read_policy(_bytes(name) if text is None else text)
    except BadPolicy as error:
        error.message = f"{name}: {error.message}"
        raise


def _bytes(name: str) -> bytes:
    import sys
    from pathlib import Path

    from windlass.core.errors import BadSetting
    from windlass.policy.reader import POLICY_BYTES_MAX

    try:
        if name == "-":
            return sys.stdin.buffer.read(POLICY_BYTES_MAX + 1)
        with Path(name).expanduser().open("rb") as file:
            # One byte more than allowed, so that the reader refuses it without reading the rest.
            return file.read(POLICY_BYTES_MAX + 1)
    except OSError as error:
        raise BadSetting(f"{name} cannot be read: {error.strerror or error}", remedy="Check the path") from None
