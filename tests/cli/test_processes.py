"""What the long-lived commands start, refuse and stop; and what commands say when there is nothing to talk to."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import APP, COMMAND, Cli, line_with
from windlass.app.embedded.postmaster import find_running

FAILS = """
import windlass as wl

@wl.step(retry=wl.Retry(max_attempts=1))
def fail() -> int:
    raise ValueError("no")

@wl.recipe
def fails():
    return fail()
"""

# A task that swallows its cancellation, a thread that is no daemon, and one of the loop's executor.
LEAKY = """
import asyncio, threading, time
import windlass as wl

kept = []

async def stubborn():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

@wl.step
async def leak() -> int:
    kept.append(asyncio.create_task(stubborn()))
    threading.Thread(target=time.sleep, args=(300,)).start()
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 300)
    return 1

@wl.recipe
def leaks():
    return leak()
"""


@pytest.fixture
def home(server_folder: Path) -> Cli:
    """The command line in a folder of its own, without a database."""
    return Cli(server_folder)


def test_up_serves_an_app_until_it_is_interrupted_and_finds_its_data_again(home: Cli) -> None:
    up = home.spawn("up", APP)
    assert "film v1" in line_with(up, "recipes")
    line_with(up, "ready in")
    assert home("submit", "film", "--input", "topic=sea", "--wait").ok().json() == {"film": "SEA 0 + SEA 1 + SEA 2"}
    second = home("up", APP)
    assert second.code == 5 and str(up.pid) in second.err and "--home" in second.err
    up.send_signal(signal.SIGINT)
    out, _ = up.communicate(timeout=60)
    assert up.returncode == 0, out
    assert find_running(home.folder / "pg") is None
    assert home("jobs").code == 3

    again = home.spawn("up", APP)
    line_with(again, "ready in")
    assert len(home("jobs").ok().out.splitlines()) == 1
    again.kill()  # and after a kill the server is found again, and then stopped in order
    again.communicate(timeout=60)
    third = home.spawn("up", APP)
    line_with(third, "ready in")
    third.send_signal(signal.SIGTERM)
    third.communicate(timeout=60)
    assert third.returncode == 0 and find_running(home.folder / "pg") is None


def test_up_starts_its_server_again_when_that_is_killed(home: Cli) -> None:
    up = home.spawn("up", APP)
    line_with(up, "ready in")
    os.kill(int((home.folder / "pg" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    line_with(up, "was started again")
    assert home("submit", "film", "--input", "topic=sea", "--wait").ok().json() == {"film": "SEA 0 + SEA 1 + SEA 2"}
    up.send_signal(signal.SIGINT)
    out, _ = up.communicate(timeout=60)
    assert up.returncode == 0 and find_running(home.folder / "pg") is None, out


def test_up_ends_although_handlers_left_tasks_and_threads_running(home: Cli) -> None:
    (home.folder / "leaky.py").write_text(LEAKY, encoding="utf-8")
    up = home.spawn("up", "leaky.py")
    line_with(up, "ready in")
    home("submit", "leaks", "--wait").ok()
    up.send_signal(signal.SIGINT)
    out, _ = up.communicate(timeout=60)
    assert up.returncode == 0, out
    assert "stopped; the data stays" in out and "Traceback" not in out
    assert find_running(home.folder / "pg") is None


def test_the_demo_runs_to_its_end_without_a_terminal(home: Cli) -> None:
    said = home("demo").ok()
    assert "✓ render  COMPLETED" in said.out and '"film"' in said.out
    assert said.out.rstrip().splitlines()[-1] == "COMPLETED"
    assert "\x1b[" not in said.out
    assert find_running(home.folder / "pg") is None


def test_run_needs_nothing_and_prints_the_result(home: Cli) -> None:
    said = home("run", f"{APP}:film", "--input", "topic=sea").ok()
    assert said.json() == {"film": "SEA 0 + SEA 1 + SEA 2"}
    failed = home("run", f"{APP}:flop", "--json")
    assert failed.code == 10 and failed.json()["failed_step"] == "explode"
    fell = home("run", f"{APP}:fall")
    assert "KeyError: 'data'" in fell.err and 'script["data"]' in fell.err
    assert "windlass why" not in fell.err, "the database has stopped with the command"
    assert "To look at the job: `windlass up`, then `windlass show" in " ".join(fell.err.split())
    assert home("run", f"{APP}:no_such").code == 4
    assert home("run", f"{APP}:film").code == 2
    assert home("run", "no_such_file.py").code == 4


@pytest.mark.covers("SCR-23")
def test_a_run_that_was_cut_short_goes_on_where_it_was(home: Cli) -> None:
    words = ("run", f"{APP}:nap", "--input", "seconds=0.5")
    cut = home.spawn(*words)
    line_with(cut, "RUNNING")
    cut.send_signal(signal.SIGINT)
    out, _ = cut.communicate(timeout=60)
    assert cut.returncode == 130 and "run again" in out
    again = home(*words).ok()
    assert "going on with job" in again.err and again.out == "0.5\n"
    assert "going on" not in home(*words).ok().err


def test_the_picture_is_drawn_on_a_terminal(home: Cli) -> None:
    if sys.platform != "linux":
        pytest.skip("uses script(1)")
    words = " ".join([*COMMAND, "run", f"{APP}:film", "--input", "topic=sea"])
    drawn = subprocess.run(
        ["script", "-qec", words, "/dev/null"], capture_output=True, text=True, cwd=home.folder, timeout=60,
        env=home.environ | {"TERM": "xterm-256color"}, check=False,
    )  # fmt: skip
    assert drawn.returncode == 0, drawn
    assert "\x1b[" in drawn.stdout and "3/3" in drawn.stdout and "✓ stitch" in drawn.stdout
    plain = subprocess.run(
        ["script", "-qec", words, "/dev/null"], capture_output=True, text=True, cwd=home.folder, timeout=60,
        env=home.environ | {"TERM": "xterm-256color", "NO_COLOR": "1"}, check=False,
    )  # fmt: skip
    assert "\x1b[32m" in drawn.stdout and "\x1b[32m" not in plain.stdout


def test_without_a_database_every_command_says_how_to_get_one(alone: Cli) -> None:
    commands = ["jobs", "show @last", "submit film", f"worker {APP}", "serve engine", "db status"]
    for words in map(str.split, commands):
        said = alone(*words)
        assert said.code == 3 and "windlass up" in said.err and said.out == "", words
    assert "windlass up" in alone().ok().out


def test_the_engine_alone_has_one_command(alone: Cli) -> None:
    assert alone("engine").code == 2
    assert "engine" in alone("serve", "--help").ok().out


def test_a_database_that_is_down_or_wrong_is_named_without_its_password(alone: Cli) -> None:
    down = alone("jobs", "--database", "postgresql://ana:secret@127.0.0.1:9/x")
    assert down.code == 3 and "secret" not in down.err
    wrong = alone("jobs", "--database", "mysql://ana:secret@h/x")
    assert wrong.code == 2 and "--database-url" in wrong.err and "secret" not in wrong.err


def test_a_database_without_a_schema_asks_for_migrate(alone: Cli, fresh_empty_dsn: str) -> None:
    said = alone("jobs", "--database", fresh_empty_dsn)
    assert said.code == 2 and "windlass db migrate" in said.err
    assert alone("db", "status", "--database", fresh_empty_dsn).code == 2
    assert alone("--database", fresh_empty_dsn, "db", "migrate", "--json").ok().json()["applied"]
    assert alone("db", "status", "--database", fresh_empty_dsn, "--json").ok().json()["missing"] == []


def test_a_label_is_declared_indexed_listed_and_dropped(alone: Cli, fresh_empty_dsn: str) -> None:
    alone.environ |= {"WINDLASS_DATABASE_URL": fresh_empty_dsn, "WINDLASS_INDEXED_LABELS": "team"}
    assert "indexed label team" in alone("db", "migrate").ok().out
    assert alone("db", "migrate", "--json").ok().json() == {"applied": [], "indexed": []}
    assert alone("db", "labels", "--json").ok().json() == {"items": [{"label": "team", "status": "ready"}]}
    dropped = alone("db", "labels", "--drop", "team").ok()
    assert "declared, no index" in dropped.out and "windlass db migrate" in dropped.err
    assert alone("db", "labels", "--drop", "team").code != 0
    alone.environ["WINDLASS_INDEXED_LABELS"] = "it's"
    wrong = alone("db", "migrate")
    assert wrong.code == 2 and "cannot be an indexed label" in wrong.err


def test_the_doctor_says_what_is_wrong_and_what_is_promised(alone: Cli, fresh_empty_dsn: str) -> None:
    behind = alone("doctor", "--database", fresh_empty_dsn)
    assert behind.code == 2 and "FAIL" in behind.out and "windlass db migrate" in behind.err
    alone("--database", fresh_empty_dsn, "db", "migrate").ok()
    found = alone("doctor", "--database", fresh_empty_dsn, "--json").ok().json()
    assert found["is_well"] and found["promise"] == "tail"
    assert {check["name"] for check in found["checks"]} >= {"database", "writes", "timeline", "promise", "workers"}
    assert "fsync is off" in alone("doctor", "--database", fresh_empty_dsn).ok().out
    assert alone("doctor", "--database", "postgresql://localhost:1/x").code == 3


def test_a_folder_that_cannot_be_used_is_explained(alone: Cli) -> None:
    said = alone("up", APP, "--home", "/proc/windlass")
    assert said.code == 2 and "WINDLASS_HOME" in said.err and "Traceback" not in said.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_another_is_explained(alone: Cli) -> None:
    alone.folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    said = alone("up", APP)
    assert said.code == 2 and "WINDLASS_HOME" in said.err


def test_an_app_that_cannot_be_imported_says_where(alone: Cli) -> None:
    (alone.folder / "broken.py").write_text("import windlass as wl\nx = 1 / 0\n")
    said = alone("up", "broken.py")
    assert said.code == 2 and "ZeroDivisionError" in said.err and "line 2" in said.err and "Traceback" not in said.err
    assert "Traceback" in alone("up", "broken.py", "--debug").err
    assert not (alone.folder / "pg").exists()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("return step(topic.title)", "AttributeError: <value inputs.topic> has no attribute 'title'"),
        ("return step(1 / 0)", "ZeroDivisionError: division by zero"),
        ("return wrong_recipe.function(topic)", "RecursionError: maximum recursion depth exceeded"),
        ("return step(topic).named(7)", "a step's name is text, not 7"),
        ("return step({}['a'])", "KeyError: 'a'"),
    ],
)
def test_an_error_in_a_recipe_is_its_authors_with_file_and_line(alone: Cli, body: str, error: str) -> None:
    (alone.folder / "wrong.py").write_text(
        "import windlass as wl\n\n@wl.step\ndef step(x=None):\n    return x\n\n"
        f"@wl.recipe\ndef wrong_recipe(topic: str):\n    {body}\n"
    )
    for words in (["run", "wrong.py"], ["worker", "wrong.py", "--database", "postgresql://127.0.0.1:1/none"]):
        said = alone(*words)
        told = " ".join(said.err.split())
        assert said.code == 2 and error in told and "fault of Windlass" not in told, said
        assert "in recipe wrong_recipe" in told and "wrong.py" in told
        if "name is text" not in error:
            assert "line 9" in told and body in said.err and "recipe.py" not in said.err.replace("wrong_recipe", "")


def test_an_address_or_a_queue_that_cannot_be_is_refused(alone: Cli) -> None:
    for words in (["up", APP], ["serve", "api"]):
        said = alone(*words, "--listen", "127.0.0.1:99999")
        assert said.code == 2 and "--listen='127.0.0.1:99999': it must be HOST:PORT" in said.err, said
    for queue in ("", "a b", "gpu,a b"):
        said = alone("worker", APP, "--queue", "gpu", "--queue", queue)
        assert said.code == 2 and "--queue" in said.err and "is not a queue's name" in " ".join(said.err.split()), said


def test_a_bad_setting_is_named(alone: Cli) -> None:
    alone.environ["WINDLASS_LEASE_S"] = "soon"
    said = alone("jobs")
    assert said.code == 2 and "WINDLASS_LEASE_S" in said.err and "soon" in said.err


def test_an_argument_that_is_no_text_is_refused(alone: Cli) -> None:
    said = alone("jobs", "--recipe", "\udcff")
    assert said.code == 2 and "'\\udcff' is not text" in said.err and "UTF-8" in said.err


def test_a_failed_run_says_that_its_database_has_stopped(home: Cli) -> None:
    (home.folder / "fails.py").write_text(FAILS, encoding="utf-8")
    said = home("run", "fails.py:fails")
    assert said.code == 10 and "has stopped with this command" in said.err


def test_help_has_the_exit_codes_and_imports_neither_tables_nor_servers(alone: Cli) -> None:
    said = alone.bare("--help").ok()
    assert "Exit codes" in said.out and "130" in said.out
    check = "import sys, windlass.cli.main; print([m for m in ('asyncpg', 'uvloop', 'rich.live') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, env=alone.environ, check=True)
    assert found.stdout.strip() == "[]"
    assert alone.bare("--version").ok().out.startswith("windlass ")


def test_a_command_that_is_started_from_nothing_says_the_same(served: Cli) -> None:
    """Most tests fork their commands from a process that has read the modules (`starter.py`)."""
    for words in (["jobs", "--json"], ["recipes"], ["why", "nothing"], ["--nonsense"]):
        assert served.bare(*words) == served(*words)
