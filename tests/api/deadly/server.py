"""The API of the product, in processes that die at a named point.

One process imports everything and then forks a server for each line that it reads: `PORT POINT`. So a server is there
in a moment, and hundreds of them can be killed. It answers with the server's process id once that listens.

Points: `never`, `before insert`, `after commit`, `before answer`, and for webhooks of providers `before apply` and
`after apply`. There the process ends at once, as SIGKILL would end it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.responses import Response

from windlass.access.secret import Secret
from windlass.api.routes import jobs
from windlass.app.http import listening, making_parts
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.engine.external import Answer, Applied
from windlass.engine.submit import Accepted, Submission
from windlass.engine.submitter import Submitter
from windlass.providers.receiver import Receiver

SECRET = "a secret of the tests, long enough to be one"
DIED = 9


class DeadlySubmitter(Submitter):
    """Ends the process instead of going on."""

    point = "never"

    async def submit(self, submission: Submission) -> Accepted:
        if self.point == "before insert":
            os._exit(DIED)
        accepted = await super().submit(submission)
        if self.point == "after commit":
            os._exit(DIED)
        return accepted


class DeadlyReceiver(Receiver):
    """The same for webhooks: verified and read, but not applied; applied, but not answered."""

    point = "never"

    async def _apply(self, answers: Sequence[Answer]) -> list[Applied]:
        if self.point == "before apply":
            os._exit(DIED)
        applied = await super()._apply(answers)
        if self.point == "after apply":
            os._exit(DIED)
        return applied


async def serve(dsn: str, folder: Path, port: int, point: str, ready: int) -> None:
    """Until it is killed."""
    providers = folder / "providers.yaml"
    settings = Settings(
        home=folder,
        database_url=dsn,
        secret=(SECRET,),
        limit_capacity=10_000_000,
        limit_floor=10_000_000,
        providers=providers if providers.exists() else None,
    )
    DeadlySubmitter.point = DeadlyReceiver.point = point
    if point == "before answer":
        encode = jobs.answer_with

        def die(*given: Any, **more: Any) -> Response:
            encode(*given, **more)
            os._exit(DIED)

        jobs.answer_with = die
    async with (
        Windlass.connect(dsn, settings=settings) as windlass,
        making_parts(windlass, Secret.of(settings.secret)) as parts,
    ):
        parts.submitter = DeadlySubmitter(windlass.db)
        parts.receiver = DeadlyReceiver(
            windlass.db, windlass.providers, windlass.artifacts, spread=lambda: 0.5, clock=time.time
        )
        async with listening(parts, f"127.0.0.1:{port}"):
            os.write(ready, b"1")
            await asyncio.Event().wait()


def main(dsn: str, folder: Path) -> None:
    """Fork a server for each line."""
    for line in sys.stdin:
        port, _, point = line.strip().partition(" ")
        ready, wake = os.pipe()
        child = os.fork()
        if not child:
            os.close(ready)
            try:
                asyncio.run(serve(dsn, folder, int(port), point, wake))
            finally:
                os._exit(1)
        os.close(wake)
        is_up = bool(os.read(ready, 1)) or _has_died_there(child)
        os.close(ready)
        print(child if is_up else 0, flush=True)
        _reap()


def _has_died_there(child: int) -> bool:
    """Whether it listened, and came to its point before it could say so: clients may be waiting at its port."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == DIED


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
