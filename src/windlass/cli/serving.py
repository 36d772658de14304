"""What the commands that run things do, and what they say meanwhile."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import uvloop
from rich.text import Text

from windlass.api.console_files import find_console
from windlass.app import extending
from windlass.app.demo.demo import Demo, demonstrating
from windlass.app.embedded.postmaster import find_running
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.app.first_key import KEY_FILE, SECRET_FILE
from windlass.app.job import Job, failure_of
from windlass.app.schema import prepare
from windlass.app.service import App, Serving, holding, is_held, serving
from windlass.app.settings import Settings, flag, masked
from windlass.app.windlass import Windlass
from windlass.cli import marks
from windlass.cli.answering import answering, answering_if_installed, is_installed, measured
from windlass.cli.arguments import fitting_inputs
from windlass.cli.command import Ambient
from windlass.cli.ending import run_on
from windlass.cli.exits import Exit, exit_for_job
from windlass.cli.live import follow
from windlass.cli.local_desk import LocalDesk
from windlass.cli.session import opened
from windlass.cli.wire import error_json
from windlass.core.errors import WindlassError
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.pure.job_failed import fault_frames
from windlass.recipe.app import load
from windlass.store.database import Database
from windlass.telemetry.logs import configure
from windlass.views import read

_log = logging.getLogger("windlass.process")

REVIVE_EVERY_S = 1.0
COLLECT_AFTER = 20_000
EXAMPLES = "windlass.examples"
DEMO_RECIPE = "trailer"
DEMO_INPUTS = {"topic": "the sea"}
# How `run` knows the jobs that it made.
RUN_LABEL = {"windlass": "run"}


def start(at: Ambient, main: Coroutine[Any, Any, Exit]) -> Exit:
    """Run a long-lived command on the quick loop, with its log on standard error."""
    try:
        configure(at.settings.log_format, at.settings.log_level)
    except BaseException:
        main.close()
        raise

    async def guarded() -> Exit:
        task = asyncio.current_task()
        assert task is not None
        # Until a command handles the signal itself, SIGTERM is like Ctrl-C: what was started is stopped in order.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await main

    _spare_the_collector()
    return run_on(uvloop.new_event_loop(), guarded())


def _spare_the_collector() -> None:
    """What was imported stays for good, and a batch of steps is thousands of objects that live a moment.

    Looking through them every few hundred objects, as Python does by itself, is a good part of what a short step costs.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)


def _note(at: Ambient, text: str) -> None:
    """Say it to whoever sits there, or, where lines are for machines, in the log."""
    if at.settings.log_format == "json":
        _log.info(text)
    else:
        at.screen.note(text)


def _started(at: Ambient, text: str) -> None:
    """Say what runs, and to people also how to stop it."""
    _note(at, text if at.settings.log_format == "json" else f"{text}; Ctrl-C stops")


@asynccontextmanager
async def _database(settings: Settings, *, is_throwaway: bool = False) -> AsyncIterator[str]:
    """A database with this release's schema: the one that is set, or an embedded server of our own."""
    if settings.database_url is not None:
        await _prepared(settings.database_url, settings)
        yield settings.database_url
        return
    server = EmbeddedPostgres(None if is_throwaway else settings.database_path, durable=not is_throwaway)
    dsn = await asyncio.to_thread(server.start)
    keeper = asyncio.create_task(_keep(server), name="windlass-postgres")
    try:
        await _prepared(dsn, settings)
        yield dsn
    finally:
        keeper.cancel()
        await asyncio.wait([keeper])
        await asyncio.to_thread(server.stop)


async def _keep(server: EmbeddedPostgres) -> None:
    """Start the server again when it has died: everything else waits for it, and nobody else would."""
    while True:
        await asyncio.sleep(REVIVE_EVERY_S)
        try:
            if await asyncio.to_thread(server.revive):
                _log.warning("PostgreSQL in %s had ended and was started again; its log is %s", server.path, server.log)
        except (WindlassError, OSError) as error:
            _log.warning("PostgreSQL in %s has ended and cannot be started now: %s", server.path, error)


