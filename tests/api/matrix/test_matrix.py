"""Every route for everyone who may ask, and for everyone who may not."""

from __future__ import annotations

import json
import string
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi.routing import APIRoute

from tests.access.membership_service import membership_service
from tests.api.matrix.expected import ASKERS, NEEDS, PERSONS, ROWS, STRANGERS, Kind, Row, expected
from tests.api.outside import HAND, SECRETS, VARIABLE, handed_over, park, providers_file, signed, token
from tests.api.rig import Rig, rig
from windlass.api.app import bare
from windlass.api.guard import guard_of
from windlass.core.outcome import Failure, Fault, Report, Success
from windlass.core.plan import Node, NodeKind, Plan
from windlass.engine import budgets, claim, recipes, settle, workers
from windlass.engine.submit import Submission, Webhook, submit
from windlass.views import read

OWNER = "ada"
UNKNOWN = "0199aaaa-0000-7000-8000-00000000dead"
ROUTES = [route for route in bare().routes if isinstance(route, APIRoute)]
SECRET = b"0123456789abcdef0123456789abcdef"
WAITING = Plan("waiting", (Node("asked", kind=NodeKind.EVENT, run="approved"),))
TOLD = json.dumps({"id": "nobody's", "status": "SUCCEEDED"}).encode()
GIVEN_UP = "UPDATE windlass.webhooks SET state = 'DEAD', ended_at = windlass.clock() WHERE job_id = $1"


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    names = [route.operation_id for route in ROUTES]
    assert len(names) == len(set(names))
    assert set(names) == set(ROWS)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: str(route.operation_id))
def test_the_guard_is_what_the_row_says(route: APIRoute) -> None:
    guard, who = guard_of(route.endpoint), ROWS[str(route.operation_id)].who
    assert guard.is_open == (who == "-")
    assert guard.scope == NEEDS.get(who)
    # Guards and methods distinguish writing routes from reading routes alike.
    assert (guard.operation == "write") == bool(set(route.methods or ()) - {"GET", "HEAD"})


def caller_of(person: str) -> str:
    """The caller that this person is."""
    return {"another caller": "eve", "admin": "root", "auditor": "clerk"}.get(person, OWNER)


