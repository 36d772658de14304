"""A worker in a process of its own, as `windlass worker` is: `python -m tests.providers.process DSN QUEUE FOLDER`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.providers.steps import STEPS
from windlass.app.service import serving
from windlass.app.settings import Settings
from windlass.app.windlass import HasPlan, Windlass


class App:
    def __init__(self) -> None:
        self.steps = STEPS
        self.recipes: dict[str, HasPlan] = {}


async def main(dsn: str, queue: str, folder: str) -> None:
    home = Path(folder)
    settings = Settings(database_url=dsn, home=home, lease_s=2.0, providers=home / "providers.yaml")
    async with (
        Windlass.connect(settings=settings) as windlass,
        serving(windlass, App(), with_loops=False, queues=[queue], concurrency=5) as service,
    ):
        print("ready", flush=True)
        await service.until_stopped()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
