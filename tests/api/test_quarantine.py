"""What the output policy quarantined is shown by no reader, and each says why.

A job says a secret in every way that a step can: output, preview, progress, log lines, errors. Then it is quarantined.
No policy does that yet, so the states are written directly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

import windlass as wl
from tests.api.rig import Rig, rig
from tests.api.streams.stage import Client, connect
from tests.cli.conftest import Cli
from tests.engine.rig import undisturbed
from windlass import AsyncClient
from windlass.app.service import serving
from windlass.client.async_client import AsyncRemoteJob
from windlass.core.errors import WindlassError
from windlass.testing.postgres import fresh_database
from windlass.views import read
from windlass.views.attempts import logs

MARK = "xyzzy-4711"
WHY = "output_quarantined"


@wl.step(retry=wl.Retry(max_attempts=2, base_s=0.01))
def speak(ctx: wl.Context) -> list:  # type: ignore[type-arg]
    ctx.log.warning("logged %s", MARK)
    ctx.progress(50, f"said {MARK}")
    ctx.preview({"first": MARK})
    if ctx.attempt == 1:
        raise wl.Transient(f"failed with {MARK}")
    return [f"made {MARK}", f"also {MARK}"]


@wl.step
def repeat(word: str, ctx: wl.Context) -> str:
    ctx.log.warning("repeated %s", word)
    return f"repeated {word}"


@wl.recipe
def leak():  # type: ignore[no-untyped-def]
    return {"all": repeat.map(speak()), "title": "public"}


app = wl.App()
app.add([leak])

FAULT = json.dumps({"code": MARK, "message": f"broke on {MARK}", "detail": MARK})
SAID = json.dumps({"pct": 1, "message": MARK})
# The job ended, and its outputs were judged afterwards.
JOB = "UPDATE windlass.jobs SET state = $2, trouble = $2, error = $3, progress = $4 WHERE id = $1"
STEPS = "UPDATE windlass.steps SET error = $2, progress = $3 WHERE job_id = $1"
FAILED = "UPDATE windlass.steps SET state = 'FAILED', error = $2, progress = $3 WHERE job_id = $1"
# Only the steps: the job's own row tells nothing of them.
QUIET = "UPDATE windlass.jobs SET progress = NULL WHERE id = $1"
STEP = "UPDATE windlass.steps SET state = 'QUARANTINED', error = $2, progress = $3 WHERE job_id = $1"


async def quarantine(api: Rig, job_id: UUID, kind: str) -> None:
    async with api.windlass.db.connection() as connection:
        if kind == "job":
            await connection.execute(STEPS, job_id, FAULT, SAID)
            await connection.execute(JOB, job_id, "OUTPUT_QUARANTINED", FAULT, SAID)
        elif kind == "failed":
            await connection.execute(FAILED, job_id, FAULT, SAID)
            await connection.execute(JOB, job_id, "FAILED", FAULT, SAID)
        elif kind == "step":
            await connection.execute(STEP, job_id, FAULT, SAID)
            await connection.execute(QUIET, job_id)


@dataclass
class World:
    """What readers ask with."""

    api: Rig
    client: AsyncClient
    local: Cli
    remote: Cli
    id: UUID
    start: str

    @property
    def job(self) -> AsyncRemoteJob:
        return self.client.job(self.id)


def get(path: str, *, is_admin: bool = False) -> Callable[[World], Awaitable[str]]:
    async def read_it(world: World) -> str:
        asked = world.api.admin if is_admin else world.api.user
        answer = await asked.get(path.format(job=world.id))
        return f"{answer.status_code} {answer.text}"

    return read_it


def command(*words: str, is_remote: bool) -> Callable[[World], Awaitable[str]]:
    async def run(world: World) -> str:
        cli = world.remote if is_remote else world.local
        said = await asyncio.to_thread(cli, *(word.format(job=world.id) for word in words))
        return f"{said.code} {said.out} {said.err}"

    return run


async def listed(items: Any) -> str:
    return "\n".join([repr(one) async for one in items])


async def told(asked: Awaitable[Any]) -> str:
    try:
        return repr(await asked)
    except WindlassError as error:
        return f"{type(error).__name__} {error} {vars(error)}"


async def stream(world: World, path: str, is_over: Callable[[Client], bool], after: str | None = None) -> str:
    port = httpx.URL(world.api.url).port
    assert port is not None
    client = await connect(port, path, after=after, X_API_Key=world.api.user_key)
    try:
        await client.until(lambda: is_over(client))
        return repr(client.frames)
    finally:
        client.hang_up()


async def feed(world: World) -> str:
    await undisturbed(world.api.windlass.db)
    done = ("job.completed",)
    return await stream(
        world, "/jobs/stream", lambda c: any((f.data or {}).get("type") in done for f in c.frames), world.start
    )


async def again(world: World, action: str) -> str:
    """What a job that begins with what this one had finished is given."""
    answer = await world.api.user.post(
        f"/jobs/{world.id}/{action}", json={"from_step": "repeat"} if action == "rerun" else {}
    )
    new = answer.json().get("job_id")
    graph = await world.api.user.get(f"/jobs/{new}/graph?results=true")
    return f"{answer.text} {graph.text}"


LINES = (
    "show {job}", "show {job} --json", "result {job}", "result {job} --step speak", "result {job} --step repeat[0]",
    "logs {job}", "events {job} --json", "why {job}", "jobs --json", "graph {job} --json", "get /jobs/{job}/steps",
)  # fmt: skip
PATHS = (
    "/jobs/{job}", "/jobs", "/jobs/{job}/output", "/jobs/{job}/steps", "/jobs/{job}/steps/0", "/jobs/{job}/steps/1",
    "/jobs/{job}/steps/2", "/jobs/{job}/steps/0/output", "/jobs/{job}/steps/1/output", "/jobs/{job}/steps/2/output",
    "/jobs/{job}/attempts", "/jobs/{job}/events", "/jobs/{job}/graph?results=true", "/jobs/{job}/why", "/overview",
    "/dead-letters", "/recipes/leak/inputs",
)  # fmt: skip
READERS: dict[str, Callable[[World], Awaitable[str]]] = {
    **{f"GET {path}": get(path) for path in PATHS},
    "GET /audit": get("/audit", is_admin=True),
    **{f"windlass {line}": command(*line.split(), is_remote=False) for line in LINES},
    **{f"remote windlass {line}": command(*line.split(), is_remote=True) for line in LINES},
    "client view": lambda world: told(world.job.view()),
    "client result": lambda world: told(world.job.result(30)),
    "client steps": lambda world: listed(world.job.steps()),
    "client events": lambda world: listed(world.job.events()),
    "client stream": lambda world: listed(world.job.stream(0)),
    "client why": lambda world: told(world.job.why("speak")),
    "client graph": lambda world: told(world.job.graph(results=True)),
    "embedded result": lambda world: told(world.api.windlass.job(world.id).result(30)),
    "embedded view": lambda world: told(world.api.windlass.job(world.id).view()),
    "embedded steps": lambda world: told(world.api.windlass.job(world.id).steps()),
    "embedded events": lambda world: listed(world.api.windlass.job(world.id).events()),
    "embedded logs": lambda world: told(logs(world.api.windlass.db, world.id, 0)),
    "waiting": lambda world: told(world.api.parts.waiter.wait(world.id, 30)),
    "newest events": lambda world: told(read.events(world.api.windlass.db, world.id, is_newest_first=True)),
    "job stream": lambda world: stream(world, f"/jobs/{world.id}/stream", lambda c: bool(c.named("end")), "0"),
    "feed": feed,
    "console": lambda world: stream(
        world, f"/console/stream?topics=jobs,job:{world.id}@0", lambda c: bool(c.named("gone"))
    ),
    "rerun": lambda world: again(world, "rerun"),
}
# Readers that tell of states and counts alone, or of other jobs.
SILENT = {"GET /audit", "GET /recipes/leak/inputs"}
# Of a job that is quarantined these tell nothing: no step of it waits, and it is no dead letter.
OF_STEP = {
    "GET /overview", "GET /dead-letters", "GET /jobs/{job}/why", "windlass why {job}", "remote windlass why {job}",
    "rerun",
}  # fmt: skip
# Of a job with quarantined steps these tell the job's own row, which has nothing to hide.
OF_JOB = {
    "GET /overview", "GET /dead-letters", "GET /jobs", "GET /jobs/{job}", "client view", "embedded view", "waiting",
    "windlass jobs --json", "remote windlass jobs --json", "windlass show {job} --json",
    "remote windlass show {job} --json", "rerun",
}  # fmt: skip


async def answers(kind: str, folder: Path) -> dict[str, str]:
    """What every reader says of a job that was quarantined in this way."""
    dsn = await fresh_database()
    async with rig(dsn, folder / "server") as api:
        await api.windlass.register(leak)
        port = httpx.URL(api.url).port
        assert port is not None
        opening = await connect(port, "/jobs/stream", X_API_Key=api.user_key)
        start = opening.frames[0].id
        assert start is not None
        opening.hang_up()
        job_id = UUID(await api.submit("leak"))
        async with serving(api.windlass, app):
            await api.ended(str(job_id))
        await quarantine(api, job_id, kind)
        local = Cli(folder, dsn)
        remote = Cli(folder)
        remote.environ |= {"WINDLASS_SERVER": api.url, "WINDLASS_API_KEY": api.user_key}
        async with AsyncClient(api.url, api_key=api.user_key) as client:
            world = World(api, client, local, remote, job_id, start)
            return {name: await reader(world) for name, reader in READERS.items()}


class Answers(dict[str, dict[str, str]]):
    """What every reader says, by kind of job. A kind is asked for by the first test that needs it."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._folders = folders

    def __missing__(self, kind: str) -> dict[str, str]:
        found = self[kind] = asyncio.run(answers(kind, self._folders.mktemp(kind)))
        return found


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What every reader says of two ordinary jobs, of a quarantined one, and of one with quarantined steps."""
    return Answers(tmp_path_factory)


@pytest.mark.parametrize("reader", sorted(READERS))
@pytest.mark.parametrize("kind", ["job", "step"])
def test_no_reader_shows_what_is_quarantined(said: Answers, kind: str, reader: str) -> None:
    assert MARK not in said[kind][reader]


@pytest.mark.parametrize(
    ("kind", "reader"),
    [("job", name) for name in sorted(READERS.keys() - SILENT - OF_STEP)]
    + [("step", name) for name in sorted(READERS.keys() - SILENT - OF_JOB)],
)
def test_each_reader_says_why(said: Answers, kind: str, reader: str) -> None:
    text = said[kind][reader]
    assert WHY in text or "quarantined this content" in text, text


@pytest.mark.parametrize("reader", sorted(READERS.keys() - SILENT))
def test_the_same_reader_shows_it_of_an_ordinary_job(said: Answers, reader: str) -> None:
    """Else the tests above could not fail."""
    assert MARK in said["completed"][reader] + said["failed"][reader]
