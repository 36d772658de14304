"""An adapter whose process dies, once, at a place that the environment names."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from windlass.providers.adapter import Started, StartRequest
from windlass.providers.adapters.generic import HttpAdapter

DIE_AT, DIE_FLAG = "TEST_DIE_AT", "TEST_DIE_FLAG"


def die(place: str) -> None:
    flag = Path(os.environ[DIE_FLAG])
    if os.environ[DIE_AT] == place and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)


class DeadlyAdapter(HttpAdapter):
    async def start_job(self, request: StartRequest) -> Started:
        die("before the start")
        started = await super().start_job(request)
        die("after the start")
        return started
