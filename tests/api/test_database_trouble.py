"""A server that takes no writes, full or read-only: callers hear why, `/readyz` says so, and it passes by itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.api.rig import Rig, rig
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.core.errors import DatabaseUnavailable
from windlass.store.database import Database
from windlass.store.migrate import migrate
from windlass.testing.faults import set_read_only

SMALL_MB = 48


@pytest.fixture
async def own_server() -> AsyncIterator[EmbeddedPostgres]:
    # Not in pytest's folder, which the server's user may not enter while other tests run.
    with EmbeddedPostgres(durable=False) as server:
        yield server


@asynccontextmanager
async def small_disk(server: EmbeddedPostgres, folder: Path) -> AsyncIterator[str]:
    """A migrated database whose tables are on a disk of SMALL_MB."""
    folder.mkdir()
    size = f"size={SMALL_MB}m"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk")
    try:
        space = folder / "space"
        space.mkdir()
        owner = server.path.stat()
        os.chown(space, owner.st_uid, owner.st_gid)
        admin = await asyncpg.connect(server.dsn)
        await admin.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        await admin.execute("CREATE DATABASE small TABLESPACE small")
        dsn = urlunsplit(urlsplit(server.dsn)._replace(path="/small"))
        db = await Database.open(dsn)
        await migrate(db)
        await db.close()
        yield dsn
        await admin.execute("DROP DATABASE small WITH (FORCE)")
        await admin.execute("DROP TABLESPACE small")
        await admin.close()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def ready(api: Rig, status: int) -> dict[str, Any]:
    """What `/readyz` says once it has this status."""
    async with asyncio.timeout(60):
        while (answer := await api.stranger.get("/readyz")).status_code != status:
            await asyncio.sleep(0.05)
    found: dict[str, Any] = answer.json()
    return found


def fill(filler: Path) -> None:
    """Leave no room on the disk."""
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


async def test_a_full_disk_is_named_at_once_and_passes_by_itself(
    own_server: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = own_server.path.with_name("disk")
    async with small_disk(own_server, disk) as dsn, rig(dsn, tmp_path) as api:
        pauses: list[float] = []
        pause = Database._pause

        async def counted(db: Database, seconds: float) -> None:
            pauses.append(seconds)
            await pause(db, seconds)

        monkeypatch.setattr(Database, "_pause", counted)
        assert (await ready(api, 200))["parts"]["database"] == "ok"
        fill(disk / "filler")
        # Random text, which cannot be compressed into the room that is left in the tables.
        large = {"recipe": "hello", "inputs": {"name": os.urandom(200_000).hex()}}
        answer = await api.user.post("/jobs", json=large)
        assert answer.status_code == 503, answer.text
        assert "retry-after" in answer.headers
        problem = answer.json()
        assert problem["code"] == "database_unavailable"
        assert "disk of PostgreSQL is full" in problem["detail"]
        assert "Free space" in problem["hint"]
        assert "No space left" not in answer.text
        assert pauses == [], "no repeat within seconds makes room"
        assert (await ready(api, 503))["parts"]["database"] == "the disk of PostgreSQL is full"
        (disk / "filler").unlink()
        assert (await ready(api, 200))["parts"]["database"] == "ok"
        assert (await api.user.post("/jobs", json=large)).status_code == 202


async def test_a_read_only_server_is_answered_503_with_a_remedy(own_server: EmbeddedPostgres, tmp_path: Path) -> None:
    db = await Database.open(own_server.dsn)
    await migrate(db)
    await db.close()
    async with rig(own_server.dsn, tmp_path) as api:
        api.windlass.db._pause = lambda _: asyncio.sleep(0)  # type: ignore[method-assign]
        job = await api.submit("hello", inputs={"name": "Ada"})
        await set_read_only(own_server.dsn, True)
        assert "read-only" in (await ready(api, 503))["parts"]["database"]
        for answer in (
            await api.user.post("/jobs", json={"recipe": "hello", "inputs": {"name": "Ada"}}),
            await api.user.post(f"/jobs/{job}/cancel"),
            await api.admin.post("/keys", json={"caller": "x", "name": "x"}),
        ):
            assert answer.status_code == 503, answer.text
            assert answer.json()["code"] == "database_unavailable"
            assert "read-only" in answer.json()["detail"] and answer.json()["hint"]
            assert "cannot execute" not in answer.text
        with pytest.raises(DatabaseUnavailable, match="read-only"):
            await api.windlass.submit("hello", name="Ada")
        await set_read_only(own_server.dsn, False)
        await ready(api, 200)
        await api.submit("hello", inputs={"name": "Ada"})
