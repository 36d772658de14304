"""Every code block of the README and the docs works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.blocks import LANGUAGES, ROOT, Block, blocks, blocks_of, pages
from tests.docs.commands import command_lines, complaint
from tests.docs.page import Page
from windlass.app import settings
from windlass.app.service import serving
from windlass.app.windlass import Windlass
from windlass.core.expression import lint
from windlass.policy.reader import read_policy, read_question
from windlass.policy.testing import run_tests
from windlass.providers.registry import Registry
from windlass.recipe.app import load
from windlass.recipe.document import plan_from_document
from windlass.recipe.yaml_text import read_document
from windlass.store.database import Database

GENERATED = (ROOT / "docs/reference/cli.md",)


def _ids(found: list[Block]) -> list[str]:
    return [block.place for block in found]


def test_every_block_says_what_it_is() -> None:
    unknown = [block.place for page in pages() for block in blocks_of(page) if block.language not in LANGUAGES]
    assert not unknown, f"no language, or one that nothing checks: {unknown}"


def test_a_page_is_mostly_checked() -> None:
    """`text` is for what cannot be run, not a way around the checks."""
    hidden = [
        block.place
        for block in blocks("text", where=lambda block: block.page not in GENERATED)
        if any(word in block.text for word in ("import windlass", "@wl.", "windlass run", "windlass submit"))
    ]
    assert hidden == []


@pytest.mark.parametrize(
    "page", [page for page in pages() if any(b.language == "python" for b in blocks_of(page))], ids=lambda p: p.stem
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    shown = Page(page, tmp_path)
    shown.run()
    for recipe in shown.recipes():
        if recipe.name != "wrong":
            assert recipe.plan.nodes
    for block in blocks_of(page):
        if not block.is_recipe:
            continue
        if (same := shown.recipe(plan_from_document(block.text).recipe)) is not None:
            assert plan_from_document(block.text).hash == same.plan.hash, f"{block.place} is another plan"


@pytest.mark.parametrize("block", found := blocks("yaml", where=lambda b: b.is_providers), ids=_ids(found))
async def test_yaml_is_a_file_of_providers(block: Block) -> None:
    """Read as a process reads it, with each adapter's check of its options."""
    environ = dict.fromkeys(re.findall(r"_env: (\w+)", block.text), f"whsec_{'c2VjcmV0' * 5}")
    registry = Registry.read(block.text, environ)
    assert len(registry)
    await registry.close()


@pytest.mark.parametrize("block", found := blocks("yaml", where=lambda b: b.is_policy), ids=_ids(found))
def test_yaml_is_a_policy_whose_tests_pass(block: Block) -> None:
    assert not run_tests(read_policy(block.text)).failed


@pytest.mark.parametrize("block", found := blocks("yaml", where=lambda b: b.is_policy_request), ids=_ids(found))
def test_yaml_is_a_request_for_a_policy(block: Block) -> None:
    assert read_question(read_document(block.text)[0]).topic.startswith("job.")


@pytest.mark.parametrize("block", found := blocks("yaml", where=lambda b: b.is_recipe), ids=_ids(found))
def test_yaml_is_a_recipe(block: Block) -> None:
    assert plan_from_document(block.text).nodes


@pytest.mark.parametrize("block", found := blocks("json"), ids=_ids(found))
def test_json_is_json_and_a_recipe_if_it_looks_like_one(block: Block) -> None:
    body = json.loads(block.text)
    if isinstance(body, dict) and "steps" in body and "recipe" in body:
        assert plan_from_document(block.text).nodes


@pytest.mark.parametrize("block", found := blocks("toml"), ids=_ids(found))
def test_toml_is_a_settings_file(block: Block, tmp_path: Path) -> None:
    (tmp_path / settings.FILE_NAME).write_text(block.text)
    assert tomllib.loads(block.text).keys() <= settings.KEYS.keys()
    settings.load(environ={}, folder=tmp_path)


@pytest.mark.parametrize("block", found := blocks("bash"), ids=_ids(found))
def test_every_command_exists(block: Block) -> None:
    complaints = [why for words in command_lines(block.text) if (why := complaint(words))]
    assert not complaints, complaints


