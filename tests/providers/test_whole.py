"""Every protocol from a recipe to its result: the real worker, the real adapters, webhooks as they really come."""

from __future__ import annotations

import asyncio
import random
import time
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import windlass as wl
from windlass.app.service import serving
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadSignature
from windlass.providers.receiver import Receiver
from windlass.testing.fake_provider import FakeProvider, Fault
from windlass.testing.fake_provider.wire import Reply, Request, reply, serve
from windlass.views.costs import costs_of

CREDENTIAL = "the-credential-that-nobody-may-see"
WITHIN_S = 60.0
TAKEN = ("applied", "waiting", "noted")


@wl.recipe
def everything(prompt: str):
    picture = wl.call("fal", model="fal-ai/flux/dev", input={"prompt": prompt})
    film = wl.call("replicate", model="acme/film", input={"image": picture["model"]})
    words = wl.call("openai", model="gpt-4o", input={"messages": [{"role": "user", "content": prompt}]})
    batch = wl.call("openai", model="gpt-4o", input={"requests": [{"messages": []}, {"messages": []}]})
    plain = wl.call("plain", model="m", input={"film": film["model"]})
    return {"film": film, "words": words["text"], "batch": batch["failed"], "plain": plain["echo"]}


# Two providers must not share one.
SECRETS = {
    name: f"whsec_{b64encode(name.encode().ljust(32, b'.')).decode()}" for name in ("replicate", "openai", "generic")
}


def providers_yaml(fake: FakeProvider, poll: str) -> str:
    def entry(name: str, protocol: str, adapter: str, more: str) -> str:
        return (
            f"  {name}: {{adapter: {adapter}, base_url: '{fake.base_url(protocol)}', credential_env: KEY, rate: 1000,\n"
            f"    concurrency: 5, poll: [{poll}], wait: 50s, prices: {{'*': {{call: 0.25}}}}, {more}}}\n"
        )

    def signed(protocol: str) -> str:
        return f"webhook: {{secret_env: {protocol.upper()}_SECRET}}"

    keys = f"options: {{keys_url: '{fake.url}/fal/.well-known/jwks.json', honours_keys: true}}"
    return "providers:\n" + "".join(
        [
            entry("fal", "fal", "fal", f"webhook: {{}}, {keys}"),
            entry("replicate", "replicate", "replicate", f"{signed('replicate')}, options: {{honours_keys: true}}"),
            entry("openai", "openai", "openai", signed("openai")),
            entry("plain", "generic", "http", signed("generic")),
        ]
    )


class Studio:
    recipes = {everything.name: everything}  # noqa: RUF012
    steps = everything.steps


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    async with FakeProvider(tmp_path / "journal", credential=CREDENTIAL, has_fal_keys=True, secrets=SECRETS) as made:
        yield made


class Door:
    """The address that providers know; behind it is the receiver."""

    def __init__(self) -> None:
        self.receiver: Receiver | None = None
        self.results: Counter[str] = Counter()

    async def answer(self, request: Request) -> Reply:
        assert self.receiver is not None
        name = request.path.rpartition("/")[2]
        try:
            applied = await self.receiver.receive(name, request.headers, request.body, request.query)
        except BadSignature:
            self.results["bad_signature"] += 1
            return reply({}, 401)
        self.results[f"{name}:{applied.lower()}"] += 1
        return reply({"status": applied.lower()})


@asynccontextmanager
async def studio(dsn: str, home: Path, fake: FakeProvider, poll: str) -> AsyncIterator[tuple[Windlass, Door]]:
    door = Door()
    server, open_ones = await serve(door.answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await fake.tell_batches_to(f"{url}/webhooks/openai")
    path = home / "providers.yaml"
    path.write_text(providers_yaml(fake, poll))
    settings = Settings(database_url=dsn, home=home, providers=path, public_url=url)
    try:
        async with Windlass.connect(settings=settings) as windlass, serving(windlass, Studio()):
            spread = random.Random(7).random
            door.receiver = Receiver(
                windlass.db, windlass.providers, windlass.artifacts, spread=spread, clock=time.time
            )
            yield windlass, door
    finally:
        server.close()
        for connection in list(open_ones):
            connection.hang_up()


async def result(windlass: Windlass) -> Any:
    job = await windlass.submit(everything, prompt="a fox")
    return job, await job.result(timeout=WITHIN_S)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch, fake: FakeProvider) -> None:
    monkeypatch.setenv("KEY", CREDENTIAL)
    for protocol, secret in SECRETS.items():
        monkeypatch.setenv(f"{protocol.upper()}_SECRET", secret)


def split(counted: str) -> tuple[str, str]:
    name, _, result = counted.partition(":")
    return name, result


def check(found: Any, fake: FakeProvider) -> None:
    assert "a fox" in found["words"] and found["batch"] == 0
    assert found["plain"] == {"film": "acme/film"}
    assert found["film"]["echo"] == {"image": "fal-ai/flux/dev"}
    keys = [entry.key for entry in fake.entries("accepted") if entry.protocol != "openai"]
    assert len(keys) == len(set(keys)) == 3


@pytest.mark.covers("SCR-62")
async def test_every_protocol_ends_by_its_polls(dsn: str, tmp_path: Path, fake: FakeProvider) -> None:
    await fake.behave(seconds=0.2)
    await fake.fail(Fault("webhook", "drop"))
    async with studio(dsn, tmp_path, fake, "100ms") as (windlass, door):
        job, found = await result(windlass)
        check(found, fake)
        assert not door.results
        costs = await costs_of(windlass.db, job.job_id)
        assert len(costs) == 5


@pytest.mark.covers("SCR-01", "SCR-67")
async def test_every_protocol_ends_by_its_webhooks(dsn: str, tmp_path: Path, fake: FakeProvider) -> None:
    """The polls are seldom."""
    await fake.behave(seconds=1.0)
    await fake.fail(Fault("webhook", "double"))
    async with studio(dsn, tmp_path, fake, "45s") as (windlass, door):
        _, found = await result(windlass)
        check(found, fake)
        # The last webhook may end the job before its own sender has its answer. A webhook that comes before its submit
        # is recorded waits for it; a webhook without a result (of a batch) makes the poller fetch the result.
        async with asyncio.timeout(WITHIN_S):
            while len(heard := {name for name, result in map(split, door.results) if result in TAKEN}) < 4:
                await asyncio.sleep(0.01)
        assert heard == {"fal", "replicate", "openai", "plain"}
        assert door.results["bad_signature"] == 0
        assert all(door.results[f"{name}:applied"] <= 1 for name in heard)


async def test_every_protocol_survives_a_bad_day(dsn: str, tmp_path: Path, fake: FakeProvider) -> None:
    """Lost answers, storms, lies, webhooks in any order and before their time: one piece of work, one result.

    A step has three tries; the two faults that use one up come once.
    """
    await fake.behave(seconds=0.2, webhook_again_s=0.05)
    await fake.fail(
        Fault("start", "lose_after", chance=0.5, times=1),
        Fault("any", "status", status=429, retry_after="0.1", chance=0.3, times=8),
        Fault("any", "status", status=503, chance=0.3, times=1),
        Fault("status", "forget", chance=0.3, times=4),
        Fault("status", "nonsense", chance=0.3, times=4),
        Fault("webhook", "early", chance=0.5, times=2),
        Fault("webhook", "reorder", chance=0.5, times=2),
        Fault("webhook", "double", chance=0.5, times=4),
        Fault("webhook", "forge", chance=0.5, times=2),
    )
    async with studio(dsn, tmp_path, fake, "100ms") as (windlass, _):
        _, found = await result(windlass)
        check(found, fake)
