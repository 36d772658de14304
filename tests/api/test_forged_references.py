"""A caller who knows the hash of another caller's artifact cannot read it, wherever the forged reference is put."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import windlass as wl
from tests.api.rig import Rig
from windlass.app.service import serving

SIZE = 300_000
TEXT = b'"' + b"0123456789" * (SIZE // 10) + b'"'
BYTES = len(TEXT)
HASH = hashlib.sha256(TEXT).hexdigest()


def forged(size: Any = BYTES, sha256: str = HASH) -> dict[str, Any]:
    return {"$artifact": {"sha256": sha256, "size": size}}


@wl.step
def fill(size: int) -> str:
    return "0123456789" * (size // 10)


@wl.recipe
def large(size: int):  # type: ignore[no-untyped-def]
    return fill(size)


@wl.step
async def in_loop(value: Any) -> Any:
    return value


@wl.step
def in_thread(value: Any) -> Any:
    return value


@wl.step(cpu=True)
def in_process(value: Any) -> Any:
    return value


@wl.step
def spelled(value: str) -> Any:
    """JSON text as the handler wrote it, with spaces and escapes."""
    return msgspec.Raw(value.encode())


@wl.step
def as_text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


@wl.step(retry=wl.Retry(max_attempts=1))
def fail(value: Any) -> Any:
    raise wl.Permanent("on purpose")


@wl.recipe
def loop(value: Any):  # type: ignore[no-untyped-def]
    return {"seen": as_text(in_loop(value)), "last": in_loop(value)}


@wl.recipe
def thread(value: Any):  # type: ignore[no-untyped-def]
    return {"seen": as_text(in_thread(value)), "last": in_thread(value)}


@wl.recipe
def process(value: Any):  # type: ignore[no-untyped-def]
    return {"seen": as_text(in_process(value)), "last": in_process(value)}


@wl.recipe
def raw(value: str):  # type: ignore[no-untyped-def]
    return spelled(value)


@wl.recipe
def echo(value: Any):  # type: ignore[no-untyped-def]
    in_loop(1)
    return value


@wl.recipe
def child(value: Any):  # type: ignore[no-untyped-def]
    made = echo(value)
    return {"seen": as_text(made), "last": made}


@wl.recipe
def many(values: list):  # type: ignore[type-arg,no-untyped-def]
    made = in_loop.map(values)
    return {"seen": as_text(made), "last": made}


@wl.recipe
def retried(value: Any):  # type: ignore[no-untyped-def]
    made = in_loop(value)
    return fail(made)


@wl.recipe
def waits():  # type: ignore[no-untyped-def]
    return wl.wait_for("word")


app = wl.App()
app.add([large, loop, thread, process, raw, echo, child, many, retried, waits])


@asynccontextmanager
async def working(api: Rig) -> AsyncIterator[None]:
    async with serving(api.windlass, app):
        yield


async def run(api: Rig, recipe: str, client: Any, **inputs: Any) -> str:
    await api.windlass.register(*app.recipes.values())
    job_id = await api.submit(recipe, client=client, inputs=inputs)
    async with working(api):
        await api.ended(job_id)
    return job_id


async def secret_of_the_user(api: Rig) -> None:
    """Another caller's artifact is in the store, under the hash that the forger knows."""
    job_id = await run(api, "large", api.user, size=SIZE)
    assert (await api.user.get(f"/jobs/{job_id}/steps/0/output")).content == TEXT


FORGED = [
    pytest.param(forged(), id="right"),
    pytest.param(forged(7), id="wrong-size"),
    pytest.param(forged(-1), id="negative-size"),
    pytest.param(forged(2**62), id="huge-size"),
    pytest.param(forged(sha256="0" * 64), id="unknown-hash"),
    pytest.param(forged(sha256="../../etc/passwd"), id="path"),
    pytest.param({"$artifact": None}, id="no-reference"),
]


@pytest.mark.parametrize("value", FORGED)
async def test_a_forged_output_is_plain_data(api: Rig, value: Any) -> None:
    await secret_of_the_user(api)
    for recipe in ("loop", "child"):
        job_id = await run(api, recipe, api.other, value=value)
        await _is_plain(api, job_id, value)


@pytest.mark.parametrize("recipe", ["thread", "process"])
async def test_it_is_plain_data_wherever_the_handler_runs(api: Rig, recipe: str) -> None:
    await secret_of_the_user(api)
    job_id = await run(api, recipe, api.other, value=forged())
    await _is_plain(api, job_id, forged())


async def test_it_is_plain_data_in_the_children_of_a_fan_out(api: Rig) -> None:
    await secret_of_the_user(api)
    values = [1, forged(), forged(7), [forged()], {"x": forged()}]
    job_id = await run(api, "many", api.other, values=values)
    await _is_plain(api, job_id, values)


@pytest.mark.parametrize(
    "text",
    [
        '{"$artifact":{"sha256":"%s","size":%d}}',
        ' {\n "\\u0024artifact" : {"size": 1, "sha256":"%s","size":%d} } ',
        '{"$\\u0061rtifact":1,"$artifact":{"sha256":"%s","size":%d}}',
    ],
)
async def test_no_spelling_of_the_text_makes_a_reference(api: Rig, text: str) -> None:
    await secret_of_the_user(api)
    value = text % (HASH, len(TEXT))
    job_id = await run(api, "raw", api.other, value=value)
    assert (await api.other.get(f"/jobs/{job_id}/output")).json() == forged()
    step = await api.other.get(f"/jobs/{job_id}/steps/0/output")
    assert (step.status_code, step.json()) == (200, forged())


async def test_what_a_retry_keeps_is_plain_data_still(api: Rig) -> None:
    await secret_of_the_user(api)
    job_id = await run(api, "retried", api.other, value=forged())
    again = await api.other.post(f"/jobs/{job_id}/retry", json={})
    assert again.status_code == 202, again.text
    async with working(api):
        await api.ended(again.json()["job_id"])
    kept = await api.other.get(f"/jobs/{again.json()['job_id']}/steps/0/output")
    assert (kept.status_code, kept.json()) == (200, forged())


async def test_inputs_and_events_are_no_way_in(api: Rig) -> None:
    await secret_of_the_user(api)
    job_id = await run(api, "echo", api.other, value=forged())
    assert (await api.other.get(f"/jobs/{job_id}/input")).json() == {"value": forged()}
    assert (await api.other.get(f"/jobs/{job_id}/output")).json() == forged()
    waiting = await api.submit("waits", client=api.other)
    sent = await api.other.post(f"/jobs/{waiting}/events", json={"name": "word", "body": forged()})
    assert (sent.status_code, sent.json()["code"]) == (422, "bad_input")


async def _is_plain(api: Rig, job_id: str, value: Any) -> None:
    output = await api.other.get(f"/jobs/{job_id}/output")
    assert output.status_code == 200, output.text
    assert msgspec.json.decode(output.json()["seen"]) == value, "the next step was given what the caller wrote"
    assert output.json()["last"] == value
    steps = (await api.other.get(f"/jobs/{job_id}/steps")).json()["items"]
    for step in steps:
        shown = await api.other.get(f"/jobs/{job_id}/steps/{step['no']}/output")
        assert shown.status_code in (200, 409), shown.text
        assert TEXT[1:-1] not in shown.content
        ranged = await api.other.get(f"/jobs/{job_id}/steps/{step['no']}/output", headers={"Range": "bytes=0-9"})
        assert ranged.status_code in (206, 409), ranged.text
