"""The API in a process: where it listens, who it lets in, how it ends, and who works beside it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.rig import SECRET, Rig, rig
from windlass.access.secret import Secret
from windlass.app.http import bound, check_bind, is_loopback, listening, making_parts
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadSetting
from windlass.engine import submit as engine_submit


@pytest.mark.parametrize(
    ("address", "is_here"),
    [
        ("127.0.0.1:1", True), ("127.9.9.9:1", True), ("[::1]:1", True), ("localhost:1", True), ("0.0.0.0:1", False),
        ("[::]:1", False), ("10.0.0.1:1", False), ("example.com:1", False),
    ],
)  # fmt: skip
def test_this_machine_is_told_from_the_world(address: str, is_here: bool) -> None:
    assert is_loopback(address) is is_here
    check_bind(address, True, False)
    check_bind(address, False, True)
    if is_here:
        check_bind(address, False, False)
    else:
        with pytest.raises(BadSetting, match="windlass keys create"):
            check_bind(address, False, False)


def test_a_taken_port_is_a_setting_to_correct() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadSetting, match="nothing can listen"):
            bound(f"127.0.0.1:{port}")
        with bound(f"127.0.0.1:{port}", tries=20) as next_one:
            # Else asyncio leaves Nagle's algorithm on, and every answer on a kept connection takes 40 ms.
            assert next_one.proto == socket.IPPROTO_TCP
            assert port < next_one.getsockname()[1] < port + 20


async def test_a_request_under_way_is_finished_when_the_server_ends(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_commit, is_asked, true_insert = asyncio.Event(), asyncio.Event(), engine_submit.insert_judged

    async def held(*arguments: Any) -> Any:
        is_asked.set()
        await may_commit.wait()
        return await true_insert(*arguments)

    settings = Settings(home=tmp_path, database_url=dsn, secret=(SECRET,))
    async with rig(dsn, tmp_path) as api, Windlass.connect(dsn, settings=settings) as windlass:
        monkeypatch.setattr(engine_submit, "insert_judged", held)
        async with (
            making_parts(windlass, Secret.of((SECRET,))) as parts,
            httpx.AsyncClient(trust_env=False, timeout=60) as client,
        ):
            async with listening(parts, "127.0.0.1:0") as at:
                headers = {"X-API-Key": api.user_key}
                asked = asyncio.create_task(client.post(f"{at.url}/jobs", json={"recipe": "hello"}, headers=headers))
                await is_asked.wait()
                asyncio.get_running_loop().call_later(0.2, may_commit.set)
            assert (await asked).status_code == 202
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{at.url}/healthz")
            assert parts.is_draining


async def test_another_secret_is_refused_and_a_former_one_is_not(dsn: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=dsn)
    async with Windlass.connect(dsn, settings=settings) as windlass:
        for texts in ((SECRET,), ("a new secret, which is long enough as well", SECRET)):
            async with making_parts(windlass, Secret.of(texts)):
                pass
        with pytest.raises(BadSetting, match="secret"):
            async with making_parts(windlass, Secret.of(("a secret of somebody else, just as long",))):
                pass


@pytest.fixture
async def api(dsn: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(dsn, tmp_path) as made:
        yield made


async def test_beside_the_loops_a_served_installation_is_followed(api: Rig) -> None:
    """The job's end reaches the audit without a request for it, and the chain holds."""
    async with api.working():
        job_id = await api.submit()
        await api.ended(job_id)
        async with asyncio.timeout(60):
            events: list[str] = []
            while "job_completed" not in events:
                page = (await api.admin.get(f"/audit?job_id={job_id}")).json()
                events = [record["event"] for record in page["items"]]
                await asyncio.sleep(0.05)
    assert events == ["job_submitted", "job_completed"]
    verdict = (await api.admin.get("/audit/verify")).json()
    assert verdict["is_good"] and verdict["checked"] >= 5
    later = (await api.admin.get(f"/audit/verify?head={verdict['head']}")).json()
    assert later["is_good"]
