"""After a session in which everything secret was used: none of it can be read anywhere."""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.api.rig import Rig, rig
from tests.engine.rig import undisturbed
from windlass.engine.loops.auditor import Auditor

WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"a secret that signs webhooks").decode()
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'windlass'::regnamespace AND relkind IN ('r', 'p')"


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
async def session(dsn: str, tmp_path: Path, log: io.StringIO) -> AsyncIterator[Rig]:
    """The API with every log line kept, of every logger and level."""
    handler = logging.StreamHandler(log)
    # The test's own client runs in this process too, and tells which addresses it asks for.
    handler.addFilter(lambda record: not record.name.startswith(("httpx", "httpcore")))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        async with rig(dsn, tmp_path, webhook_loopback=True) as api:
            yield api
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


async def everything(dsn: str) -> str:
    """The whole database as text; bytes as their hex."""
    connection = await asyncpg.connect(dsn)
    try:
        tables = [row["relname"] for row in await connection.fetch(TABLES)]
        assert {"keys", "jobs", "events", "audit", "tickets", "webhooks"} <= set(tables)
        rows = []
        for table in tables:
            rows += [row[0] for row in await connection.fetch(f'SELECT t::text FROM windlass."{table}" t')]
        return "\n".join(rows)
    finally:
        await connection.close()


def forms(secret: str) -> list[str]:
    """The text itself, the part of a key that is secret, and the bytes behind each."""
    parts = [secret]
    # A ticket has no such part, and may have a `_` anywhere.
    if secret.startswith(("wl_", "whsec_")):
        parts.append(secret.rsplit("_", 1)[-1])
        assert len(parts[1]) >= 16, "too short to be told from other text"
    found = [*parts, *(part.encode().hex() for part in parts)]
    if secret.startswith("whsec_"):
        found.append(base64.b64decode(parts[1]).hex())
        found.append(base64.b64decode(parts[1]).decode())
    return found


@pytest.mark.covers("CIX-55")
async def test_no_key_ticket_or_secret_is_kept_or_told(session: Rig, dsn: str, log: io.StringIO) -> None:
    api, told = session, io.StringIO()

    async def ask(method: str, path: str, key: str | None, **more: object) -> dict[str, object]:
        async with api.client(key) as client:
            answer = await client.request(method, path, **more)  # type: ignore[arg-type]
        told.write(f"{answer.headers}\n{answer.text}\n")
        return answer.json() if answer.content and "json" in answer.headers["content-type"] else {}

    user = api.user_key
    wrong = user[:-1] + ("0" if user[-1] != "0" else "1")
    webhook = {"url": "http://127.0.0.1:9/hook", "secret": WEBHOOK_SECRET}
    job = (await ask("POST", "/jobs", user, json={"recipe": "hello", "webhook": webhook}))["job_id"]
    await ask("POST", "/jobs", user, json={"recipe": "hello", "webhook": {**webhook, "url": "file:///x"}})
    await ask("GET", f"/jobs/{job}/webhook", user)
    await ask("POST", f"/jobs/{job}/cancel", user, json={"reason": "enough"})
    for key in (wrong, "junk-" + user, None):
        await ask("GET", "/jobs", key)
    await ask("GET", f"/jobs?api_key={user}", None)
    await ask("GET", f"/nowhere/{job}", user, headers={"Authorization": f"Bearer {wrong}"})
    # These two answers are where a key and a ticket are shown, once; they are not part of what is searched.
    async with api.client(api.admin_key) as client:
        made = (await client.post("/keys", json={"caller": "new", "name": "new"})).json()
        ticket = (await client.post("/stream-tickets", json={})).json()["ticket"]
    new, new_id = made["key"], made["id"]
    await ask("GET", "/jobs", new)
    async with (
        api.client(None) as client,
        client.stream("GET", "/jobs/stream", params={"ticket": ticket}) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
    await ask("GET", f"/jobs/stream?ticket={ticket}", None)
    await ask("GET", "/keys", api.admin_key)
    await ask("DELETE", f"/keys/{new_id}", api.admin_key)
    await ask("GET", "/jobs", new)
    await api.parts.audit.stop()
    await undisturbed(api.parts.db)
    while (await Auditor(api.parts.db).run_once()).count:
        pass
    await ask("GET", "/audit?limit=200", api.admin_key)
    await ask("GET", f"/jobs/{job}/events", user)
    await ask("GET", "/metrics", api.admin_key)
    places = {"the database": await everything(dsn), "an answer": told.getvalue(), "the log": log.getvalue()}
    assert "auth_rejected" in places["an answer"]
    assert str(job) in places["the database"]
    secrets = {"a key": user, "a bad key": wrong, "a made key": new, "a ticket": ticket, "a secret": WEBHOOK_SECRET,
               "the admin's": api.admin_key}  # fmt: skip
    leaks = [
        f"{what} is in {place}"
        for what, secret in secrets.items()
        for place, text in places.items()
        if any(form in text for form in forms(secret))
    ]
    assert leaks == []
