"""What load balancers and Prometheus ask: alive under any failure, ready when all works, metrics for their readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.api.rig import Rig, rig
from windlass.api import readiness
from windlass.api.edge import HttpEdge
from windlass.api.routes import health
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.app.settings import Settings
from windlass.core.errors import DatabaseUnavailable
from windlass.pure.service import STUCK_AFTER_S, WITHOUT, state_of
from windlass.store import outage
from windlass.store.database import Database
from windlass.store.migrate import SchemaState, known, migrate
from windlass.telemetry.exposition import Exposition
from windlass.telemetry.meters import Meters


class Place:
    """An API of nothing but its health, and what its health is made of."""

    def __init__(self, db: Database) -> None:
        meters = Meters(CollectorRegistry())
        self.ages_s: dict[str, float] = {"loops": 0.1, "hub": 2.0}
        self.told: dict[str, str] = {}
        self.parts: Any = SimpleNamespace(
            db=db,
            meters=meters,
            exposition=Exposition(meters.registry),
            settings=Settings(),
            services=SimpleNamespace(states=self.states),
            policies=SimpleNamespace(known=None),
            is_draining=False,
            folders=(),
        )
        app = FastAPI()
        app.router.routes.extend(health.router.routes)
        app.state.parts = self.parts
        app.state.probe = readiness.Probe(self.parts, lambda: 0.0)
        self._state = app.state
        app.add_middleware(HttpEdge, parts=self.parts)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")

    def states(self) -> dict[str, str]:
        """As the process's services would tell."""
        return {name: state_of(age_s) for name, age_s in self.ages_s.items()} | self.told

    async def parts_told(self, status: int) -> dict[str, str]:
        """What /readyz says of each part now, with this status; the process is alive all the while."""
        self._state.probe = readiness.Probe(self.parts, lambda: 0.0)
        alive = await self.client.get("/healthz")
        assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
        answer = await self.client.get("/readyz")
        assert answer.status_code == status, answer.text
        assert answer.json()["status"] == ("ready" if status == 200 else "not_ready")
        assert ("retry-after" in answer.headers) == (status == 503)
        parts: dict[str, str] = answer.json()["parts"]
        return parts


@asynccontextmanager
async def place(dsn: str) -> AsyncIterator[Place]:
    db = await Database.open(dsn, max_size=2)
    made = Place(db)
    try:
        yield made
    finally:
        await made.client.aclose()
        await db.close()


async def test_a_process_whose_parts_work_is_ready(dsn: str) -> None:
    async with place(dsn) as at:
        assert await at.parts_told(200) == {"database": "ok", "migrations": "ok", "loops": "ok", "hub": "ok"}


async def test_a_process_that_runs_the_loops_counts_itself_as_an_engine(dsn: str) -> None:
    async with place(dsn) as at:
        assert (await at.client.get("/readyz")).json()["engines"] == 1, "no engine has been seen in the database"
        del at.ages_s["loops"]
        assert (await at.client.get("/readyz")).json()["engines"] == 0


async def test_a_stopped_database_is_said_and_recovered_from() -> None:
    server = EmbeddedPostgres(durable=False)
    dsn = await asyncio.to_thread(server.start)
    try:
        async with place(dsn) as at:
            await migrate(at.parts.db)
            await at.parts_told(200)
            await asyncio.to_thread(server.stop)
            found = await at.parts_told(503)
            away = "PostgreSQL cannot be reached, or closed the connection"
            assert found == {"database": away, "loops": "ok", "hub": "ok"}
    finally:
        await asyncio.to_thread(server.stop)


async def test_a_database_that_hangs_is_not_waited_for(fresh_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "ANSWER_WITHIN_S", 0.1)
    holder = await asyncpg.connect(fresh_dsn)
    async with place(fresh_dsn) as at:
        async with holder.transaction():
            await holder.execute("LOCK TABLE windlass.migrations IN ACCESS EXCLUSIVE MODE")
            assert (await at.parts_told(503))["database"] == "no answer within 0.1 s"
        monkeypatch.undo()
        await at.parts_told(200)
    await holder.close()


async def test_a_schema_that_is_behind_or_ahead_is_said(fresh_dsn: str) -> None:
    last = known()[-1][0]
    admin = await asyncpg.connect(fresh_dsn)
    async with place(fresh_dsn) as at:
        await admin.execute("DELETE FROM windlass.migrations WHERE name = $1", last)
        assert await at.parts_told(503) == {
            "database": "ok", "migrations": f"missing: {last}", "loops": "ok", "hub": "ok",
        }  # fmt: skip
        await admin.execute("INSERT INTO windlass.migrations VALUES ($1), ('9999_later')", last)
        assert (await at.parts_told(200))["migrations"] == "newer than this release, compatible"
        await admin.execute("UPDATE windlass.installation SET oldest_schema = 9999, oldest_release = '9.0'")
        assert (await at.parts_told(503))["migrations"] == "newer than this release, not compatible"
    await admin.close()


