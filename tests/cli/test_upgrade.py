"""Two releases on one database: each is a copy of the package, and the newer one has a migration more."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import windlass
from tests.cli.conftest import Cli, line_with
from tests.client.server import SECRET
from windlass.testing.postgres import fresh_database

pytestmark = pytest.mark.slow

PACKAGE = Path(windlass.__file__).parent
ADDS = "CREATE TABLE windlass.lazy (a int); ALTER TABLE windlass.jobs ADD COLUMN later text;"
FORBIDS = "UPDATE windlass.installation SET oldest_schema = 9001, oldest_release = '9.1.0';"
APP = """
import windlass as wl

@wl.step
def double(n: int) -> int:
    return n * 2

@wl.recipe
def shape(n: int):
    return {}
"""


class Release:
    """A release: its command line, and the processes that were started with it."""

    def __init__(self, folder: Path, dsn: str, migrations: dict[str, str], app: str) -> None:
        shutil.copytree(PACKAGE, folder / "windlass", ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in migrations.items():
            (folder / "windlass/store/migrations" / f"{name}.sql").write_text(text, encoding="utf-8")
        (folder / "shapes.py").write_text(app, encoding="utf-8")
        self.cli = Cli(folder, dsn)
        self.cli.environ |= {"PYTHONPATH": str(folder), "WINDLASS_SECRET": SECRET}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, until: str = "Ctrl-C stops") -> tuple[subprocess.Popen[str], str]:
        process = self.cli.spawn(*words)
        self._started.append(process)
        return process, line_with(process, until).strip()

    def worker(self) -> subprocess.Popen[str]:
        return self.start("worker", "shapes.py")[0]

    def api(self) -> str:
        return self.start("serve", "api", "--listen", "127.0.0.1:0", until="http://")[1]

    def doubled(self, *, server: str | None = None) -> int:
        """The result of a job that is submitted by the recipe's name."""
        where = ["--server", server] if server else []
        found = self.cli.bare("submit", "shape", "--input", "n=1", "--wait", *where).ok().json()
        assert isinstance(found, int)
        return found

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                _stop(process)
            process.communicate()


@pytest.fixture
def dsn() -> str:
    return asyncio.run(fresh_database())


@pytest.fixture
def old(tmp_path: Path, dsn: str) -> Iterator[Release]:
    release = Release(tmp_path / "old", dsn, {}, APP.format("double(n)"))
    yield release
    release.close()


@pytest.fixture
def new(tmp_path: Path, dsn: str) -> Iterator[Release]:
    release = Release(tmp_path / "new", dsn, {"9000_adds": ADDS}, APP.format("double(double(n))"))
    yield release
    release.close()


def test_old_and_new_processes_work_side_by_side_after_the_migration(old: Release, new: Release) -> None:
    key = old.cli("keys", "create", "--caller", "local", "--scope", "admin").ok().out.strip()
    for release in (old, new):
        release.cli.environ["WINDLASS_API_KEY"] = key
    old_worker, old_url = old.worker(), old.api()
    assert old.doubled() == 2

    assert new.cli.bare("db", "migrate").ok().out == "applied 9000_adds\n"
    assert _ready(old_url) == (200, "newer than this release, compatible")
    assert "newer than this release, compatible: 9000_adds" in old.cli.bare("db", "status").ok().out
    _stop(old_worker)
    old_worker = old.worker()
    assert old.doubled(server=old_url) == 2

    new_worker, new_url = new.worker(), new.api()
    assert _ready(new_url) == (200, "ok")
    # A process of the old release restarts in the middle of the deployment, and takes nothing back.
    _stop(old_worker)
    old_worker = old.worker()
    old_url = old.api()
    assert [old.doubled(server=old_url), new.doubled(server=new_url), old.doubled()] == [4, 4, 4]
    # Each release alone runs jobs that the other one accepted.
    _stop(new_worker)
    assert new.doubled(server=new_url) == 4
    new_worker = new.worker()
    _stop(old_worker)
    assert old.doubled(server=old_url) == 4


def test_an_old_worker_that_restarts_leaves_the_newest_recipe_and_a_rollback_is_asked_for(
    old: Release, new: Release
) -> None:
    _stop(old.worker())
    new.cli.bare("db", "migrate").ok()
    _stop(new.worker())
    said = old.start("worker", "shapes.py", until="recipe shape")[1]
    assert "this code is version 1" in said and "version 2, the newest" in said
    assert "windlass recipes rollback shape 1" in said
    assert old.doubled() == 4
    assert old.cli("recipes", "rollback", "shape", "1").ok().out == "shape version 3, the plan of version 1\n"
    assert old.doubled() == 2
    _stop(new.worker())
    assert new.doubled() == 2, "the roll-back holds when the newer code restarts"
    # The deployment of the newer code is repeated on purpose.
    assert new.cli("recipes", "register", "shapes.py", "--newest").ok().out == "shape version 4\n"
    assert new.doubled() == 4
    assert old.cli("recipes", "rollback", "shape", "--json").ok().json() == {
        "recipe": "shape", "version": 5, "rolled_back_to": 3,
    }  # fmt: skip
    assert old.cli("recipes", "rollback", "shape", "9").code == 4
    assert old.cli("recipes", "rollback", "nothing").code == 4


def test_a_migration_that_old_releases_cannot_run_with_shuts_them_out(
    old: Release, new: Release, tmp_path: Path
) -> None:
    url = old.api()
    last = Release(
        tmp_path / "last", new.cli.environ["WINDLASS_DATABASE_URL"], {"9000_adds": ADDS, "9001_forbids": FORBIDS}, APP
    )
    last.cli.bare("db", "migrate").ok()
    assert _ready(url) == (503, "newer than this release, not compatible")
    for release in (old, new):
        refused = release.cli.bare("worker", "shapes.py")
        assert refused.code == 2, refused
        assert "(9001_forbids) needs windlass 9.1.0 or later; this is windlass 0." in " ".join(refused.err.split())
        assert "Upgrade windlass on this machine" in refused.err
    assert last.cli.bare("db", "status").ok().out.splitlines()[2].endswith("up to date")


def _ready(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:
            return answer.status, json.load(answer)["parts"]["migrations"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["parts"]["migrations"]


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