async def _prepared(dsn: str, settings: Settings) -> None:
    db = await Database.open(dsn, max_size=2)
    try:
        await prepare(db, settings)
    finally:
        await db.close()


@asynccontextmanager
async def _demo(windlass: Windlass, *, is_wanted: bool) -> AsyncIterator[Demo | None]:
    """The demo of the first minute, where it is wanted and there is a console to watch it in."""
    if not is_wanted or not is_installed():
        yield None
        return
    async with demonstrating(windlass) as demo:
        yield demo


async def up(
    at: Ambient,
    targets: list[str] | None,
    queues: list[str] | None,
    concurrency: int | None,
    listen: str | None,
    *,
    with_demo: bool | None = None,
) -> Exit:
    """Everything in one process, until told to stop. The demo is not said to be wanted: with the examples, then."""
    began_s = time.monotonic()
    settings = at.settings
    listen, queues = flag("--listen", "listen", listen), flag("--queue", "queues", queues)
    app = load(*(targets or [EXAMPLES]), *extending.targets(settings))
    is_wanted = next((said for said in (with_demo, settings.demo) if said is not None), targets is None)
    with holding(settings.home):
        async with (
            _database(settings) as dsn,
            Windlass.connect(dsn, settings=settings) as windlass,
            measured(windlass, "up", is_served=is_installed()),
            serving(
                windlass, app, queues=queues, concurrency=concurrency, is_newest=settings.database_url is None
            ) as service,
            _demo(windlass, is_wanted=is_wanted) as demo,
            answering_if_installed(windlass, listen, service.services, demo) as url,
        ):
            link = await _link(windlass, url, demo) if url is not None else None
            _report(at, settings, dsn, service)
            _report_api(at, settings, url)
            _next_commands(at, app, url, link)
            at.screen.line(Text(f"\nready in {marks.duration(time.monotonic() - began_s)}", style="bold"))
            if demo is not None:
                demo.start()  # only now: it would take the processor from what somebody waits for
            await service.until_stopped()
            _note(at, "stopping; once more to stop at once")
    _note(at, "stopped; the data stays, and open jobs go on at the next `windlass up`")
    return Exit.DONE


async def _link(windlass: Windlass, url: str, demo: Demo | None) -> str:
    """Where the console begins: at the demo's job if there is a demo, and signed in, if the keys are ours to make."""
    from windlass.app.console_link import console_token

    page = f"jobs/{await demo.submit()}" if demo is not None else ""
    token = await console_token(windlass)
    return f"{url}/console/{page}" + (f"?token={token}" if token is not None else "")


def _report(at: Ambient, settings: Settings, dsn: str, service: Serving) -> None:
    where = masked(dsn) if settings.database_url else f"PostgreSQL in {settings.database_path}"
    worker = service.worker
    lines = {
        "database": where,
        "engine": "timers, leases, deadlines, retention",
        "worker": f"{worker.id if worker else 'none'}",
        "recipes": " · ".join(f"{name} v{version}" for name, version in service.versions.items()) or "none",
    }
    for name, text in lines.items():
        at.screen.line(Text(marks.glyph("COMPLETED"), style="green").append(f" {name:<10}{text}", style="default"))


def _report_api(at: Ambient, settings: Settings, url: str | None) -> None:
    told = url or "not installed (pip install 'windlass[service]')"
    state = "SKIPPED" if url is None else "COMPLETED"
    at.screen.line(Text(marks.glyph(state), style=marks.colour(state)).append(f" {'api':<10}{told}", style="default"))
    if url is not None and settings.membership_url is None:
        at.screen.line(f"  {'key':<10}{settings.home / KEY_FILE}")
    if url is not None and not settings.secret:
        at.screen.line(f"  {'secret':<10}{settings.home / SECRET_FILE}")
    if url is not None:
        _report_console(at)


