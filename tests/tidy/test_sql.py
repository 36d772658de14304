"""SQL is text in files: named, used, and never put together from values."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.tidy.sources import SRC, dotted, modules, sample
from windlass.core.bell import KINDS
from windlass.store.statements import names, sql

NAME = re.compile(r"^-- name: (\S+)", re.MULTILINE)
PART = re.compile(r"^-- (?:name|fragment): (\w+).*$", re.MULTILINE)
INCLUDE = re.compile(r"^\s*-- include: (\w+)", re.MULTILINE)
VERB = re.compile(
    r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|WITH|TRUNCATE|COPY|MERGE|LOCK|GRANT)\s", re.DOTALL
)
# Names of databases and schemas cannot be parameters; they are made by us, never taken from a caller.
IDENTIFIERS_ONLY = re.compile(r"^\s*(CREATE|DROP|ALTER) (DATABASE|SCHEMA|ROLE)\s")
DATABASE_ROOMS = ("store", "bus", "testing", "app")


def statements() -> dict[str, str]:
    """Every statement of store/sql, by name, with the file it is in."""
    found: dict[str, str] = {}
    for path in sorted((SRC / "store" / "sql").glob("*.sql")):
        for name in NAME.findall(path.read_text(encoding="utf-8")):
            assert name not in found, f"{name} is in {found[name]} and in {path.name}"
            found[name] = path.name
    assert found, "no SQL statements were found"
    return found


def composed_sql(tree: ast.AST) -> Iterator[str]:
    """SQL text that is built from pieces: an f-string, `%`, `+` or `.format`."""
    for node in ast.walk(tree):
        first: ast.AST | None = None
        match node:
            case ast.JoinedStr(values=[ast.Constant() as head, *_]):
                first = head
            case ast.BinOp(left=ast.Constant() as head, op=ast.Mod() | ast.Add()):
                first = head
            case ast.Call(func=ast.Attribute(value=ast.Constant() as head, attr="format" | "replace")):
                first = head
        text = first.value if isinstance(first, ast.Constant) else None
        if isinstance(text, str) and VERB.match(text) and not IDENTIFIERS_ONLY.match(text):
            yield f"line {node.lineno}: {text.strip()[:60]}"  # type: ignore[attr-defined]


def literal_sql(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VERB.match(node.value):
            yield f"line {node.lineno}: {node.value.strip()[:60]}"


def test_every_statement_has_a_name() -> None:
    for path in sorted((SRC / "store" / "sql").glob("*.sql")):
        head = PART.split(path.read_text(encoding="utf-8"), maxsplit=1)[0]
        code = [line for line in head.splitlines() if line.strip() and not line.startswith("--")]
        assert not code, f"{path.name}: SQL before the first `-- name:`: {code[0]}"


def test_every_statement_is_used() -> None:
    words = Counter(re.findall(r"\w+", "\n".join(module.text for module in modules("src"))))
    assert [f"{file}: {name}" for name, file in statements().items() if not words[name]] == []


def test_no_sql_is_put_together_from_pieces() -> None:
    # A test engine empties the tables of a throwaway database, by names that it reads from the catalogue.
    shipped = [m for m in modules("src") if m.room != "testing"]
    offences = [f"{m.name}: {offence}" for m in shipped for offence in composed_sql(m.tree)]
    assert not offences, offences


def test_sql_text_stays_below_the_engine() -> None:
    outside = [m for m in modules("src") if m.room not in DATABASE_ROOMS]
    offences = [f"{m.name}: {offence}" for m in outside for offence in literal_sql(m.tree)]
    assert not offences, offences


def test_no_statement_reads_the_servers_own_clock() -> None:
    """windlass.clock() is the only clock: a test or a simulation can set it."""
    clock = re.compile(
        r"\b(now\(\)|clock_timestamp\(\)|current_timestamp|transaction_timestamp\(\)|statement_timestamp)"
    )
    offences = []
    for path in sorted((SRC / "store" / "sql").glob("*.sql")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if clock.search(line.split("--", 1)[0].lower()):
                offences.append(f"{path.name}:{number}: {line.strip()}")
    assert not offences, offences


@pytest.mark.parametrize(
    "code",
    [
        'q = f"SELECT * FROM jobs WHERE id = {job}"',
        "q = 'DELETE FROM jobs WHERE id = %s' % job",
        "q = 'UPDATE jobs SET x = ' + x",
        "q = 'SELECT {}'.format(x)",
    ],
)
def test_composed_sql_is_seen(code: str) -> None:
    assert list(composed_sql(sample(code)))


CHANNEL = re.compile(
    r"['\"]windlass_(work|route|timer|done|cancel|grant|answer|undo|poll|webhook|keys|sessions|policy)['\"]"
)


def test_channel_names_appear_in_one_file_only() -> None:
    """A bell that is rung or heard by a name of its own would not be one of the closed set."""
    named = {kind.channel for kind in KINDS}
    assert all(CHANNEL.fullmatch(f"'{name}'") for name in named), "the pattern does not know all channels"
    paths = [*SRC.rglob("*.py"), *(SRC / "store" / "sql").glob("*.sql")]
    naming = {path.relative_to(SRC).as_posix() for path in paths if CHANNEL.search(path.read_text(encoding="utf-8"))}
    assert naming == {"core/bell.py"}


def test_only_commits_that_cannot_hold_up_another_carry_bells() -> None:
    """NOTIFY takes a lock of the whole server until its commit is on the disk.

    One statement commits ahead of the disk; the other rings only while it holds a lock that no other commit has.
    """
    ringing = {name: text for name in statements() if "pg_notify" in (text := sql(name))}
    assert set(ringing) == {"job_submit_one", "draft_finish"}
    assert "set_config('synchronous_commit', 'off', true)" in ringing["job_submit_one"]
    assert "pg_try_advisory_xact_lock" in ringing["draft_finish"]


# So many lines in a row may be alike in two statements; more are a fragment.
ALIKE_MAX = 4


def repeated(parts: dict[str, str]) -> list[tuple[str, ...]]:
    """The statements and fragments that have more lines in a row alike than they may."""
    runs: dict[tuple[str, ...], set[str]] = {}
    for name, body in parts.items():
        lines = [line for line in (" ".join(line.split("--")[0].split()) for line in body.splitlines()) if line]
        for start in range(len(lines) - ALIKE_MAX):
            runs.setdefault(tuple(lines[start : start + ALIKE_MAX + 1]), set()).add(name)
    return sorted({tuple(sorted(found)) for found in runs.values() if len(found) > 1})


def parts() -> dict[str, str]:
    """Every statement and fragment as it is written."""
    found: dict[str, str] = {}
    for path in sorted((SRC / "store" / "sql").glob("*.sql")):
        pieces = PART.split(path.read_text(encoding="utf-8"))
        found |= dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return found


def test_no_statement_repeats_another() -> None:
    assert repeated(parts()) == [], "put the lines into a fragment, and include it"


def test_a_repetition_is_seen() -> None:
    lines = [f"AND column_{number} = 1" for number in range(ALIKE_MAX + 1)]
    one, other = "\n".join(["SELECT 1", *lines]), "\n".join(["SELECT 2 -- why", *("   " + line for line in lines)])
    assert repeated({"one": one, "other": other}) == [("one", "other")]
    assert repeated({"one": one, "other": "\n".join(lines[1:])}) == []


def test_every_fragment_is_included() -> None:
    texts = parts()
    fragments = set(texts) - set(statements())
    assert fragments, "no fragments were found"
    assert fragments == {name for text in texts.values() for name in INCLUDE.findall(text)}


# Statements with more parameters than this have them by name.
NUMBERED_MAX = 8
# These go by number still. The list may only shrink.
STILL_NUMBERED = {"cost_put", "slot_write"}


def test_parameters_that_are_many_have_names() -> None:
    counts = {name: max(map(int, re.findall(r"\$(\d+)", sql(name))), default=0) for name in statements()}
    numbered = {name for name, count in counts.items() if count > NUMBERED_MAX and not names(name)}
    assert numbered == STILL_NUMBERED


def misnamed(tree: ast.AST) -> Iterator[str]:
    """Calls of `bound` whose names are not the statement's parameters."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and dotted(node.func) == "bound" and isinstance(node.args[0], ast.Constant)):
            continue
        wanted = set(names(str(node.args[0].value)))
        given = {keyword.arg for keyword in node.keywords}
        # What a mapping holds is known only when the call is made.
        is_whole = None not in given
        wrong = given - {None} - wanted or (wanted - given if is_whole else set())
        if wrong:
            yield f"line {node.lineno}: {node.args[0].value}: {', '.join(sorted(map(str, wrong)))}"


