"""Implements the commands that run processes: `up`, `demo`, `run`, `worker` and `serve`."""

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
from windlass.app.embedded.keeper import Keeper
from windlass.app.embedded.postmaster import find_running
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.app.first_key import KEY_FILE, SECRET_FILE
from windlass.app.job import Job
from windlass.app.schema import prepare
from windlass.app.service import App, Serving, holding, is_held, serving
from windlass.app.settings import Settings, flag, masked
from windlass.app.starter_policy import policy_line, publish_starter
from windlass.app.windlass import Windlass
from windlass.cli import marks
from windlass.cli.answering import answering, answering_if_installed, is_installed, measured
from windlass.cli.arguments import typed_inputs
from windlass.cli.command import Ambient
from windlass.cli.exits import Exit
from windlass.cli.session import opened
from windlass.cli.shutdown import run_on
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.pure.service import Services
from windlass.recipe.app import load
from windlass.recipe.schema import check_inputs
from windlass.store.database import Database
from windlass.telemetry.logs import configure
from windlass.views import read

_log = logging.getLogger("windlass.process")

COLLECT_AFTER = 20_000
EXAMPLES = "windlass.examples"
DEMO_RECIPE = "trailer"
DEMO_INPUTS = {"topic": "the sea"}
# The label by which `run` finds the jobs that it made.
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
        # Until a command handles the signal itself, SIGTERM acts like Ctrl-C: the started parts stop in order.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await main

    _spare_the_collector()
    return run_on(uvloop.new_event_loop(), guarded())


def _spare_the_collector() -> None:
    """Exempt imported objects from garbage collection, and make collections rarer.

    Imported objects live as long as the process, and a batch of steps makes thousands of short-lived objects. With
    Python's default threshold, collections are a large part of the cost of a short step.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)


def _note(at: Ambient, text: str) -> None:
    """Write a note to standard error, or to the log if the log is JSON."""
    if at.settings.log_format == "json":
        _log.info(text)
    else:
        at.screen.note(text)


def _started(at: Ambient, text: str) -> None:
    """Report what runs. For people, the text also says how to stop it."""
    _note(at, text if at.settings.log_format == "json" else f"{text}; Ctrl-C stops")


@asynccontextmanager
async def _database(settings: Settings, *, is_throwaway: bool = False) -> AsyncIterator[str]:
    """Yield a database with this release's schema: the configured database, or an embedded server."""
    if settings.database_url is not None:
        await _prepared(settings.database_url, settings)
        yield settings.database_url
        return
    server = EmbeddedPostgres(None if is_throwaway else settings.database_path, durable=not is_throwaway)
    services = Services()
    try:
        keeper = await services.start(Keeper(server))
        await _prepared(keeper.dsn, settings)
        yield keeper.dsn
    finally:
        await services.stop()


async def _prepared(dsn: str, settings: Settings) -> None:
    db = await Database.open(dsn, max_size=2)
    try:
        await prepare(db, settings)
    finally:
        await db.close()


@asynccontextmanager
async def _demo(windlass: Windlass, *, is_wanted: bool) -> AsyncIterator[Demo | None]:
    """Yield the demo of the first minute if it is wanted and the server is installed, whose console shows it."""
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
    with_policy: bool = True,
) -> Exit:
    """Run everything in one process until a signal stops it.

    If neither `with_demo` nor the setting decides about the demo, it starts when no target is named. `with_policy`
    allows to publish the starter policy.
    """
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
            _starter_policy(windlass, is_wanted=with_policy),
            serving(
                windlass, app, queues=queues, concurrency=concurrency, is_newest=settings.database_url is None
            ) as service,
            _demo(windlass, is_wanted=is_wanted) as demo,
            answering_if_installed(windlass, listen, demo) as url,
        ):
            link = await _link(windlass, url, demo) if url is not None else None
            _report(at, settings, dsn, service, await policy_line(windlass))
            _report_api(at, settings, url)
            _next_commands(at, app, url, link)
            at.screen.line(Text(f"\nready in {marks.duration(time.monotonic() - began_s)}", style="bold"))
            if demo is not None:
                # The demo starts last, because it would slow down the start that the user waits for.
                await service.services.start(demo, is_needed=False)
            await service.until_stopped()
            _note(at, "stopping; once more to stop at once")
    _note(at, "stopped; the data stays, and open jobs go on at the next `windlass up`")
    return Exit.DONE


@asynccontextmanager
async def _starter_policy(windlass: Windlass, *, is_wanted: bool) -> AsyncIterator[None]:
    """Publish the starter policy, before the first job can be submitted."""
    if is_wanted:
        await publish_starter(windlass)
    yield