def _report_console(at: Ambient) -> None:
    is_full = find_console() is not None
    state = "COMPLETED" if is_full else "SKIPPED"
    told = "served here" if is_full else "the lite page (for the full one: windlass console build)"
    at.screen.line(
        Text(marks.glyph(state), style=marks.colour(state)).append(f" {'console':<10}{told}", style="default")
    )


def _next_commands(at: Ambient, app: App, url: str | None, link: str | None) -> None:
    home = f"--home {at.home} " if at.home else ""
    recipe = DEMO_RECIPE if DEMO_RECIPE in app.recipes else next(iter(app.recipes), "RECIPE")
    schema = app.recipes[recipe].plan.inputs_schema if recipe in app.recipes else {}
    flags = "".join(f" --input {name}=…" for name in schema.get("required", ()))
    at.screen.line("")
    for label, text in (
        *([("Console", link)] if link else []),
        ("Run one", f"windlass {home}submit {recipe}{flags} --follow"),
        ("See all", f"windlass {home}jobs"),
        ("Watch", f"windlass {home}watch @last"),
        *([("Ask", f'curl -H "X-API-Key: $(cat {at.settings.home / KEY_FILE})" {url}/jobs')] if url else []),
        ("Stop", "Ctrl-C (jobs go on at the next up)"),
    ):
        at.screen.line(f"  {label:<9}{text}")


async def demo(at: Ambient) -> Exit:
    """The example recipe, to its end."""
    app = load(EXAMPLES)
    plan = app.recipes[DEMO_RECIPE].plan
    return await _one_job(at, app, lambda windlass: windlass.submit(plan, inputs=DEMO_INPUTS), is_demo=True)


async def run(at: Ambient, target: str, apps: list[str], inputs: list[str], *, key: str | None, is_new: bool) -> Exit:
    """One recipe of a file or module, to its end; a run that was cut short goes on where it was."""
    plan = load(target).recipe().plan
    given = fitting_inputs(inputs, plan)

    async def submit(windlass: Windlass) -> Job:
        left = None if is_new or key is not None else await _left_open(windlass, plan.recipe, given)
        if left is not None:
            at.screen.note(f"going on with job {left}, which an earlier run left open; --new starts another")
            return windlass.job(left)
        return await windlass.submit(plan, inputs=given, key=key, labels=RUN_LABEL)

    return await _one_job(at, load(target, *apps), submit)


async def _left_open(windlass: Windlass, recipe: str, inputs: dict[str, Any]) -> UUID | None:
    """The job of an earlier run of the same recipe with the same inputs, if that run did not see its end."""
    still_open = [state for state in JobState if state not in JOB_TERMINAL]
    found = await read.jobs(windlass.db, states=still_open, recipe=recipe, labels=RUN_LABEL, limit=100)
    return next((job.id for job in found if job.input == inputs), None)


async def _one_job(
    at: Ambient, app: App, submit: Callable[[Windlass], Awaitable[Job]], *, is_demo: bool = False
) -> Exit:
    settings = at.settings
    # A worker of `up` serves the same queues and may not have this app's steps, so its folder is left alone.
    is_throwaway = settings.database_url is None and is_held(settings.home)
    if is_throwaway:
        at.screen.note(f"`windlass up` holds {settings.home}; this runs on a throwaway database")
    async with (
        _database(settings, is_throwaway=is_throwaway) as dsn,
        Windlass.connect(dsn, settings=settings) as windlass,
        serving(windlass, app, is_newest=settings.database_url is None) as service,
    ):
        if is_demo:
            _report(at, settings, dsn, service)
        job = await submit(windlass)
        try:
            if at.as_json:
                state = await job.wait()
            else:
                console = at.screen.out if is_demo else at.screen.err
                state = await follow(LocalDesk(windlass), job.id, console, hint="Ctrl-C stops; run it again to go on")
        except asyncio.CancelledError:
            at.screen.note(f"stopped; job {job.id} goes on when this is run again")
            raise
        # An embedded server stops with this command, so `windlass why` would find nothing.
        is_kept = settings.database_url is not None
        code = await _conclude(at, windlass, job, state, is_demo=is_demo, is_kept=is_kept)
    if code is not Exit.DONE and not is_kept:
        home = f"--home {at.home} " if at.home else ""
        at.screen.note(
            "its database was a throwaway; with --home DIR it would stay"
            if is_throwaway
            else f"its database has stopped with this command. To look at the job: `windlass {home}up`, "
            f"then `windlass {home}show {job.id}`"
        )
    return code


