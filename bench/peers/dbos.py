"""DBOS on PostgreSQL: workflows enqueued by a DBOSClient, one worker, queue polled every 20 ms (default: 1 s)."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from dbos import DBOS, DBOSClient

from bench.counter import tick
from bench.process import spawn, stop
from bench.system import System, target

POLL_S = 0.02
CLIENT_THREADS = 8
SCHEMA_LIMIT_S = 60.0


def url() -> str:
    """Return the database's address for SQLAlchemy."""
    return target().dsn.replace("postgresql://", "postgresql+psycopg://")


def work() -> None:
    """Run the worker process."""
    DBOS(
        config={
            "name": "bench-app",
            "system_database_url": url(),
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": "local",
        }
    )

    @DBOS.step()
    def step() -> None:
        tick()

    @DBOS.workflow(name="one")
    def one() -> None:
        tick()

    @DBOS.workflow(name="three")
    def three() -> None:
        step()
        step()
        step()

    @DBOS.workflow(name="fan")
    def fan(width: int) -> int:
        handles = [DBOS.enqueue_workflow("q", one) for _ in range(width)]
        for handle in handles:
            handle.get_result()
        return width

    DBOS.launch()
    DBOS.register_queue("q", polling_interval_sec=POLL_S)
    threading.Event().wait()


class Peer(System):
    """The submitting client."""

    def prepare(self) -> None:
        # The first start of a worker creates the schema and the queue's row.
        worker = spawn(self.worker(), log=Path(target().folder) / "dbos-prepare.log")
        deadline = time.monotonic() + SCHEMA_LIMIT_S
        try:
            while not self._has_queue():
                if time.monotonic() > deadline:
                    raise TimeoutError("DBOS made no schema")
                time.sleep(0.5)
        finally:
            stop([worker])
        self._client = DBOSClient(system_database_url=url())
        self._db: psycopg.Connection[Any] = psycopg.connect(target().dsn, autocommit=True)

    def worker(self) -> list[str]:
        return [sys.executable, "-m", "bench.peers.dbos"]

    def submit(self, count: int) -> None:
        self._many("one", count)

    def open_jobs(self) -> int:
        rows = self._db.execute("SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')")
        return int(rows.fetchone()[0])  # type: ignore[index]

    def roundtrip(self) -> None:
        self._enqueue("one").get_result(polling_interval_sec=0.002)

    def chain(self, count: int) -> None:
        self._many("three", count)

    def fan(self, width: int) -> None:
        assert self._enqueue("fan", width).get_result(polling_interval_sec=0.02) == width

    def close(self) -> None:
        self._client.destroy()
        self._db.close()

    def _enqueue(self, workflow: str, *arguments: Any) -> Any:
        options = {"queue_name": "q", "workflow_name": workflow, "app_version": "1"}
        return self._client.enqueue(options, *arguments)

    def _many(self, workflow: str, count: int) -> None:
        with ThreadPoolExecutor(CLIENT_THREADS) as threads:
            list(threads.map(lambda _: self._enqueue(workflow), range(count)))

    def _has_queue(self) -> bool:
        try:
            client = DBOSClient(system_database_url=url())
            found = client.retrieve_queue("q") is not None
            client.destroy()
        except Exception:  # an incomplete schema raises many kinds of errors
            return False
        return found


if __name__ == "__main__":
    work()
