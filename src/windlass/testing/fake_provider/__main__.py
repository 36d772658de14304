"""`python -m windlass.testing.fake_provider --port 0 --journal FILE`: prints its address as a line of JSON, and runs.

FAKE_PROVIDER_CREDENTIAL is the credential that it requires, FAKE_PROVIDER_SECRET (`whsec_…`) the secret that it signs
with. Without them it requires no credential and signs nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import signal
import sys

from windlass.testing.fake_provider.control import Control
from windlass.testing.fake_provider.fal import FalSpeech
from windlass.testing.fake_provider.generic import GenericSpeech
from windlass.testing.fake_provider.journal import Journal
from windlass.testing.fake_provider.openai import OpenAISpeech
from windlass.testing.fake_provider.provider import FakeService
from windlass.testing.fake_provider.replicate import ReplicateSpeech
from windlass.testing.fake_provider.sender import FalKeys, Sender
from windlass.testing.fake_provider.speech import Speech
from windlass.testing.fake_provider.wire import Reply, Request, reply, serve


def arguments(given: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m windlass.testing.fake_provider")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--journal", required=True, help="what was taken and told, as lines of JSON")
    parser.add_argument("--seed", type=int, default=0, help="of the chance with which faults happen")
    parser.add_argument("--no-fsync", action="store_true", help="for measurements: the journal is not forced to disk")
    parser.add_argument("--fal-keys", action="store_true", help="sign FAL's webhooks with Ed25519 too")
    parser.add_argument(
        "--speech",
        action="append",
        default=[],
        metavar="NAME=MODULE:CLASS",
        help="speak one more protocol, below /NAME",
    )
    return parser.parse_args(given)


def speeches(service: FakeService, more: list[str]) -> list[Speech]:
    """Return the protocols: the bundled ones, and the named ones."""
    found: list[Speech] = [
        FalSpeech(service), ReplicateSpeech(service), OpenAISpeech(service), GenericSpeech(service),
    ]  # fmt: skip
    for text in more:
        _, _, target = text.partition("=")
        module, _, name = target.partition(":")
        found.append(getattr(importlib.import_module(module), name)(service))
    return found


async def run(args: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT."""
    journal = Journal(args.journal, is_durable=not args.no_fsync)
    secret = os.environ.get("FAKE_PROVIDER_SECRET", "")
    by_protocol = json.loads(os.environ.get("FAKE_PROVIDER_SECRETS") or "{}")
    sender = Sender(secret, FalKeys() if args.fal_keys else None, by_protocol)
    service = FakeService(
        journal, url="", seed=args.seed, credential=os.environ.get("FAKE_PROVIDER_CREDENTIAL", ""), sender=sender
    )
    for speech in speeches(service, args.speech):
        service.speeches[speech.name] = speech
    control = Control(service)

    async def answer(request: Request) -> Reply | None:
        _, room, *rest = request.path.split("/", 2)
        path = rest[0] if rest else ""
        if room in service.speeches:
            return await service.speeches[room].answer(request, path)
        return await control.answer(request, path) if room == "control" else reply({"error": "not found"}, 404)

    server, open_ones = await serve(answer, args.host, args.port)
    service.url = f"http://{args.host}:{server.sockets[0].getsockname()[1]}"
    service.recall()
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    sys.stdout.write(json.dumps({"url": service.url, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    server.close()
    for connection in list(open_ones):
        connection.hang_up()
    sender.close()
    await journal.kept()


def main() -> None:
    """Run the provider."""
    args = arguments(sys.argv[1:])
    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(run(args))
    else:
        uvloop.run(run(args))


if __name__ == "__main__":
    main()
