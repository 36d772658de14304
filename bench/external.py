"""An installation whose steps are done by a provider: the API, a worker with the engine, and the file that names it."""

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
from bench.process import ROOT, spawn, stop
from bench.schema import make_schema
from bench.servers.postgres import Postgres
from bench.session import SystemFailed, make_database
from windlass.app.windlass import Windlass

PROVIDER = "elsewhere"
# Where nobody listens.
NOBODY = "http://127.0.0.1:9"
NOWHERE = "bench.nowhere:NowhereAdapter"
SUBMIT_BATCH = 1_000
LIMIT_S = 1_800.0
# Places and requests without end, asked for when the test says so.
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

    def __init__(self, dsn: str, folder: Path, *, adapter: str, url: str, has_webhooks: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.dsn = dsn
        self.folder = folder
        self.secret = f"whsec_{b64encode(secrets.token_bytes(32)).decode()}"
        file = folder / "providers.yaml"
        file.write_text(FILE.format(adapter=adapter, url=url, webhook=SIGNED if has_webhooks else ""))
        self._environment = {
            "WINDLASS_DATABASE_URL": dsn,
            "WINDLASS_HOME": str(folder),
            "WINDLASS_PROVIDERS": str(file),
            "ELSEWHERE_SECRET": self.secret,
            "BENCH_COUNTER": str(folder / "counter.bin"),
            # Where the adapter of these tests is.
            "PYTHONPATH": str(ROOT),
        }
        self.api = Api(dsn, folder, self._environment)
        self._worker: subprocess.Popen[bytes] | None = None

    @classmethod
    async def make(
        cls, postgres: Postgres, folder: Path, *, adapter: str = NOWHERE, url: str = NOBODY, has_webhooks: bool = True
    ) -> Self:
        """In a database of its own, named for the folder."""
        dsn = await make_database(postgres, f"windlass_{folder.name}")
        await make_schema(dsn)
        return cls(dsn, folder, adapter=adapter, url=url, has_webhooks=has_webhooks)

    def start(self) -> Self:
        """Start both processes."""
        self.api.start()
        command = [WINDLASS, "worker", "bench.windlass_app"]
        self._worker = spawn(command, log=self.folder / "worker.log", environment=self._environment)
        return self

    @property
    def worker_pid(self) -> int:
        """The worker's process."""
        assert self._worker is not None
        return self._worker.pid

    def stop(self) -> None:
        """End them."""
        if self._worker is not None:
            stop([self._worker])
        self.api.stop()

    async def park(self, count: int) -> float:
        """Submit so many jobs and wait until the provider has all of their work; how many seconds that took."""
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
