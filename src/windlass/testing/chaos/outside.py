"""What lies outside the cluster of a chaos run: a provider that fails, and the address at which it tells its news."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import sys
from pathlib import Path

from windlass.testing.fake_provider import Entry, FakeProvider, Fault, read_journal

# The providers by the names that recipes use: the adapter, where the fake speaks its protocol, places, requests/s.
PROVIDERS = {"painter": ("http", "generic", 5, 50), "singer": ("replicate", "replicate", 4, 50)}
SECRET_VARIABLE = "CHAOS_WEBHOOK_SECRET"
SINGERS_SECRET = "whsec_" + base64.b64encode(b"a secret of its own, for singers").decode()
CREDENTIAL_VARIABLE = "CHAOS_CREDENTIAL"
CREDENTIAL = "chaos-credential"
# Polls are often, so that a webhook and a poll meet; a wait is short, so that some work comes too late.
_FILE = """\
  {name}:
    adapter: {adapter}
    base_url: {url}
    credential_env: {credential}
    concurrency: {places}
    rate: {rate}
    timeout: 5s
    wait: 30s
    poll: [1s, 2s, 4s]
    webhook: {{profile: standard, secret_env: {secret}}}
"""
# What goes wrong with the provider beyond being killed. The first that fits is the only one that is rolled for.
FAULTS = (
    Fault("start", "lose_after", chance=0.06),
    Fault("start", "lose", chance=0.04),
    Fault("start", "status", chance=0.06, status=429, retry_after="1"),
    Fault("start", "status", chance=0.04, status=503),
    Fault("start", "garbage", chance=0.02),
    Fault("status", "forget", chance=0.05),
    Fault("status", "stale", chance=0.1),
    Fault("status", "nonsense", chance=0.05),
    Fault("status", "status", chance=0.05, status=500),
    Fault("cancel", "status", chance=0.1, status=503),
    Fault("cancel", "lose_after", chance=0.1),
    Fault("webhook", "drop", chance=0.2),
    Fault("webhook", "double", chance=0.15),
    Fault("webhook", "delay", chance=0.1, seconds=3.0),
    Fault("webhook", "early", chance=0.1),
    Fault("webhook", "reorder", chance=0.1),
    Fault("webhook", "forge", chance=0.05),
)
STEER_EVERY_S = 0.5


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Outside:
    """The provider's address, journal and faults, and where the API answers."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._port = free_port()
        self.api_port = free_port()
        self.journal = folder / "provider.jsonl"
        self._hand = FakeProvider(self.journal)
        self._hand.url = f"http://127.0.0.1:{self._port}"
        self._steering: asyncio.Task[None] | None = None

    @property
    def command(self) -> list[str]:
        """How the provider is started."""
        place = ["--port", str(self._port), "--journal", str(self.journal), "--seed", str(self._seed)]
        return [sys.executable, "-m", "windlass.testing.fake_provider", *place]

    @property
    def environment(self) -> dict[str, str]:
        """What the provider and everyone who speaks with it must know."""
        return {
            "FAKE_PROVIDER_CREDENTIAL": CREDENTIAL,
            "FAKE_PROVIDER_SECRET": self._hand.secret,
            "FAKE_PROVIDER_SECRETS": json.dumps({"replicate": SINGERS_SECRET}),
            CREDENTIAL_VARIABLE: CREDENTIAL,
            f"{SECRET_VARIABLE}_PAINTER": self._hand.secret,
            f"{SECRET_VARIABLE}_SINGER": SINGERS_SECRET,
            "WINDLASS_PROVIDERS": str(self._folder / "providers.yaml"),
            "WINDLASS_PUBLIC_URL": f"http://127.0.0.1:{self.api_port}",
        }

    def write_config(self) -> None:
        """The providers.yaml of the run."""
        text = "providers:\n"
        for name, (adapter, protocol, places, rate) in PROVIDERS.items():
            url = self._hand.base_url(protocol)
            text += _FILE.format(
                name=name, adapter=adapter, url=url, places=places, rate=rate,
                credential=CREDENTIAL_VARIABLE, secret=f"{SECRET_VARIABLE}_{name.upper()}",
            )  # fmt: skip
            if adapter == "replicate":
                text += "    options: {honours_keys: true}\n"
        (self._folder / "providers.yaml").write_text(text)

    def torment(self) -> None:
        """Let it play its faults from now on; one that is started again is told again."""
        self._steering = asyncio.create_task(self._steer())

    async def heal(self) -> None:
        """No more of them."""
        if self._steering is not None:
            self._steering.cancel()
            await asyncio.gather(self._steering, return_exceptions=True)
        while True:
            with contextlib.suppress(OSError, ValueError, TimeoutError):
                async with asyncio.timeout(5):
                    await self._hand.fail()
                return
            await asyncio.sleep(STEER_EVERY_S)

    async def _steer(self) -> None:
        while True:
            with contextlib.suppress(OSError, ValueError, TimeoutError):
                async with asyncio.timeout(5):
                    await self._hand.fail(*FAULTS)
            await asyncio.sleep(STEER_EVERY_S)

    def entries(self) -> list[Entry]:
        """What the provider wrote down."""
        return read_journal(self.journal)
