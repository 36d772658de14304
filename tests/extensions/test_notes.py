"""A small extension, installed as a package of its own: everything that it adds is there, seen from outside."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import APP, Cli, line_with
from tests.client.server import SECRET
from tests.extensions.site import NOTES, install, with_site
from windlass.core.states import JobState

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the extension in it, as pip leaves it."""
    # Copied first: a build leaves files beside the sources.
    source = tmp_path_factory.mktemp("source") / "notes"
    shutil.copytree(NOTES, source)
    target = tmp_path_factory.mktemp("site")
    install(source, target)
    return target


@pytest.fixture
def cli(tmp_path: Path, fresh_empty_dsn: str, site: Path) -> Cli:
    """A command line whose environment has the extension, and whose database has nothing yet."""
    return with_site(Cli(tmp_path, fresh_empty_dsn), site)


class Server:
    """`windlass up` with the extension."""

    def __init__(self, cli: Cli) -> None:
        self.process = cli.spawn("up", APP, "--no-demo", "--listen", "127.0.0.1:0")
        self.url = line_with(self.process, "http://").split()[-1]
        line_with(self.process, "ready in")
        key = (cli.folder / "key").read_text().strip()
        self.client = httpx.Client(base_url=self.url, headers={"X-API-Key": key}, trust_env=False, timeout=60)

    def ask(self, method: str, path: str, status: int, **more: Any) -> Any:
        answer = self.client.request(method, path, **more)
        assert answer.status_code == status, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer

    def close(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, out


@pytest.fixture
def server(cli: Cli) -> Iterator[Server]:
    cli.environ |= {"WINDLASS_NOTES_LENGTH_MAX": "30", "WINDLASS_SECRET": SECRET}
    made = Server(cli)
    yield made
    made.close()


@pytest.fixture
async def fresh_empty_dsn() -> str:
    from windlass.testing.postgres import fresh_database

    return await fresh_database(migrated=False)


def test_routes_recipe_setting_and_metric_work_in_one_process(server: Server, cli: Cli) -> None:
    note = server.ask("POST", "/notes", 201, json={"text": "a note about the sea"})
    assert server.ask("GET", "/notes", 200) == {"items": [note]}
    assert server.ask("POST", "/notes", 422, json={"text": "x" * 31})["detail"] == "a note has 30 characters at most"
    # Guarded like every route: a key is needed, and an unknown parameter is refused.
    stranger = httpx.get(f"{server.url}/notes", trust_env=False, timeout=60)
    assert (stranger.status_code, stranger.json()["code"]) == (401, "unauthenticated")
    assert server.ask("GET", "/notes?page=1", 400)["code"] == "bad_request"
    assert server.ask("GET", "/api/v1/notes", 200) == {"items": [note]}
    # A handler of the extension runs in the worker, and uses the extension's own statements.
    job = server.ask("POST", f"/notes/{note['id']}/shorten", 202)["job_id"]
    result = _ended(server, job)
    assert result["status"] == JobState.COMPLETED
    assert server.ask("GET", "/notes", 200)["items"][0]["text"] == "a note abo"
    assert [one["job_id"] for one in server.ask("GET", f"/jobs?label=note:{note['id']}", 200)["items"]] == [job]
    metrics = server.ask("GET", "/metrics", 200).text
    assert 'notes_written_total{how="http"} 1.0' in metrics and "# HELP windlass_jobs_total" in metrics
    paths = server.ask("GET", "/openapi.json", 200)["paths"]
    assert set(paths["/notes"]) == {"get", "post"}
    assert server.ask("GET", "/readyz", 200)["parts"]["migrations"] == "ok"


def test_the_console_is_told_of_its_page_and_loads_it_on_demand(server: Server) -> None:
    key = server.client.headers["X-API-Key"]
    session = httpx.post(
        f"{server.url}/console/session", json={"key": key}, headers={"Origin": server.url}, trust_env=False, timeout=60
    ).json()
    [page] = session["pages"]
    assert page == {"title": "Notes", "icon": "notebook", "path": "/x/notes", "module": "/console/x/notes/notes.js"}
    module = server.ask("GET", page["module"], 200)
    assert module.headers["content-type"].startswith("text/javascript")
    assert "export function mount(element, api)" in module.text
    assert "script-src 'self'" in module.headers["content-security-policy"]
    known = server.client.get(page["module"], headers={"If-None-Match": module.headers["etag"]})
    assert known.status_code == 304
    # The page's own address is the console's, and a file that is not there is no page.
    assert "<html" in server.ask("GET", f"/console{page['path']}", 200).text
    for path in ("notes/none.js", "other/notes.js", "notes/../notes/x.js", "notes/%2e%2e/declaration.js"):
        assert server.client.get(f"/console/x/{path}").status_code == 404, path


def _ended(server: Server, job: str) -> Any:
    with server.client.stream("GET", f"/jobs/{job}/stream") as stream:
        for _ in stream.iter_lines():
            pass  # the stream ends with the job
    return server.ask("GET", f"/jobs/{job}", 200)


def test_its_commands_use_the_database_that_the_command_line_names(cli: Cli) -> None:
    behind = cli("notes", "list", "ada")
    assert behind.code == 2 and "windlass db migrate" in behind.err
    cli("db", "migrate").ok()
    assert cli("notes", "add", "ada", "hello").ok().out == "1\n"
    dsn = cli.environ.pop("WINDLASS_DATABASE_URL")
    assert cli("--database", dsn, "notes", "list", "ada").ok().out == "1 hello\n"
    assert cli("notes", "list", "ada").code == 3
    assert "Notes that callers keep." in cli("--help").ok().out


def test_its_migrations_are_applied_once_in_order_and_survive_an_upgrade(cli: Cli, site: Path, tmp_path: Path) -> None:
    older = tmp_path / "older"
    shutil.copytree(site, older)
    (older / "windlass_notes" / "migrations" / "0002_by_caller.sql").unlink()
    before = with_site(Cli(tmp_path, cli.environ["WINDLASS_DATABASE_URL"]), older)
    applied = before("db", "migrate", "--json").ok().json()
    assert applied["applied"][-1] == "notes/0001_notes" and applied["indexed"] == ["note"]
    assert before("db", "migrate", "--json").ok().json() == {"applied": [], "indexed": []}
    before("notes", "add", "ada", "kept").ok()
    # The newer version asks for its migration; the older one goes on after it, as does Windlass without either.
    status = cli("db", "status", "--json")
    assert status.code == 2 and status.json()["missing"] == ["notes/0002_by_caller"]
    assert cli("doctor", "--json").code == 2
    assert cli("db", "migrate", "--json").ok().json()["applied"] == ["notes/0002_by_caller"]
    assert cli("notes", "list", "ada").ok().out == before("notes", "list", "ada").ok().out == "1 kept\n"
    without = Cli(tmp_path, cli.environ["WINDLASS_DATABASE_URL"])("db", "status", "--json").ok().json()
    assert (without["missing"], without["unknown"]) == ([], [])


def test_what_is_installed_is_listed_and_can_be_left_out(cli: Cli) -> None:
    [one] = cli("extensions", "--json").ok().json()["items"]
    assert (one["name"], one["package"], one["version"]) == ("notes", "windlass-notes", "0.3.0")
    assert one["adds"] == ["recipes", "routers", "commands", "migrations", "settings", "labels", "metrics", "pages"]
    [setting] = one["settings"]
    assert (setting["variable"], setting["value"]) == ("WINDLASS_NOTES_LENGTH_MAX", 200)
    (cli.folder / "windlass.toml").write_text("[notes]\nlength_max = 50\n")
    assert "50" in cli("extensions", "notes").ok().out
    (cli.folder / "windlass.toml").write_text("[notes]\nlenght_max = 50\n")
    assert "Did you mean length_max?" in cli("extensions").err
    (cli.folder / "windlass.toml").write_text('extensions = "none"\n')
    assert cli("extensions", "--json").ok().json() == {"items": []}
    assert all("notes" not in name for name in cli("db", "migrate", "--json").ok().json()["applied"])
    cli("doctor").ok()


def test_nothing_is_read_for_extensions_where_none_is_needed(cli: Cli) -> None:
    code = (
        "import sys, windlass.cli.main, windlass.app.windlass; from windlass.app.settings import load; load();"
        "print([name for name in sys.modules if name.startswith('windlass_notes')])"
    )
    environ = {name: value for name, value in cli.environ.items() if name != "WINDLASS_EXTENSIONS"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ, cwd=cli.folder, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