async def _conclude(
    at: Ambient, windlass: Windlass, job: Job, state: JobState, *, is_demo: bool, is_kept: bool
) -> Exit:
    code = exit_for_job(state)
    output = await job.result() if state is JobState.COMPLETED else None
    failure = None if state is JobState.COMPLETED else await failure_of(windlass.db, await job.view())
    if at.as_json:
        at.screen.document({"id": job.id, "state": state, "output": output, "error": error_json(failure)})
    elif failure is not None:
        remedy = failure.remedy if is_kept else None
        at.screen.error(failure.message, remedy, int(code), fault_frames(failure.fault))
    else:
        at.screen.document(output)
    if is_demo:
        at.screen.line(Text(str(state), style=f"bold {marks.colour(str(state))}"))
    return code


async def worker(
    at: Ambient, targets: list[str] | None, queues: list[str] | None, concurrency: int | None, *, with_loops: bool
) -> Exit:
    """A worker, the engine's loops, or both, until told to stop."""
    queues = flag("--queue", "queues", queues)
    app = load(*targets, *extending.targets(at.settings)) if targets is not None else None
    async with (
        opened(at) as windlass,
        measured(windlass, "engine" if app is None else "worker"),
        serving(windlass, app, with_loops=with_loops, queues=queues, concurrency=concurrency) as service,
    ):
        serves = f"worker {service.worker.id}" if service.worker else "engine"
        _started(at, f"{serves} on {masked(windlass.dsn)}")
        await service.until_stopped()
        _note(at, "stopping; once more to stop at once")
    return Exit.DONE


async def serve_api(at: Ambient, listen: str | None) -> Exit:
    """The API alone, until told to stop."""
    listen = flag("--listen", "listen", listen)
    async with (
        opened(at) as windlass,
        measured(windlass, "api", is_served=True),
        answering(windlass, listen, with_key=False) as url,
    ):
        service = Serving(None, {})
        if at.settings.log_format == "json":
            at.screen.record({"url": url})
        else:
            at.screen.line(url)
        if not at.settings.secret:
            _note(at, f"the secret is in {at.settings.home / SECRET_FILE}; other servers need it as WINDLASS_SECRET")
        _started(at, f"api on {masked(windlass.dsn)}")
        await service.until_stopped()
        _note(at, "stopping: requests under way are finished, streams are sent elsewhere")
    return Exit.DONE


async def greet(at: Ambient) -> Exit:
    """How things stand, and the likeliest next commands."""
    dsn = at.settings.database_url or find_running(at.settings.database_path)
    screen = at.screen
    if dsn is None:
        screen.line(f"windlass is not running here ({at.settings.home})")
        commands = ("windlass up", "windlass demo", "windlass --help")
    else:
        async with opened(replace(at, database=dsn)) as windlass:
            newest = await read.jobs(windlass.db, limit=200)
        still_open = sum(job.state not in JOB_TERMINAL for job in newest)
        screen.line(f"{masked(dsn)}: {still_open} of the newest {len(newest)} jobs are open")
        commands = ("windlass jobs", "windlass watch @last", "windlass --help")
    for text in commands:
        screen.line(f"  {text}")
    return Exit.DONE