class Stage:
    """The API, a key for each person, and jobs of each kind."""

    def __init__(self, api: Rig) -> None:
        self.api = api
        self.keys: dict[str, str | None] = {}
        self._worker = api.parts.ids.new()
        self._made = 0

    @property
    def has_no_keys(self) -> bool:
        """Whether keys are another service's business."""
        return self.api.parts.keys is None

    async def enlist(self) -> None:
        await workers.enlist(
            self.api.parts.db, self._worker, host="h", pid=1, queues=["main_processing"], concurrency=9, lease_s=1e6
        )
        await self.api.windlass.announce_providers()
        await recipes.register(self.api.parts.db, WAITING)

    async def open(self) -> None:
        api = self.api
        await self.enlist()
        good = await api.key("unused")
        self.keys = {
            "no key": None,
            "junk": "let me in",
            "bad checksum": good[:-1] + ("0" if good[-1] != "0" else "1"),
            "revoked": await api.key(OWNER),
            "expired": await api.key(OWNER, expires_in_s=0.001),
        }
        revoked = str(self.keys["revoked"])
        assert api.parts.keys is not None
        await api.parts.keys.revoke(revoked.split("_")[1], by="test")
        for person, scopes in ASKERS.items():
            kind = "service" if person == "service" else "user"
            self.keys[person] = await api.key(caller_of(person), scopes=scopes, caller_type=kind)

    async def job(self, kind: Kind) -> UUID:
        """A new job of the owner's."""
        parts = self.api.parts
        if kind == "handed":
            raise AssertionError("a token goes with it")
        plan = WAITING if kind == "waiting" else await parts.plans.latest("hello")
        webhook = Webhook("https://example.com/", parts.secret.seal(SECRET)) if kind == "told" else None
        job_id = parts.ids.new()
        inputs = {} if kind == "waiting" else {"name": "x"}
        await submit(parts.db, [Submission(plan, inputs, job_id, OWNER, correlation_id="c", webhook=webhook)])
        if kind not in ("queued", "waiting"):
            await self._end(job_id, is_failed=kind == "failed")
        if kind == "told":
            async with parts.db.connection() as connection:
                await connection.execute(GIVEN_UP, job_id)
        return job_id

    async def _end(self, job_id: UUID, *, is_failed: bool) -> None:
        db = self.api.parts.db
        while True:
            taken = await claim.claim(db, worker=self._worker, queues=["main_processing"], limit=100)
            outcome = Failure(Fault("x", ""), is_retryable=False) if is_failed else Success('"y"')
            reports = [Report(one.job_id, one.no, one.attempt, outcome) for one in taken if one.job_id == job_id]
            if reports:
                await settle.settle(db, reports, spread=lambda: 0.0)
                return
            assert taken, "the job was not found"

    async def values(self, row: Row) -> dict[str, str]:
        """What the placeholders of a request stand for."""
        made: dict[str, str] = dict(row.path)
        if row.job == "handed":
            one = await handed_over(self.api, HAND, OWNER)
            assert await park(self.api, one)
            made |= {"job_id": str(one.job_id), "token": token(self.api, one)}
        elif row.job:
            made["job_id"] = str(await self.job(row.job))
        self._made += 1
        if "{event_id}" in row.path.values():
            made["event_id"] = f"kept-{self._made}"
            headers = signed(TOLD, time.time(), made["event_id"])
            assert (await self.api.stranger.post("/webhooks/hooks", content=TOLD, headers=headers)).status_code == 200
        if "{budget}" in row.path.values():
            made["name"] = f"budget {self._made}"
            await budgets.set(self.api.parts.db, "recipe", made["name"], 1)
        if "{key_id}" in row.path.values():
            made["key_id"] = "abcdefghijkl" if self.has_no_keys else (await self.api.key("fired")).split("_")[1]
        return made

    async def ask(self, route: APIRoute, row: Row, person: str, values: dict[str, str]) -> httpx.Response:
        async with self.api.client(self.keys[person]) as client:
            return await self.ask_with(client, route, row, values)

    async def ask_with(
        self,
        client: httpx.AsyncClient,
        route: APIRoute,
        row: Row,
        values: dict[str, str],
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        path = route.path_format.format(**values)
        self._made += 1
        sent: dict[str, Any] = {"headers": headers}
        if row.is_signed:
            sent = {"content": TOLD, "headers": signed(TOLD, time.time(), f"sent-{self._made}")}
        elif row.body is not None:
            sent["json"] = _filled(row.body, values)
        async with client.stream(min(route.methods or ()), path, params=row.query, **sent) as answer:
            if not (row.is_stream and answer.status_code == 200):
                await answer.aread()
        return answer


def _filled(body: Any, values: dict[str, str]) -> Any:
    match body:
        case dict():
            return {name: _filled(value, values) for name, value in body.items()}
        case list():
            return [_filled(value, values) for value in body]
        case str() if any(name for _, name, _, _ in string.Formatter().parse(body)):
            return body.format(**values)
        case _:
            return body


@pytest.fixture
async def stage(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setenv(VARIABLE, SECRETS)
    async with rig(dsn, tmp_path, providers=providers_file(tmp_path)) as api:
        made = Stage(api)
        await made.open()
        yield made


async def wrong_answers(stage: Stage, persons: Iterable[str]) -> list[str]:
    """Ask everything for everyone; what was not answered as it should be."""
    async with AsyncExitStack() as closing:
        clients = {
            person: await closing.enter_async_context(stage.api.client(stage.keys[person])) for person in persons
        }
        return [fault for route in ROUTES for fault in await _wrong_answers_of(stage, route, clients)]


async def _wrong_answers_of(stage: Stage, route: APIRoute, clients: Mapping[str, httpx.AsyncClient]) -> list[str]:
    wrong: list[str] = []
    row = ROWS[str(route.operation_id)]
    values: dict[str, str] = {}
    for person, client in clients.items():
        should = expected(row, person)
        if should < 400 and row.who == "A" and stage.has_no_keys and route.path.startswith("/keys"):
            should = 404
        # A refused request does not change its job, so one job serves all of them.
        if not values or should < 400:
            values = await stage.values(row)
        before = await _versions(stage, values)
        answer = await stage.ask_with(client, route, row, values)
        # Each request has only its key: a session of the console must not speak for the next one.
        client.cookies.clear()
        if answer.status_code != should:
            wrong.append(f"{route.operation_id} for {person}: {answer.status_code}, not {should}")
        elif should >= 400:
            wrong += [f"{route.operation_id} for {person}: {fault}" for fault in faults(answer, should)]
            if await _versions(stage, values) != before:
                wrong.append(f"{route.operation_id} for {person}: refused, and yet something was done")
        if answer.status_code < 400:
            values = {}
    return wrong


async def test_every_route_gives_everyone_the_right_answer(stage: Stage) -> None:
    wrong = await wrong_answers(stage, PERSONS)
    assert not wrong, "\n".join(wrong)


async def test_every_route_gives_everyone_the_right_answer_by_membership(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SECRETS)
    async with membership_service() as remote:
        answers = {
            person: {
                "status": 200,
                "body": {
                    "caller_id": caller_of(person),
                    "scopes": sorted(scopes),
                    "caller_type": "service" if person == "service" else "user",
                },
            }
            for person, scopes in ASKERS.items()
        }
        await remote.order(answers={f"key-of-{name.replace(' ', '-')}": answer for name, answer in answers.items()})
        async with rig(dsn, tmp_path, membership_url=remote.url, providers=providers_file(tmp_path)) as api:
            stage = Stage(api)
            await stage.enlist()
            stage.keys = {
                "no key": None,
                "junk": "let me in",
                **{name: f"key-of-{name.replace(' ', '-')}" for name in ASKERS},
            }
            wrong = await wrong_answers(stage, stage.keys)
    assert not wrong, "\n".join(wrong)


CODES = {401: "unauthenticated", 403: "forbidden", 404: "not_found", 409: "wrong_state"}


def faults(answer: httpx.Response, status: int) -> list[str]:
    """What a refusal lacks."""
    found = []
    if answer.headers["content-type"] != "application/problem+json":
        return ["no problem document"]
    told = answer.json()
    if (told["status"], told["code"]) != (status, CODES[status]):
        found.append(f"it says {told['status']} {told['code']}")
    if not told["hint"] or told["request_id"] != answer.headers["x-request-id"]:
        found.append("no hint, or not its request's id")
    if status == 401 and "bearer" not in answer.headers.get("www-authenticate", "").lower():
        found.append("no WWW-Authenticate")
    return found


async def _versions(stage: Stage, values: dict[str, str]) -> tuple[int, bool] | None:
    if "job_id" not in values:
        return None
    job = await read.job(stage.api.parts.db, UUID(values["job_id"]))
    return job.event_seq, job.deleted_at is not None


async def test_anothers_job_and_no_job_are_told_alike(stage: Stage) -> None:
    for route in ROUTES:
        row = ROWS[str(route.operation_id)]
        if not row.job:
            continue
        theirs = await stage.values(row)
        nobodys = {**theirs, "job_id": UNKNOWN}
        told = []
        for values in (theirs, nobodys):
            answer = await stage.ask(route, row, "another caller", values)
            body = answer.json()
            del body["request_id"]
            told.append(str(body).replace(values["job_id"], "<id>"))
        assert told[0] == told[1], route.operation_id


async def test_all_bad_keys_are_told_alike(stage: Stage) -> None:
    [route] = [route for route in ROUTES if route.operation_id == "jobs.list"]
    told = []
    for person in STRANGERS:
        answer = await stage.ask(route, ROWS["jobs.list"], person, {})
        body = answer.json()
        del body["request_id"]
        told.append((body, answer.headers["www-authenticate"]))
    assert all(one == told[0] for one in told)