@pytest.mark.parametrize(
    "page", [page for page in pages() if any("def test_" in b.text for b in blocks_of(page))], ids=lambda p: p.stem
)
async def test_the_tests_that_the_docs_show_pass(page: Path, tmp_path: Path) -> None:
    shown = Page(page, tmp_path)
    shown.run()
    assert shown.tests()
    for test in shown.tests():
        await test()


async def test_the_sdk_as_it_is_shown(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Page(ROOT / "docs/guides/first-recipe.md", tmp_path)
    shown.run()
    (file,) = shown.write_files()
    monkeypatch.setenv("WINDLASS_DATABASE_URL", dsn)
    monkeypatch.setenv("WINDLASS_HOME", str(tmp_path / "home"))
    async with Windlass.connect(dsn) as windlass, serving(windlass, load(str(file))):
        greetings = await shown.module.greet_everyone()
    assert [greeting["text"] for greeting in greetings] == ["HELLO, ADA!", "HELLO, GRACE!"]


@pytest.mark.parametrize("block", found := blocks("bash", where=lambda block: "run" in block.marks), ids=_ids(found))
def test_a_command_that_is_shown_with_its_file_runs(
    block: Block, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Page(block.page, tmp_path).write_files()
    program = Path(sys.executable).with_name("windlass")
    environment = {**os.environ, "WINDLASS_DATABASE_URL": dsn, "WINDLASS_HOME": str(tmp_path / "home")}
    for words in command_lines(block.text):
        done = subprocess.run(
            [program, *words[1:]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        assert done.stdout.strip(), words


@pytest.mark.parametrize("block", found := blocks("sql"), ids=_ids(found))
async def test_sql_can_be_planned(block: Block, db: Database) -> None:
    async with db.connection() as connection:
        statements = list(filter(str.strip, block.text.split(";")))
        assert statements, "an empty block"
        for statement in statements:
            assert await connection.fetch(f"EXPLAIN {statement}")


def test_expressions_in_prose_parse() -> None:
    """Inline `${…}` of the expressions page."""
    text = (ROOT / "docs/reference/expressions.md").read_text(encoding="utf-8")
    found = re.findall(r"`\$\{([^}…`\n]+)\}`", text)
    assert found, "the page has no expressions, or this test no longer finds them"
    assert all(lint(one).text for one in found)


def test_a_wrong_command_is_seen() -> None:
    assert complaint(["windlass", "jobs", "--no-such-flag"])
    assert complaint(["windlass", "no-such-command"])
    assert complaint(["make", "coffee"])
    assert complaint(["rm", "-rf", "/"])


@pytest.mark.parametrize(
    "line",
    [
        "curl -H 'X-API-Key: k' http://127.0.0.1:8420/no/such/path",
        "curl http://127.0.0.1:8420/jobs",
        "curl -H 'X-API-Key: k' 'http://127.0.0.1:8420/jobs?colour=red'",
        "curl -H 'X-API-Key: k' -H 'Content-Type: application/json' -d '{\"recipes\": 1}' http://127.0.0.1:8420/jobs",
        "curl -H 'X-API-Key: k' -d '{\"recipe\": \"hello\"}' http://127.0.0.1:8420/jobs",
        "curl -X DELETE -H 'X-API-Key: k' http://127.0.0.1:8420/jobs",
    ],
)
def test_a_wrong_request_is_seen(line: str) -> None:
    assert [complaint(words) for words in command_lines(line)] != [None]


def test_a_right_request_is_let_through() -> None:
    head = 'curl -s -H "X-API-Key: $KEY" '
    for line in (
        '--json \'{"recipe": "hello"}\' http://127.0.0.1:8420/jobs',
        "'http://127.0.0.1:8420/jobs?status=FAILED&limit=10'",
        "-X POST http://127.0.0.1:8420/jobs/$JOB/cancel",
        "$SERVER/api/v1/jobs/$JOB",
    ):
        assert [complaint(words) for words in command_lines(head + line)] == [None], line
