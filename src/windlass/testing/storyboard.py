"""`python -m windlass.testing.storyboard`: the storyboard example, with a provider on this machine.

It starts two processes: a provider that loses some of its webhooks and sends others late, and `windlass up`. It runs
one job to its end. Then it tells whether the webhook or the poller brought each drawing, and what became of the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from windlass.client.client import Client, RemoteJob
from windlass.client.views import Event, StepDocument
from windlass.testing.fake_provider import FakeProvider, Fault

PROVIDER = "studio"
SCENES = 6
DRAWN_AFTER_S = 1.0
POLL_S = 2.0
LATE_S = 3.0
WITHIN_S = 120.0
HEAR_OUT_S = 20.0
# Drawings begin two at a time, and each sends a webhook for its begin and its end. The first two drawings lose theirs,
# the next two send them late, the last two send them in time.
FAULTS = (Fault("webhook", "drop", times=4), Fault("webhook", "delay", times=4, seconds=LATE_S))
FILE = """\
providers:
  studio:
    adapter: http
    base_url: {url}
    concurrency: 4
    rate: 20
    poll: [{poll_s}s]
    webhook: {{profile: standard, secret_env: STUDIO_SECRET}}
    prices: {{"*": {{second: 0.02}}}}
    options: {{cancel: "DELETE /jobs/{{id}}", find: "GET /jobs?key={{key}}", list: "GET /jobs?since={{since}}"}}
"""
# Only the database and its secret are taken from the environment's settings.
_KEPT = ("WINDLASS_DATABASE_URL", "WINDLASS_SECRET")

_WINDLASS = "from windlass.cli.main import main; main()"

Say = Callable[[str], None]


@contextmanager
def installation(folder: Path, provider: FakeProvider) -> Iterator[Client]:
    """Start `windlass up` with the example, and yield a client of it."""
    home = folder / "home"
    home.mkdir(mode=0o711)
    file = folder / "providers.yaml"
    file.write_text(FILE.format(url=provider.base_url("generic"), poll_s=POLL_S))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_") or name in _KEPT}
    environ |= {
        "WINDLASS_HOME": str(home),
        "WINDLASS_PROVIDERS": str(file),
        "STUDIO_SECRET": provider.secret,
    }
    command = [sys.executable, "-c", _WINDLASS, "up", "windlass.examples.storyboard", "--listen", "127.0.0.1:0"]
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        _until(lambda: (home / "server").exists(), process, folder / "up.log")
        with Client(home=home) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until(is_so: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise RuntimeError(f"`windlass up` did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)


def play(job: RemoteJob, say: Say) -> dict[str, str]:
    """Print the events until the job has ended, and approve it when it asks; return the source that ended each step."""
    names: dict[int, str] = {}
    ended: dict[str, str] = {}
    began_s, seen = time.monotonic(), 0
    while time.monotonic() - began_s < WITHIN_S:
        is_over = job.view().is_finished
        for event in job.events(after=seen):
            seen = event.seq
            if event.no is None:
                continue
            if event.no not in names:
                names = {one.no: step_name(one) for one in job.steps()}
            step = names[event.no]
            if event.type == "step.completed":
                ended[step] = event.source
            if event.type == "step.parked" and step == "approved":
                job.send_event("approved", {"topic": job.input()["topic"], "by": "the demo"})
            if text := _told(event, step):
                say(f"{time.monotonic() - began_s:6.1f} s  {step}: {text}")
        if is_over:
            return ended
        time.sleep(0.1)
    raise TimeoutError(f"job {job.job_id} has not ended")


def step_name(step: StepDocument) -> str:
    """Return a step's name, with its index in a fan-out."""
    return step.step if step.index is None else f"{step.step}[{step.index}]"


def _told(event: Event, step: str) -> str | None:
    waits_for = (event.payload or {}).get("waiting_for", "") if event.type == "step.parked" else ""
    match event.type:
        case "step.parked" if step == "approved":
            return "a person is asked; the demo says yes"
        case "step.parked" if waits_for.startswith("external"):
            return "the studio has it, the worker is free"
        case "step.completed" if step == "draw":
            return "all of them are there"
        case "step.completed" if event.source in ("webhook", "poller"):
            return f"drawn; told by the {event.source}"
        case "step.completed":
            return "done"
    return None


def race(
    client: Client, home: Path, job: RemoteJob, ended: dict[str, str], provider: FakeProvider
) -> list[tuple[str, str, str]]:
    """Return, per drawing, the source that brought it, and what became of the other."""
    by_key = {entry.key: entry.id for entry in provider.entries("accepted")}
    told = {entry.id for entry in provider.entries("webhook") if entry.way == "end" and entry.answer == 200}
    became = {one["external_id"]: one["status"] for one in _events(client, home) if one["id"].endswith("_end")}
    rows = []
    for step in sorted((one for one in job.steps() if one.index is not None), key=lambda one: one.index or 0):
        work = by_key[f"wl-{job.job_id}-{step.no}-1"]
        winner = ended[step_name(step)]
        if winner == "webhook":
            other = "the poller had nothing left to ask"
        elif work not in told:
            other = "the webhook was lost"
        else:
            other = f"the webhook came later: {became.get(work, 'unknown')}, and changed nothing"
        rows.append((step_name(step), winner, other))
    return rows


def _events(client: Client, home: Path) -> list[dict[str, Any]]:
    key = (home / "key").read_text().strip()
    url = f"{client.server}/webhooks/{PROVIDER}/events?limit=200"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"X-API-Key": key}), timeout=30) as answer:
        return list(json.load(answer)["items"])


async def show(say: Say) -> None:
    """Run the whole demonstration."""
    with _folder() as folder:
        async with FakeProvider(folder / "journal") as provider:
            await provider.behave(seconds=DRAWN_AFTER_S)
            await provider.fail(*FAULTS)
            say(f"a provider named {PROVIDER} at {provider.url}: a drawing takes {DRAWN_AFTER_S:g} s;")
            say(f"it loses the webhooks of two drawings and sends those of two others {LATE_S:g} s late")
            say("starting PostgreSQL, the engine, a worker and the API …")
            await asyncio.to_thread(_run, folder, provider, say)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="windlass-storyboard-") as name:
        # As root, the embedded server runs as another user, which must be able to pass through.
        Path(name).chmod(0o711)
        yield Path(name)


def _run(folder: Path, provider: FakeProvider, say: Say) -> None:
    with installation(folder, provider) as client:
        job = client.submit("storyboard", topic="the lighthouse", scenes=SCENES)
        say(f"job {job.job_id}; every {POLL_S:g} s the poller asks for what is not told\n")
        ended = play(job, say)
        result = job.result()
        _hear_out(provider)
        say("\ndrawing    told by   and the other way")
        for step, winner, other in race(client, folder / "home", job, ended, provider):
            say(f"{step:<10} {winner:<9} {other}")
        costs = job.costs()
        taken = provider.accepted()
        say(f"\n{len(taken)} drawings were asked for, {sum(taken.values())} were made; they cost {costs.total}")
        say(json.dumps(result, indent=2))


def _hear_out(provider: FakeProvider) -> None:
    """Wait for the late webhooks."""
    deadline_s = time.monotonic() + HEAR_OUT_S
    while time.monotonic() < deadline_s:
        if sum(entry.way == "end" for entry in provider.entries("webhook")) >= SCENES - 2:
            return
        time.sleep(0.1)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the demonstration; on SIGTERM, end its processes first."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(show(_say))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
