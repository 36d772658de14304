"""SQL is text in files: named, used, and never put together from values."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.tidy.sources import SRC, modules, sample
from windlass.core.bell import KINDS

NAME = re.compile(r"^-- name: (\S+)", re.MULTILINE)
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
        head = path.read_text(encoding="utf-8").split("-- name: ", 1)[0]
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


CHANNEL = re.compile(r"['\"]windlass_(work|route|timer|done|cancel|grant|answer|poll|webhook|keys|sessions)['\"]")


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
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((SRC / "store" / "sql").glob("*.sql")))
    parts = NAME.split(text)
    ringing = {name: body for name, body in zip(parts[1::2], parts[2::2], strict=True) if "pg_notify" in body}
    assert set(ringing) == {"job_submit_one", "draft_finish"}
    assert "set_config('synchronous_commit', 'off', true)" in ringing["job_submit_one"]
    assert "pg_try_advisory_xact_lock" in ringing["draft_finish"]
