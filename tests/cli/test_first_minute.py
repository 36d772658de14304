"""The demo of `up`: a job to watch, a worker to kill, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import pytest

from tests.cli.conftest import APP, Cli, line_with
from tests.client.server import SECRET

pytestmark = pytest.mark.slow
T = TypeVar("T")
WAIT_MAX_S = 60
# Few pictures, quickly: the shape is the same.
QUICK = {"photos": 4, "pace": 0.4}


def until(look: Callable[[], T | None], what: str) -> T:
    """The first true answer."""
    deadline = time.monotonic() + WAIT_MAX_S
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {WAIT_MAX_S} s: {what}")


class Up:
    """A `windlass up` on a folder of its own."""

    def __init__(self, cli: Cli, *words: str) -> None:
        self.cli = cli
        self.process = cli.spawn("up", "--listen", "127.0.0.1:0", *words)
        self.url = line_with(self.process, "✓ api").split()[-1]
        self.link = line_with(self.process, "  Console").split()[-1]
        line_with(self.process, "ready in")
        key = (cli.folder / "key").read_text().strip()
        self.http = httpx.Client(base_url=self.url, headers={"X-API-Key": key}, trust_env=False, timeout=60)

    def get(self, path: str) -> Any:
        return self.http.get(path).raise_for_status().json()

    def jobs(self) -> list[dict[str, Any]]:
        return self.get("/jobs")["items"]  # type: ignore[no-any-return]

    def steps(self, job: str, name: str) -> list[dict[str, Any]]:
        return [step for step in self.get(f"/jobs/{job}/steps?limit=100")["items"] if step["step"] == name]

    def demo_workers(self) -> list[dict[str, Any]]:
        return [one for one in self.get("/workers")["items"] if one["queues"] == ["demo"] and one["lost_at"] is None]

    def family(self) -> list[psutil.Process]:
        """All that it has started and that is no PostgreSQL, which has a life of its own."""
        return [one for one in psutil.Process(self.process.pid).children(recursive=True) if one.name() != "postgres"]

    def ended(self) -> str:
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, out
        return out


@pytest.fixture
def cli(server_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """The command line in a folder of its own; processes that a test left there are ended."""
    made: list[subprocess.Popen[str]] = []
    spawn = Cli.spawn

    def noted(cli: Cli, *words: str) -> subprocess.Popen[str]:
        made.append(spawn(cli, *words))
        return made[-1]

    monkeypatch.setattr(Cli, "spawn", noted)
    found = Cli(server_folder)
    found.environ["WINDLASS_SECRET"] = SECRET
    try:
        yield found
    finally:
        for process in made:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def test_a_job_whose_worker_is_killed_goes_on_elsewhere_and_ends(cli: Cli) -> None:
    up = Up(cli)
    [begun] = up.jobs()
    assert begun["recipe"] == "first-minute" and f"/console/jobs/{begun['job_id']}?token=" in up.link
    up.http.post(f"/jobs/{begun['job_id']}/cancel").raise_for_status()  # it takes its time; a quicker one follows
    accepted = up.http.post("/jobs", json={"recipe": "first-minute", "inputs": QUICK}).raise_for_status()
    job = accepted.json()["job_id"]

    def running() -> list[dict[str, Any]]:
        return [step for step in up.steps(job, "develop") if step["status"] == "RUNNING"]

    held = until(running, "a picture is being developed")
    [worker] = up.demo_workers()
    killed = up.http.post("/console/demo/kill-worker").raise_for_status().json()
    assert killed == {"worker": worker["id"], "pid": worker["pid"]}
    assert "was killed" in line_with(up.process, "demo worker")
    until(lambda: not psutil.pid_exists(killed["pid"]), "the process is gone")

    until(lambda: [one for one in up.steps(job, "approved") if one["status"] == "PARKED"], "it waits for a person")
    lost = [step for step in up.steps(job, "develop") if step["no"] in {one["no"] for one in held}]
    assert all(step["status"] == "COMPLETED" and step["losses"] == 1 and step["attempt"] == 2 for step in lost)
    [next_worker] = up.demo_workers()
    assert next_worker["id"] != killed["worker"] and next_worker["pid"] != killed["pid"]
    [weather] = up.steps(job, "ask_weather")
    assert weather["attempt"] >= 2 and up.steps(job, "add_umbrellas")[0]["status"] == "SKIPPED"

    up.http.post(f"/jobs/{job}/events", json={"name": "approved", "body": {"by": "ada"}}).raise_for_status()
    until(lambda: up.get(f"/jobs/{job}")["status"] == "COMPLETED", "the book is printed")
    book = up.get(f"/jobs/{job}/output")
    assert book["verdict"] == {"by": "ada"} and book["book"]["pages"] == QUICK["photos"]
    assert book["extras"] == {"skipped": True}
    assert up.get("/audit?event=demo_worker_killed")["items"][0]["caller"] == "local"
    family = up.family()
    up.ended()
    until(lambda: not any(one.is_running() for one in family), "all that it started is gone")


def test_the_demo_can_be_run_again_and_one_kill_is_one_kill(cli: Cli) -> None:
    up = Up(cli)
    again = up.http.post("/console/demo/run").raise_for_status().json()
    assert again["recipe"] == "first-minute" and len(up.jobs()) == 2
    until(up.demo_workers, "the demo worker has its lease")
    codes = [up.http.post("/console/demo/kill-worker").status_code for _ in range(3)]
    # The next worker is not there yet, and the dead one is killed no second time.
    assert codes == [200, 409, 409]
    first = {one["pid"] for one in up.demo_workers()}
    until(lambda: {one["pid"] for one in up.demo_workers()} - first, "another worker is at work")
    up.ended()


def test_nothing_outlives_an_up_that_is_killed(cli: Cli) -> None:
    up = Up(cli)
    until(up.demo_workers, "the demo worker has its lease")
    family = up.family()
    assert [one for one in family if "windlass.app.demo.worker" in one.cmdline()]
    up.http.close()
    up.process.kill()
    up.process.communicate(timeout=60)
    until(lambda: not any(one.is_running() for one in family), "all that it started is gone")
    Up(cli).ended()  # finds the database that the killed one left, and stops it


def test_a_worker_that_is_killed_from_a_shell_is_started_again(cli: Cli) -> None:
    up = Up(cli)
    [first] = until(up.demo_workers, "the demo worker has its lease")
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: any(one["pid"] != first["pid"] for one in up.demo_workers()), "another worker is at work")
    up.ended()


@pytest.mark.parametrize(
    ("words", "environ"),
    [(["--no-demo"], {}), ([], {"WINDLASS_DEMO": "0"}), ([APP], {})],
    ids=["flag", "env", "own app"],
)
def test_without_the_demo_there_is_none(cli: Cli, fresh_dsn: str, words: list[str], environ: dict[str, str]) -> None:
    cli.environ.update(environ, WINDLASS_DATABASE_URL=fresh_dsn)
    up = Up(cli, *words)
    assert up.jobs() == [] and up.demo_workers() == [] and up.link.startswith(f"{up.url}/console/?token=")
    for path in ("kill-worker", "run"):
        assert up.http.post(f"/console/demo/{path}").json()["code"] == "not_found"
    up.ended()


def test_an_own_app_has_the_demo_when_it_is_asked_for(cli: Cli, fresh_dsn: str) -> None:
    cli.environ.update(WINDLASS_DEMO="1", WINDLASS_DATABASE_URL=fresh_dsn)
    up = Up(cli, APP)
    assert [job["recipe"] for job in up.jobs()] == ["first-minute"]
    key = up.http.post("/keys", json={"caller": "eve", "name": "eve"}).raise_for_status().json()["key"]
    # A caller that may only submit jobs kills no worker.
    refused = httpx.post(f"{up.url}/console/demo/kill-worker", headers={"X-API-Key": key}, trust_env=False, timeout=60)
    assert refused.status_code == 403
    up.ended()


def test_a_worker_whose_starter_died_before_a_word_ends() -> None:
    command = [sys.executable, "-m", "windlass.app.demo.worker"]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60, check=False).returncode == 0
