"""Celery on Redis (append-only file, fsync every second): prefork with two children, its defaults otherwise."""

import sys

from celery import Celery, chain, chord

from bench.counter import tick
from bench.system import System, target

RESULT_LIMIT_S = 600

app = Celery("bench.peers.celery", broker=target().redis_url, backend=target().redis_url)
app.conf.update(broker_connection_retry_on_startup=True, result_expires=3600)


@app.task
def noop() -> None:
    tick()


@app.task
def join(results: list[None]) -> int:
    return len(results)


class Peer(System):
    """The submitting client. Results are kept, as by default: a job is done when its result is stored."""

    def worker(self) -> list[str]:
        return [sys.executable, "-m", "celery", "-A", "bench.peers.celery", "worker", "-l", "ERROR", "-c", "2"]

    def submit(self, count: int) -> None:
        for _ in range(count):
            noop.delay()

    def roundtrip(self) -> None:
        noop.delay().get(timeout=RESULT_LIMIT_S)

    def chain(self, count: int) -> None:
        for _ in range(count):
            chain(noop.si(), noop.si(), noop.si()).delay()

    def fan(self, width: int) -> None:
        joined = chord([noop.si() for _ in range(width)])(join.s())
        assert joined.get(timeout=RESULT_LIMIT_S) == width
