"""A running API for tests: the product's own server on a free port, real keys, real HTTP.

    async with rig(dsn, tmp_path) as api:
        answer = await api.user.post("/jobs", json={"recipe": "hello"})
        async with api.working():          # a worker and the engine's loops
            await api.ended(answer.json()["job_id"])

`api.admin`, `api.user` and `api.other` are clients with keys of callers of the same names; `api.stranger` has none.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from tests.api.recipes import app
from windlass.access.keys import Keys
from windlass.access.secret import Secret
from windlass.api.parts import Parts
from windlass.app.http import listening, making_parts
from windlass.app.service import serving
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.caller import USER_SCOPES, Scope

SECRET = "a secret of the tests, long enough to be one"

# The server speaks plain HTTP. A context of its own for each client would read the system's certificates each time,
# which takes most of the time of a test that makes hundreds of clients.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass
class Rig:
    url: str
    parts: Parts
    windlass: Windlass
    secret: Secret
    admin: httpx.AsyncClient
    user: httpx.AsyncClient
    other: httpx.AsyncClient
    stranger: httpx.AsyncClient
    admin_key: str
    user_key: str

    async def key(self, caller: str, *, scopes: frozenset[str] = USER_SCOPES, **more: Any) -> str:
        """A new key for this caller."""
        assert isinstance(self.parts.verifier, Keys)
        return (await self.parts.verifier.create(caller, name=caller, by="test", scopes=scopes, **more)).text

    def client(self, key: str | None) -> httpx.AsyncClient:
        """A separate client, which the caller closes."""
        headers = {} if key is None else {"X-API-Key": key}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, trust_env=False, verify=_NO_TLS)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """A worker and the engine's loops, in this process."""
        async with serving(self.windlass, app):
            yield

    async def submit(self, recipe: str = "hello", *, client: httpx.AsyncClient | None = None, **body: Any) -> str:
        """A job's id."""
        answer = await (client or self.user).post("/jobs", json={"recipe": recipe, **body})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    async def ended(self, *job_ids: str) -> None:
        """Wait until these jobs have ended."""
        await asyncio.gather(*(self.parts.waiter.wait(UUID(job_id), 60) for job_id in job_ids))

    async def run(self, recipe: str = "hello", **body: Any) -> str:
        """A job that has ended; its id."""
        job_id = await self.submit(recipe, **body)
        async with self.working():
            await self.ended(job_id)
        return job_id


@asynccontextmanager
async def rig(dsn: str, folder: Path, **settings: Any) -> AsyncIterator[Rig]:
    """Serve the API on a free port of this machine while the block lasts."""
    given = Settings(home=folder, database_url=dsn, secret=(SECRET,), **settings)
    secret = Secret.of(given.secret)
    async with (
        Windlass.connect(dsn, settings=given) as windlass,
        making_parts(windlass, secret) as parts,
        listening(parts, "127.0.0.1:0") as at,
        AsyncExitStack() as stack,
    ):
        await windlass.register(*app.recipes.values())
        keys = Keys(windlass.db, secret, entropy=_entropy)
        texts = {
            name: (await keys.create(name, name=name, by="test", scopes=scopes)).text
            for name, scopes in (("admin", frozenset({Scope.ADMIN})), ("user", USER_SCOPES), ("other", USER_SCOPES))
        }
        api = Rig(
            at.url, parts, windlass, secret,
            *[None] * 4,  # type: ignore[arg-type]
            admin_key=texts["admin"], user_key=texts["user"],
        )  # fmt: skip
        for name, key in (*texts.items(), ("stranger", None)):
            setattr(api, name, await stack.enter_async_context(api.client(key)))
        yield api


def _entropy(count: int) -> bytes:
    import secrets

    return secrets.token_bytes(count)
