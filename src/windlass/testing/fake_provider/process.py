"""The fake provider for a test: starts, controls, kills and restarts it, always as a separate process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from windlass.testing.fake_provider.faults import Fault
from windlass.testing.fake_provider.journal import Entry, read_journal

START_WITHIN_S = 30.0
STOP_WITHIN_S = 10.0
SECRET = "whsec_" + "ZmFrZS1wcm92aWRlci1zZWNyZXQtZm9yLXRlc3Rz"


class FakeProvider:
    """`async with FakeProvider(folder / "journal") as provider: …`

    `url` is its address; the protocols are below `/fal`, `/replicate/v1`, `/openai/v1` and `/generic`, see `base_url`.
    `speeches` are further protocols: a name, which is also the path, and `module:Class` of a `Speech`.

    Its journal outlives it: `start` after `kill` uses the same port and knows all accepted work.
    """

    def __init__(
        self,
        journal: str | Path,
        *,
        port: int = 0,
        credential: str = "",
        secret: str = SECRET,
        secrets: Mapping[str, str] | None = None,
        seed: int = 0,
        is_durable: bool = True,
        has_fal_keys: bool = False,
        speeches: Mapping[str, str] | None = None,
    ) -> None:
        self.journal = Path(journal)
        self.credential = credential
        self.secret = secret
        # By protocol, for protocols with a separate secret.
        self.secrets = dict(secrets or {})
        self.url = ""
        self._port = port
        self._flags = ["--seed", str(seed)]
        self._flags += [] if is_durable else ["--no-fsync"]
        self._flags += ["--fal-keys"] if has_fal_keys else []
        for name, target in (speeches or {}).items():
            self._flags += ["--speech", f"{name}={target}"]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def base_url(self, protocol: str) -> str:
        """Return the base URL of a protocol: fal, replicate, openai, generic, or a further one."""
        tail = {"replicate": "replicate/v1", "openai": "openai/v1"}
        return f"{self.url}/{tail.get(protocol, protocol)}"

    @property
    def pid(self) -> int | None:
        """The process id, while the process runs."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def start(self) -> None:
        """Start the process, at the port of the last start; return once it listens."""
        command = [sys.executable, "-m", "windlass.testing.fake_provider", "--port", str(self._port)]
        command += ["--journal", str(self.journal), *self._flags]
        environ = {**os.environ, "FAKE_PROVIDER_CREDENTIAL": self.credential, "FAKE_PROVIDER_SECRET": self.secret}
        environ["FAKE_PROVIDER_SECRETS"] = json.dumps(self.secrets)
        self._process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environ)
        if self._process.stdout is None:
            raise RuntimeError("the fake provider has no output")
        try:
            async with asyncio.timeout(START_WITHIN_S):
                line = await self._process.stdout.readline()
            self.url = json.loads(line)["url"]
        except (TimeoutError, ValueError):
            await self.kill()
            raise RuntimeError("the fake provider did not start; see its errors above") from None
        self._port = urlsplit(self.url).port or 0

    async def stop(self) -> None:
        """End the process with SIGTERM."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(STOP_WITHIN_S):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
        await self.ended()

    async def kill(self) -> None:
        """Kill the process, as a power failure would."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        await self.ended()

    async def ended(self) -> int | None:
        """Wait until the process has ended, for example by a planted crash."""
        if self._process is None:
            return None
        if self._process.stdout is not None:
            await self._process.stdout.read()
        return await self._process.wait()

    async def fail(self, *faults: Fault) -> None:
        """Replace the faults with these; without any, play none."""
        await self._control("POST", "faults", msgspec.json.encode(faults))

    async def behave(self, **manner: Any) -> None:
        """Set the manner of work from now on: `seconds`, `queued_s`, `outcome`, `output`, `honours_keys`, …; see
        `Manner`.
        """
        await self._control("POST", "manner", msgspec.json.encode(manner))

    async def finish(self, ids: Iterable[str] | None = None, outcome: str = "succeeded") -> int:
        """End work that waits for the test to end it; return the number of pieces."""
        wanted: dict[str, Any] = {"outcome": outcome}
        if ids is not None:
            wanted["ids"] = list(ids)
        answer = await self._control("POST", "finish", msgspec.json.encode(wanted))
        return int(answer["finished"])

    async def tell_batches_to(self, url: str) -> None:
        """Set the webhook URL of OpenAI-style batches, which is a setting of the account there."""
        await self._control("POST", "webhook", msgspec.json.encode({"url": url}))

    async def reset(self) -> None:
        """Forget all work, faults and manners; the journal stays."""
        await self._control("POST", "reset", b"")

    async def state(self) -> dict[str, Any]:
        """Return the counters and states of the provider."""
        return await self._control("GET", "", b"")

    def entries(self, kind: str | None = None) -> list[Entry]:
        """Return the journal's entries, of one kind or all."""
        return [entry for entry in read_journal(self.journal) if kind in (None, entry.kind)]

    def accepted(self, protocol: str | None = None) -> Mapping[str, int]:
        """Count the accepted pieces of work for each key: more than one is a fault."""
        found: dict[str, int] = {}
        for entry in self.entries("accepted"):
            if protocol not in (None, entry.protocol):
                continue
            found[entry.key] = found.get(entry.key, 0) + 1
        return found

    async def _control(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            head = f"{method} /control/{path} HTTP/1.1\r\nhost: {parts.netloc}\r\nconnection: close\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
        top, _, content = answer.partition(b"\r\n\r\n")
        value = json.loads(content)
        if b" 200 " not in top.split(b"\r\n", 1)[0]:
            raise ValueError(value.get("error", "the fake provider refused"))
        return dict(value)
