"""Outputs, previews, log lines, progress messages and errors leave the store by one door (`store/outputs.py`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.sources import SRC, dotted, modules, sample
from windlass.store.outputs import STATEMENTS
from windlass.store.statements import sql

DOOR = "src/windlass/store/outputs.py"
PART = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
# The columns of steps, jobs and events that hold what a step made or said.
CONTENT = re.compile(r"\b(output|error|progress|payload|item|checkpoint)\b")
# All columns of a table that has some: of the table itself, or of a name that stands for it.
STAR = re.compile(r"\*\s+FROM windlass\.(?:jobs|steps|events)\b")
ALIAS = re.compile(r"\bwindlass\.(?:jobs|steps|events) (?:AS )?(\w+)")

# Statements that name such a column and show it to no reader.
WRITES = "writes it"
CLAIMS = "hands an attempt what it was given: the router judged its item when it made the fan-out"
OTHERS = "is a column of another table, in which no step's words are"
EXEMPT = {
    **dict.fromkeys(("draft_write", "draft_complete", "draft_finish", "draft_children"), WRITES),
    **dict.fromkeys(("note_step", "note_job", "job_submit", "job_submit_one", "approval_told"), WRITES),
    **dict.fromkeys(("retry_step", "retry_children", "retry_event"), WRITES),
    **dict.fromkeys(("step_claim", "step_claim_lane", "step_claim_one", "step_held", "step_ready"), CLAIMS),
    **dict.fromkeys(("audit_note", "audit_note_many", "audit_take_notes", "audit_append"), OTHERS),
    **dict.fromkeys(("webhook_get", "webhook_report", "overview_breakers", "why_slot", "provider_failed"), OTHERS),
    **dict.fromkeys(
        ("why_key_holders", "provider_holders", "provider_first"), "names the step, and shows no more of it"
    ),
    **dict.fromkeys(("draft_load", "draft_load_open"), "reads the code of a fault, for the decision on the job's end"),
    "undo_attempt_done": WRITES,
    "undo_taken_over": "reads from `job.kept` which effects were taken over: the engine's own words",
    "child_kin": "reads from `job.kept` which nodes begin afresh: the engine's own words",
    "policy_past_jobs": "reads the facts about the caller, which the first event keeps for the policy",
    **dict.fromkeys(("job_row", "verdict_questions"), "reads the facts about the caller from `job.submitted`"),
    "verdict_deny_new": WRITES,
    **dict.fromkeys(("kernel_reported", "kernel_answered", "kernel_list", "kernel_reason"), "the error of a kernel"),
    **dict.fromkeys(("kernel_announce", "kernel_bypassed"), OTHERS),
    "feed_torn_behind": "counts events and returns a transaction's number",
}


def statements() -> dict[str, str]:
    """Every statement by its name, without comments and quoted text."""
    files = sorted((SRC / "store" / "sql").glob("*.sql"))
    found = [name for path in files for name in PART.findall(path.read_text(encoding="utf-8"))]
    return {name: re.sub(r"--.*|'[^']*'", "", sql(name)) for name in found}


def is_content(body: str) -> bool:
    """Whether a statement names a column with content, or takes all columns of a table that has some."""
    starred = (f" {alias}.*" in body for alias in ALIAS.findall(body))
    return bool(CONTENT.search(body) or STAR.search(body) or any(starred))


def executed(tree: ast.AST) -> Iterator[str]:
    """Statements of the door that a module could execute by itself.

    A name that is not written at the call may be any text of the module.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and dotted(node.func) in ("sql", "bound")]
    told = {arg.value for call in calls for arg in call.args if isinstance(arg, ast.Constant)}
    if any(not isinstance(arg, ast.Constant) for call in calls for arg in call.args):
        told |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    yield from sorted(name for name in told if isinstance(name, str) and name in STATEMENTS)


NAMES = ("sql", "bound", "named", "arguments", "names", "ordered")


def renamed(tree: ast.AST) -> Iterator[str]:
    """Ways around `sql`: the table of statements itself, or `sql` under another name.

    `named` is no such way: it takes apart a text that it is given, such as the statements of an extension. `arguments`,
    `ordered` and `names` tell of parameters only.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "windlass.store.statements":
            yield from (f"line {node.lineno}: {a.name}" for a in node.names if a.name not in NAMES or a.asname)
        if isinstance(node, ast.ImportFrom) and node.module == "windlass.store":
            yield from (f"line {node.lineno}: {a.name}" for a in node.names if a.name == "statements")


def test_every_statement_that_returns_content_is_the_doors() -> None:
    named = {name for name, body in statements().items() if is_content(body)}
    assert named - STATEMENTS.keys() - EXEMPT.keys() == set(), "list it in STATEMENTS and execute it there"


def test_every_exemption_is_needed() -> None:
    plain = {name for name, body in statements().items() if not is_content(body)}
    assert EXEMPT.keys() & plain == set()
    assert STATEMENTS.keys() - statements().keys() == set()
    assert EXEMPT.keys() & STATEMENTS.keys() == set()


def test_no_other_module_executes_a_statement_of_the_door() -> None:
    offences = [f"{m.name}: {name}" for m in modules("src") if m.name != DOOR for name in executed(m.tree)]
    assert not offences, offences


def test_no_module_takes_statements_by_another_way() -> None:
    offences = [f"{m.name}: {offence}" for m in modules("src") for offence in renamed(m.tree)]
    assert not offences, offences


@pytest.mark.parametrize(
    "body",
    ["SELECT s.output FROM windlass.steps s", "SELECT * FROM windlass.events", "SELECT j.*, 1 FROM windlass.jobs j",
     "SELECT id, left(error ->> 'message', 9) AS told FROM windlass.jobs"],
)  # fmt: skip
def test_content_is_seen(body: str) -> None:
    assert is_content(body)
    assert not is_content("SELECT count(*), max(s.attempt * 2) FROM windlass.steps s")


@pytest.mark.parametrize(
    "code",
    ['rows = await connection.fetch(sql("read_steps"), job_id)', 'x = "read_job"\nrows = connection.fetch(sql(x))'],
)
def test_a_reader_beside_the_door_is_seen(code: str) -> None:
    assert list(executed(sample(code)))
    assert not list(executed(sample('rows = await fetch(connection, "read_steps", reader)\nsql("read_find")')))


@pytest.mark.parametrize(
    "code",
    ["from windlass.store.statements import _statements", "from windlass.store.statements import sql as q",
     "from windlass.store import statements"],
)  # fmt: skip
def test_a_way_around_is_seen(code: str) -> None:
    assert list(renamed(sample(code)))
