"""`windlass logs`: what a job's steps logged, from the database and from a server alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import Cli, line_with
from tests.client.server import SECRET
from windlass.testing.postgres import fresh_database

pytestmark = pytest.mark.slow
APP = str(Path(__file__).with_name("chatter.py"))


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cli, Cli]]:
    local = Cli(tmp_path_factory.mktemp("local"), asyncio.run(fresh_database()))
    local.environ["WINDLASS_SECRET"] = SECRET
    worker = local.spawn("worker", APP)
    line_with(worker, "Ctrl-C stops")
    key = local("keys", "create", "--caller", "local", "--scope", "admin").ok().out.strip()
    api = local.spawn("serve", "api", "--listen", "127.0.0.1:0")
    remote = Cli(tmp_path_factory.mktemp("remote"))
    remote.environ |= {"WINDLASS_SERVER": line_with(api, "http://").strip(), "WINDLASS_API_KEY": key}
    yield local, remote
    for process in (api, worker):
        process.terminate()
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, out
        # What the level of the log leaves out is kept with the step, and written nowhere else.
        assert "there are" not in out


def test_lines_are_shown_followed_filtered_and_told_as_json(desks: tuple[Cli, Cli]) -> None:
    local, remote = desks
    job = local("submit", "chatter").ok().out.strip()
    followed = remote("logs", job, "--follow").ok().out
    for cli in desks:
        said = cli("logs", job).ok().out
        assert sorted(said.splitlines()) == sorted(followed.splitlines())
        rows = [line.split("\t") for line in said.splitlines()]
        assert rows[0][1:] == ["INFO", "list_words", "there are 2 words"]
        assert sorted(row[2:] for row in rows if row[1] == "WARNING") == [
            ["speak[0]", "I say one"],
            ["speak[1]", "I say two"],
        ]
        assert rows.count(["", "", "", "and mean it [31m"]) == 2
        assert "\x1b" not in said

        told = [msgspec.json.decode(line) for line in cli("logs", job, "speak", "--json").ok().out.splitlines()]
        assert sorted(one["step"] for one in told) == ["speak[0]", "speak[1]"]
        assert {one["level"] for one in told} == {"warning"}
        [one] = [msgspec.json.decode(line) for line in cli("logs", job, "speak[1]", "--json").ok().out.splitlines()]
        assert (one["text"], one["attempt"]) == ("I say two\nand mean it\x1b[31m", 1)
        assert cli("logs", job, "end").ok().out == ""


def test_a_step_that_is_not_there_is_named(desks: tuple[Cli, Cli]) -> None:
    local, _ = desks
    job = local("submit", "chatter").ok().out.strip()
    said = local("logs", job, "speek")
    assert said.code != 0
    assert "Its steps are end, list_words, speak" in said.err
