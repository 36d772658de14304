"""The provider of a chaos run, which fails on purpose, and the address at which it sends its webhooks."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import sys
from pathlib import Path

from windlass.testing.fake_provider import Entry, FakeProvider, Fault, read_journal

# The providers by the names that recipes use: adapter, protocol of the fake provider, slots, requests a second.
PROVIDERS = {"painter": ("http", "generic", 5, 50), "singer": ("replicate", "replicate", 4, 50)}
SECRET_VARIABLE = "CHAOS_WEBHOOK_SECRET"
SINGERS_SECRET = "whsec_" + base64.b64encode(b"a secret of its own, for singers").decode()
CREDENTIAL_VARIABLE = "CHAOS_CREDENTIAL"
CREDENTIAL = "chaos-credential"
# Frequent polls, so that a webhook and a poll meet; a short wait, so that some results come too late.
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
# The provider's faults beyond being killed. Only the first fault that fits an operation is rolled for.
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
    """Return a port without a listener."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Outside:
    """The provider's address, journal and faults, and the port of the API."""

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
        """The command that starts the provider."""
        place = ["--port", str(self._port), "--journal", str(self.journal), "--seed", str(self._seed)]
        return [sys.executable, "-m", "windlass.testing.fake_provider", *place]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the provider and of every process that talks to it."""
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
        """Write the providers.yaml of the run."""
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
        """Set the provider's faults from now on, again after each restart of the provider."""
        self._steering = asyncio.create_task(self._steer())

    async def heal(self) -> None:
        """Clear the provider's faults."""
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
        """Read the provider's journal."""
        return read_journal(self.journal)