async def _link(windlass: Windlass, url: str, demo: Demo | None) -> str:
    """Return the console's address: the demo's job if there is a demo, signed in if Windlass makes the keys."""
    from windlass.app.console_link import console_token

    page = f"jobs/{await demo.submit()}" if demo is not None else ""
    token = await console_token(windlass)
    return f"{url}/console/{page}" + (f"?token={token}" if token is not None else "")


def _report(at: Ambient, settings: Settings, dsn: str, service: Serving, policy: str) -> None:
    where = masked(dsn) if settings.database_url else f"PostgreSQL in {settings.database_path}"
    worker = service.worker
    lines = {
        "database": where,
        "engine": "timers, leases, deadlines, retention",
        "worker": f"{worker.id if worker else 'none'}",
        "recipes": " · ".join(f"{name} v{version}" for name, version in service.versions.items()) or "none",
        "policy": policy,
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
        at.screen.line(f"  {'docs':<10}{url}/docs/")


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
    """Run the example recipe to its end."""
    app = load(EXAMPLES)
    plan = app.recipes[DEMO_RECIPE].plan
    return await _one_job(at, app, lambda windlass: windlass.submit(plan, inputs=DEMO_INPUTS), is_demo=True)


async def run(at: Ambient, target: str, apps: list[str], inputs: list[str], *, key: str | None, is_new: bool) -> Exit:
    """Run one recipe of a file or module to its end. An interrupted run continues where it stopped."""
    plan = load(target).recipe().plan
    given = check_inputs(plan, typed_inputs(inputs, plan.inputs_schema))

    async def submit(windlass: Windlass) -> Job:
        left = None if is_new or key is not None else await _left_open(windlass, plan.recipe, given)
        if left is not None:
            at.screen.note(f"going on with job {left}, which an earlier run left open; --new starts another")
            return windlass.job(left)
        return await windlass.submit(plan, inputs=given, key=key, labels=RUN_LABEL)

    return await _one_job(at, load(target, *apps), submit)


async def _left_open(windlass: Windlass, recipe: str, inputs: dict[str, Any]) -> UUID | None:
    """Return the unfinished job of an earlier run of the recipe with the same inputs, if there is such a job."""
    still_open = [state for state in JobState if state not in JOB_TERMINAL]
    found = await read.jobs(windlass.db, states=still_open, recipe=recipe, labels=RUN_LABEL, limit=100)
    return next((job.id for job in found if job.input == inputs), None)


async def _one_job(
    at: Ambient, app: App, submit: Callable[[Windlass], Awaitable[Job]], *, is_demo: bool = False
) -> Exit:
    from windlass.cli.concluding import conclude
    from windlass.cli.live import follow
    from windlass.cli.local.backend import local_client

    settings = at.settings
    # A worker of `up` serves the same queues and may lack this app's steps, so this command leaves its folder alone.
    is_throwaway = settings.database_url is None and is_held(settings.home)
    if is_throwaway:
        at.screen.note(f"`windlass up` holds {settings.home}; this runs on a throwaway database")
    async with (
        _database(settings, is_throwaway=is_throwaway) as dsn,
        Windlass.connect(dsn, settings=settings) as windlass,
        serving(windlass, app, is_newest=settings.database_url is None) as service,
    ):
        if is_demo:
            _report(at, settings, dsn, service, await policy_line(windlass))
        job = await submit(windlass)
        client = local_client(windlass)
        try:
            if at.as_json:
                status = await job.wait()
            else:
                console = at.screen.out if is_demo else at.screen.err
                status = await follow(client, job.job_id, console, hint="Ctrl-C stops; run it again to go on")
        except asyncio.CancelledError:
            at.screen.note(f"stopped; job {job.job_id} goes on when this is run again")
            raise
        # An embedded server stops with this command, so `windlass why` would find nothing.
        is_kept = settings.database_url is not None
        code = await conclude(at, client, job.job_id, has_remedy=is_kept)
        if is_demo:
            at.screen.line(Text(str(status), style=f"bold {marks.colour(str(status))}"))
    if code is not Exit.DONE and not is_kept:
        home = f"--home {at.home} " if at.home else ""
        at.screen.note(
            "its database was a throwaway; with --home DIR it would stay"
            if is_throwaway
            else f"its database has stopped with this command. To look at the job: `windlass {home}up`, "
            f"then `windlass {home}show {job.job_id}`"
        )
    return code


async def worker(
    at: Ambient, targets: list[str] | None, queues: list[str] | None, concurrency: int | None, *, with_loops: bool
) -> Exit:
    """Run a worker, the engine's loops, or both, until a signal stops them."""
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
    """Run the API alone until a signal stops it."""
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
    """Print the number of open jobs and the likeliest next commands."""
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
