"""The API of the product, in processes that die at a named point.

One process imports everything and then forks a server for each line that it reads: `PORT POINT`. So a server is there
in a moment, and hundreds of them can be killed. It answers with the server's process id once that listens.

Points: `never`, `before insert`, `after commit`, `before answer`. There the process ends at once, as SIGKILL would end
it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from starlette.responses import Response

from windlass.access.secret import Secret
from windlass.api.routes import jobs
from windlass.app.http import listening, making_parts
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.engine.submit import Accepted, Submission, Submitter

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


async def serve(dsn: str, folder: Path, port: int, point: str, ready: int) -> None:
    """Until it is killed."""
    settings = Settings(
        home=folder, database_url=dsn, secret=(SECRET,), limit_capacity=10_000_000, limit_floor=10_000_000
    )
    DeadlySubmitter.point = point
    if point == "before answer":
        encode = jobs.accepted_answer

        async def die(*given: Any, **more: Any) -> Response:
            await encode(*given, **more)
            os._exit(DIED)

        jobs.accepted_answer = die
    async with (
        Windlass.connect(dsn, settings=settings) as windlass,
        making_parts(windlass, Secret.of(settings.secret)) as parts,
    ):
        parts.submitter = DeadlySubmitter(windlass.db)
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
        is_up = os.read(ready, 1)
        os.close(ready)
        print(child if is_up else 0, flush=True)
        _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
