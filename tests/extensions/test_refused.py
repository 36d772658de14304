"""An extension that cannot be used stops the process, and the message names its package and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.client.server import SECRET
from tests.extensions.site import with_site, write

ROUTES = """
from fastapi import APIRouter
from windlass.extension.http import guard, router as guarded
bare, silent, good = APIRouter(), guarded("x"), guarded("x")
@bare.get("/things")
async def things(): ...
@good.get("/{path}", operation_id="x.things")
@guard()
async def things(path: str): ...
"""
# Made in a module of its own: it cannot even be imported.
SILENT = """
from windlass.extension.http import router as guarded
router = guarded("x")
@router.get("/things")
async def things(): ...
"""
TAKEN = """
from windlass.extension.http import guard, router as guarded
router = guarded("x")
@router.get("/jobs/{no}", operation_id="x.jobs")
@guard()
async def jobs(no: str): ...
"""
CASES = {
    "import": ("1 / 0", {}, ["extensions"], "bad_pkg:extension cannot be imported: ZeroDivisionError"),
    "kind": ("'text'", {}, ["extensions"], "is a str, and must be a windlass.Extension"),
    "name": ("Extension(name='other', package='bad_pkg')", {}, ["extensions"], "entry point is 'bad'"),
    "setting": (
        "Extension(name='bad', package='bad_pkg', settings={'a-b': Setting(int, '')})",
        {}, ["extensions"], "the setting 'a-b' must have lower-case letters",
    ),
    "recipes": (
        "Extension(name='bad', package='bad_pkg', recipes=('bad_pkg.none',))",
        {}, ["up", "--no-demo", "--listen", "127.0.0.1:0"], "there is no module 'bad_pkg.none'",
    ),
    "folder": (
        "Extension(name='bad', package='bad_pkg', migrations='none')",
        {}, ["db", "migrate"], "its folder 'none' cannot be read",
    ),
    "no guard": (
        "Extension(name='bad', package='bad_pkg', routers=('bad_pkg.routes:bare',))",
        {"routes": ROUTES}, ["serve", "api", "--listen", "127.0.0.1:0"], "is not guarded",
    ),
    "no guard said": (
        "Extension(name='bad', package='bad_pkg', routers=('bad_pkg.routes:router',))",
        {"routes": SILENT}, ["serve", "api", "--listen", "127.0.0.1:0"], "give it a @guard",
    ),
    "taken path": (
        "Extension(name='bad', package='bad_pkg', routers=('bad_pkg.routes:router',))",
        {"routes": TAKEN}, ["serve", "api", "--listen", "127.0.0.1:0"], "GET /jobs/{} is taken by Windlass",
    ),
    "page": (
        "Extension(name='bad', package='bad_pkg', pages=(Page('P', module='p.js'),), console='things')",
        {}, ["serve", "api", "--listen", "127.0.0.1:0"], "its folder 'things'",
    ),
    "commands": (
        "Extension(name='bad', package='bad_pkg', commands='bad_pkg:none')",
        {}, ["bad", "anything"], "bad_pkg:none cannot be loaded: AttributeError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_told_with_the_package(case: str, tmp_path: Path, fresh_dsn: str) -> None:
    declaration, files, words, message = CASES[case]
    site = tmp_path / "site"
    write(site, "bad", declaration, **files)
    cli = with_site(Cli(tmp_path, fresh_dsn), site)
    cli.environ["WINDLASS_SECRET"] = SECRET
    said = cli(*words)
    assert said.code == 2 and message in said.err, said
    assert "Traceback" not in said.err
    assert "the extension bad of bad-pkg 1.0" in said.err and "`extensions`" in said.err, said.err
    # It is one package that is at fault: all else works without it.
    cli.environ["WINDLASS_EXTENSIONS"] = "none"
    cli("doctor").ok()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("Extension(name='one', package='two_pkg')", "the name one is taken by the extension one of"),
        (
            "Extension(name='two', package='two_pkg', metrics={'things_total': Metric('counter', '')})",
            "the metric things_total is taken by the extension one of one-pkg",
        ),
    ],
)
def test_two_extensions_that_claim_one_name_are_refused(tmp_path: Path, second: str, message: str) -> None:
    site = tmp_path / "site"
    write(site, "one", "Extension(name='one', package='one_pkg', metrics={'things_total': Metric('counter', '')})")
    write(site, "two", second, point="one" if "'one'" in second else "two")
    said = with_site(Cli(tmp_path), site)("extensions")
    assert said.code == 2 and message in said.err, said.err


def test_an_extension_cannot_be_called_like_a_setting(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, "limit", "Extension(name='limit', package='limit_pkg', settings={'floor': Setting(int, '')})")
    said = with_site(Cli(tmp_path), site)("extensions")
    assert said.code == 2 and "'limit_floor' is a setting of Windlass" in said.err


def test_a_migration_that_reaches_into_windlass_is_refused(tmp_path: Path, fresh_dsn: str) -> None:
    site = tmp_path / "site"
    write(site, "bad", "Extension(name='bad', package='bad_pkg', migrations='sql')")
    (site / "bad_pkg" / "sql").mkdir()
    (site / "bad_pkg" / "sql" / "0001_jobs.sql").write_text("ALTER TABLE windlass.jobs ADD COLUMN mine int")
    said = with_site(Cli(tmp_path, fresh_dsn), site)("db", "migrate")
    assert said.code == 2 and "0001_jobs.sql names a table of Windlass" in said.err