def test_statements_are_given_the_parameters_that_they_have() -> None:
    offences = [f"{m.name}: {offence}" for m in modules("src") for offence in misnamed(m.tree)]
    assert not offences, offences


@pytest.mark.parametrize(
    ("code", "is_wrong"),
    [
        ('bound("key_create", id=1)', True),
        ('bound("key_create", **values)', False),
        ('bound("key_create", **values, secret=1)', True),
    ],
)
def test_a_parameter_that_is_missing_or_unknown_is_seen(code: str, is_wrong: bool) -> None:
    assert bool(list(misnamed(sample(code)))) is is_wrong


# One noun a file: a statement's name begins with it. These files have more, and the lists may only shrink.
NOUNS = {
    "audit.sql": {"audit", "minutes"},
    "budget.sql": {"budget", "cost"},
    "dead_letter.sql": {"dead"},
    "draft.sql": {"draft", "inbox"},
    "external.sql": {"event", "work"},
    "feed.sql": {"cursor", "feed"},
    "job.sql": {"flush", "job", "prune"},
    "listing.sql": {"list"},
    "recipe.sql": {"plan", "recent", "recipe"},
    "retry.sql": {"redriven", "retry"},
    "signal.sql": {"signal", "waits"},
    "slot.sql": {"grant", "provider", "slot", "why"},
}


def test_a_file_has_statements_of_its_noun() -> None:
    found: dict[str, set[str]] = {}
    for name, file in statements().items():
        found.setdefault(file, set()).add(name.split("_")[0])
    assert found == {file: NOUNS.get(file, {file.removesuffix(".sql")}) for file in found}


# Beside the drafts of settled decisions: see "The flow" in ARCHITECTURE.md, which has the reason for each.
WRITERS = {
    "claim": {"step_claim", "step_claim_lane", "step_claim_one"},
    "submit": {"job_submit", "job_submit_one", "verdict_deny_new"},
    "re-run": {"retry_job", "retry_step", "retry_children"},
}
WRITES = re.compile(
    r"INSERT INTO windlass\.(?:jobs|steps)\b"
    r"|UPDATE windlass\.(?:jobs|steps)\b[^;]*?\bSET\b(?:(?!\bFROM\b|\bWHERE\b).)*?(?<![\w.])state\s*=",
    re.DOTALL,
)


def test_states_are_written_by_drafts_and_by_the_writers_that_are_named() -> None:
    """A statement of a draft, the sweep among them, writes what the core decided."""
    texts = {name: re.sub(r"--.*", "", sql(name)) for name in statements()}
    writing = {name for name, text in texts.items() if WRITES.search(text)}
    assert {name for name in writing if not name.startswith("draft_")} == set().union(*WRITERS.values())
    assert "draft_sweep" in writing
