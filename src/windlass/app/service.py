"""Engine and worker in one process: the common part of `up`, `demo`, `run`, `worker` and `engine`."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol

from windlass.app import extending
from windlass.app.embedded.home import make_private
from windlass.app.extended import extended
from windlass.app.following import Following
from windlass.app.windlass import HasPlan, Windlass
from windlass.core.errors import BadSetting, WrongState
from windlass.providers.poller import Poller
from windlass.pure.service import Part, Services
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.migrate import check
from windlass.worker.handler import StepLike
from windlass.worker.worker import Worker


class App(Protocol):
    """An app to serve: handlers, and the recipes that use them."""

    @property
    def steps(self) -> Mapping[str, StepLike]:
        """The handlers, by name."""
        ...

    @property
    def recipes(self) -> Mapping[str, HasPlan]:
        """The recipes, by name."""
        ...


class WorkerService:
    """A worker as a service: `start` returns once it claims; `stop` drains it and raises the error that it died of."""

    name = "worker"

    def __init__(self, worker: Worker, on_end: Callable[[], None]) -> None:
        self._worker = worker
        self._on_end = on_end
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to claim."""
        self._task = asyncio.create_task(self._worker.run(), name="windlass-worker")
        await _ready(self._worker, self._task)
        self._task.add_done_callback(lambda _: self._on_end())

    async def stop(self) -> None:
        """Stop claiming, and wait for the running steps."""
        if self._task is not None:
            self._worker.stop()
            await self._task

    def alive(self) -> float | None:
        """Return None: the lease of the worker tells it."""
        return None

    def ready(self) -> bool:
        """Tell whether the worker holds a lease and claims."""
        return self._worker.ready.is_set()


class Serving:
    """The services of this process. `stop` asks the worker to drain; a second call hands everything back at once."""

    def __init__(self, worker: Worker | None, versions: dict[str, int], services: Services | None = None) -> None:
        self.worker = worker
        self.versions = versions
        self.services = services or Services()
        self.poller: Poller | None = None
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """End; the second call ends at once."""
        if self.worker is not None:
            self.worker.stop(now=self._stop.is_set())
        self._stop.set()

    async def until_stopped(self) -> None:
        """Wait for `stop`, or for a signal that calls it."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        try:
            await self._stop.wait()
        finally:
            # While the worker drains, a second signal must still reach it.
            if self.worker is None:
                for number in numbers:
                    loop.remove_signal_handler(number)


@asynccontextmanager
async def serving(
    windlass: Windlass,
    app: App | None,
    *,
    with_loops: bool = True,
    with_webhook_sender: bool = True,
    queues: Sequence[str] | None = None,
    concurrency: int | None = None,
    is_newest: bool = False,
) -> AsyncIterator[Serving]:
    """Register the app's recipes, run the engine's loops and a worker until the block ends, then drain the worker.

    With the loops run the followers of a served installation, its webhook sender, and the poller of the configured
    providers. A worker that ends without being stopped ends the block too, and its error is raised. With `is_newest`
    the app's recipes become the newest versions, also if they were registered before.
    """
    await windlass.announce_providers()
    found = extending.load(windlass.settings) if app is not None else ()
    await check(windlass.db, extending.folders(found))
    with extended(windlass, found):
        async with _served(windlass, app, with_loops, with_webhook_sender, queues, concurrency, is_newest) as service:
            yield service


@asynccontextmanager
async def _served(
    windlass: Windlass,
    app: App | None,
    with_loops: bool,
    with_webhook_sender: bool,
    queues: Sequence[str] | None,
    concurrency: int | None,
    is_newest: bool,
) -> AsyncIterator[Serving]:
    versions = await windlass.register(*app.recipes.values(), newest=is_newest) if app is not None else {}
    worker = windlass.worker(app, queues=queues, concurrency=concurrency) if app is not None else None
    serving = Serving(worker, versions, Services(windlass.services))
    services = serving.services
    try:
        # The evaluator belongs to the process, and ends with it.
        await services.start(Part("evaluator", is_ready=lambda: not shared_evaluator().is_closed))
        await windlass.watch_policy(services)
        if with_loops:
            await services.start(windlass.loops())
            await services.start(Following(windlass, with_webhook_sender=with_webhook_sender))
            if len(windlass.providers):
                serving.poller = await services.start(windlass.poller())
        if worker is not None:
            worker.report = windlass.services.states
            await services.start(WorkerService(worker, serving.stop))
        yield serving
    except BaseException:
        # The block was cut short: hand running steps back rather than wait for them.
        if worker is not None:
            worker.stop(now=True)
        raise
    finally:
        await services.stop()


async def _ready(worker: Worker, running: asyncio.Task[None]) -> None:
    """Wait until the worker claims; raise its error if it died first."""
    ready = asyncio.create_task(worker.ready.wait())
    await asyncio.wait([ready, running], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if running.done():
        running.result()


@contextmanager
def holding(home: Path) -> Iterator[None]:
    """Hold the lock of the only `windlass up` of this folder. The kernel frees the lock when its holder dies."""
    path = home / "up.lock"
    try:
        make_private(home)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadSetting(
            f"the folder {home} cannot be used: {error.strerror or error}",
            remedy="Set WINDLASS_HOME to a folder that this user may write to",
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            raise WrongState(
                f"another `windlass up` (process {holder or 'unknown'}) holds {home}",
                remedy="Use that one, stop it with Ctrl-C, or give another folder with --home",
            ) from None
        with contextlib.suppress(OSError):  # the holder's pid serves only the message above
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)


def is_held(home: Path) -> bool:
    """Tell whether a `windlass up` holds this folder now."""
    try:
        with holding(home):
            return False
    except WrongState:
        return True
