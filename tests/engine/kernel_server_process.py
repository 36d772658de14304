"""A kernel in a process of its own, which a test may kill: `python -m tests.engine.kernel_server_process PORT WORD`.

It gives the answer WORD to every question, and prints its port, then a line for each question.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests.policy.kernel_servers import GrpcServer
from windlass.policy.kernel_answer import KernelAnswer


class Printing(GrpcServer):
    async def take(self, request: Any) -> KernelAnswer | None:
        print(request.job_id, flush=True)
        return await super().take(request)


async def main(port: str, word: str) -> None:
    server = Printing()
    server.port = int(port)
    server.say(KernelAnswer(word, rule="outside"))
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
