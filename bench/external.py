"""An installation whose steps use a provider: the API, a worker with the engine, and the providers file."""

import asyncio
import secrets
import subprocess
import time
from base64 import b64encode
from pathlib import Path
from typing import Self

import asyncpg

from bench import windlass_app
from bench.http_server import WINDLASS, Api
from bench.process import ROOT, code_of, spawn, stop
from bench.schema import make_schema_of
from bench.servers.postgres import Postgres
from bench.session import SystemFailed, make_database
from windlass.app.windlass import Windlass

PROVIDER = "elsewhere"
# An address without a listener.
UNUSED_URL = "http://127.0.0.1:9"
NOWHERE = "bench.nowhere:NowhereAdapter"
SUBMIT_BATCH = 1_000
LIMIT_S = 1_800.0
# Limits out of the way; polls happen only when the test makes them due.
FILE = """\
providers:
  elsewhere:
    adapter: {adapter}
    base_url: {url}
    concurrency: 100000
    rate: 100000
    poll: [1d]
    wait: 2d
    {webhook}
"""
SIGNED = "webhook: {profile: standard, secret_env: ELSEWHERE_SECRET}"
PARKED = "SELECT count(*) FROM windlass.provider_jobs WHERE state = 'RUNNING'"


class Installation:
    """One database, one API process, one worker process that runs the engine's loops too."""

    def __init__(
        self, dsn: str, folder: Path, *, adapter: str, url: str, has_webhooks: bool, app: str, tree: Path
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.dsn = dsn
        self.folder = folder
        self._tree = tree
        self._app = app
        self.secret = f"whsec_{b64encode(secrets.token_bytes(32)).decode()}"
        file = folder / "providers.yaml"
        file.write_text(FILE.format(adapter=adapter, url=url, webhook=SIGNED if has_webhooks else ""))
        self._environment = {
            "WINDLASS_DATABASE_URL": dsn,
            "WINDLASS_HOME": str(folder),
            "WINDLASS_PROVIDERS": str(file),
            "ELSEWHERE_SECRET": self.secret,
            "BENCH_COUNTER": str(folder / "counter.bin"),
            # Where the adapter of these tests is, too.
            **code_of(tree),
        }
        self.api = Api(dsn, folder, self._environment, tree=tree)
        self._worker: subprocess.Popen[bytes] | None = None

    @classmethod
    async def make(
        cls,
        postgres: Postgres,
        folder: Path,
        *,
        adapter: str = NOWHERE,
        url: str = UNUSED_URL,
        has_webhooks: bool = True,
        app: str = "bench.windlass_app",
        tree: Path = ROOT,
    ) -> Self:
        """Create an installation in a new database, named after the folder."""
        dsn = await make_database(postgres, f"windlass_{folder.name}")
        make_schema_of(tree, dsn)
        return cls(dsn, folder, adapter=adapter, url=url, has_webhooks=has_webhooks, app=app, tree=tree)

    def start(self) -> Self:
        """Start both processes."""
        self.api.start()
        command = [WINDLASS, "worker", self._app]
        log = self.folder / "worker.log"
        self._worker = spawn(command, log=log, environment=self._environment, folder=self._tree)
        return self

    @property
    def worker_pid(self) -> int:
        """The process id of the worker."""
        assert self._worker is not None
        return self._worker.pid

    def stop(self) -> None:
        """End both processes."""
        if self._worker is not None:
            stop([self._worker])
        self.api.stop()

    async def park(self, count: int) -> float:
        """Submit this many jobs and wait until the provider has all of their work; return the seconds."""
        connection = await asyncpg.connect(self.dsn)
        try:
            async with Windlass.connect(self.dsn) as windlass:
                base = await connection.fetchval(PARKED)
                started = time.monotonic()
                for start in range(0, count, SUBMIT_BATCH):
                    size = min(SUBMIT_BATCH, count - start)
                    await windlass.submit_many(windlass_app.elsewhere, [{"n": n} for n in range(start, start + size)])
                while (parked := await connection.fetchval(PARKED) - base) < count:
                    if time.monotonic() - started > LIMIT_S:
                        raise SystemFailed(f"only {parked:,} of {count:,} jobs are parked")
                    await asyncio.sleep(0.1 if count < 5_000 else 0.5)
                return time.monotonic() - started
        finally:
            await connection.close()