async def test_a_loop_that_hangs_is_said(dsn: str) -> None:
    async with place(dsn) as at:
        at.ages_s["loops"] = STUCK_AFTER_S + 12
        found = await at.parts_told(503)
        assert found == {"database": "ok", "migrations": "ok", "loops": "has not run for 42 s", "hub": "ok"}


async def test_a_process_is_ready_without_what_it_does_not_need(dsn: str) -> None:
    async with place(dsn) as at:
        at.told = {"bus": WITHOUT}
        assert (await at.parts_told(200))["bus"] == WITHOUT
        at.told = {"bus": "is not ready"}
        await at.parts_told(503)


@pytest.mark.parametrize(
    ("error", "told", "is_logged"),
    [
        (DatabaseUnavailable("PostgreSQL is shutting down"), "PostgreSQL is shutting down", False),
        (
            asyncpg.AdminShutdownError("postgres://ada:secret@host"),
            outage.outage_of(asyncpg.AdminShutdownError()),
            False,
        ),
        (KeyError("secret"), readiness.BROKEN, True),
        (asyncpg.UndefinedColumnError("column secret"), readiness.BROKEN, True),
    ],
)
async def test_an_error_of_the_look_is_not_taken_for_a_slow_database(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, told: Any,
    is_logged: bool,
) -> None:  # fmt: skip
    async def fails(*_: object) -> None:
        raise error

    async with place(dsn) as at:
        monkeypatch.setattr(readiness, "engines", fails)
        found = (await at.parts_told(503))["database"]
        assert found == (told if isinstance(told, str) else told.reason)
        assert "secret" not in found
        monkeypatch.undo()
        await at.parts_told(200)
    logged = [record for record in caplog.records if "/readyz" in record.getMessage()]
    assert bool(logged) is is_logged
    assert all(record.exc_info for record in logged)


async def test_a_process_that_ends_is_not_ready(dsn: str) -> None:
    async with place(dsn) as at:
        at.parts.is_draining = True
        assert (await at.parts_told(503))["process"] == "is ending"


async def test_however_many_ask_the_database_is_asked_once_a_second(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now = 0, 100.0

    async def schema_state(db: Database, folders: object) -> SchemaState:
        nonlocal asked
        asked += 1
        return SchemaState([], [])

    monkeypatch.setattr(readiness, "schema_state", schema_state)
    async with place(dsn) as at:
        probe = readiness.Probe(at.parts, lambda: now)
        assert all(state.is_ready for state in await asyncio.gather(*(probe.state() for _ in range(100))))
        assert asked == 1
        now += readiness.LOOK_EVERY_S
        await probe.state()
        assert asked == 2


async def test_one_who_hangs_up_does_not_end_the_look_of_others(dsn: str) -> None:
    async with place(dsn) as at:
        probe = readiness.Probe(at.parts, lambda: 0.0)
        first = asyncio.create_task(probe.state())
        second = asyncio.create_task(probe.state())
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).is_ready


async def test_metrics_of_a_running_service_hold_what_was_done(api: Rig) -> None:
    await api.run("hello")
    answer = await api.stranger.get("/metrics")
    assert answer.status_code == 200
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    routes = {sample.labels["route"] for sample in families["windlass_http_requests"].samples}
    assert "/jobs" in routes
    assert not any(character.isdigit() for route in routes for character in route)
    pool = {sample.labels["state"]: sample.value for sample in families["windlass_pool_connections"].samples}
    assert pool["busy"] + pool["idle"] >= 1


async def test_away_from_this_machine_metrics_take_an_admins_key(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, listen="0.0.0.0:8420") as api:
        answers = [await client.get("/metrics") for client in (api.stranger, api.user, api.admin)]
        assert [answer.status_code for answer in answers] == [401, 403, 200]
        assert (await api.stranger.get("/version")).status_code == 200


async def test_behind_a_proxy_metrics_take_an_admins_key(api: Rig) -> None:
    answer = await api.stranger.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"})
    assert answer.status_code == 401


async def test_whatever_is_answered_429_is_counted_by_its_reason(api: Rig) -> None:
    await api.submit()
    api.parts.depth.most = 0
    # The last look at the queues is kept for a second.
    api.parts.depth._looked_s = float("-inf")
    answer = await api.user.post("/jobs", json={"recipe": "hello"})
    assert (answer.status_code, answer.json()["code"]) == (429, "busy")
    families = {f.name: f for f in text_string_to_metric_families((await api.stranger.get("/metrics")).text)}
    counted = {sample.labels["reason"]: sample.value for sample in families["windlass_limited"].samples}
    assert counted == {"busy": 1}
