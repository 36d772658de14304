"""The product's own processes, measured: a job submitted over HTTP is one trace, and every process can be scraped."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.telemetry.receiver import receiving

ROOT = Path(__file__).parents[2]
SECRET = "a-secret-of-the-tests-which-is-long-enough"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "windlass.cli.main", *words]


def environment(dsn: str, home: Path, **more: str) -> dict[str, str]:
    ours = {"DATABASE_URL": dsn, "HOME": str(home), "SECRET": SECRET, "LOG_FORMAT": "json", "LOG_LEVEL": "info"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    return kept | {f"WINDLASS_{name}": value for name, value in (ours | more).items()}


@asynccontextmanager
async def process(*words: str, env: dict[str, str], log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("wb") as errors:
        made = await asyncio.create_subprocess_exec(
            *command(*words), stdout=subprocess.PIPE, stderr=errors, env=env, cwd=ROOT
        )
    try:
        yield made
        made.terminate()
        assert await asyncio.wait_for(made.wait(), 60) == 0, log.read_text()
    finally:
        if made.returncode is None:
            made.kill()
        await made.wait()


async def until_ended(client: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            job: dict[str, Any] = (await client.get(f"/jobs/{job_id}")).json()
            if job["finished_at"] is not None:
                return job
            await asyncio.sleep(0.05)


def free_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.covers("JN-05")
async def test_a_job_submitted_over_http_is_one_trace_with_logs_and_metrics(fresh_dsn: str, tmp_path: Path) -> None:
    key = subprocess.run(
        command("keys", "create", "--caller", "ann"),
        env=environment(fresh_dsn, tmp_path),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout.strip()
    theirs, port = uuid4(), free_port()
    with receiving(tmp_path) as receiver:
        env = environment(fresh_dsn, tmp_path, TRACES=receiver.url)
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(
                process("serve", "api", "--listen", "127.0.0.1:0", env=env, log=tmp_path / "api.log")
            )
            assert api.stdout is not None
            # A worker that starts after the server knows at once that a follower needs its events.
            url = json.loads(await asyncio.wait_for(api.stdout.readline(), 120))["url"]
            scraped_at = {"WINDLASS_METRICS_LISTEN": f"127.0.0.1:{port}"}
            await stack.enter_async_context(
                process("worker", "windlass.examples", env=env | scraped_at, log=tmp_path / "worker.log")
            )
            async with httpx.AsyncClient(
                base_url=url, headers={"X-API-Key": key}, trust_env=False, timeout=60
            ) as client:
                headers = {"traceparent": f"00-{theirs.hex}-00000000000000ab-01", "X-Request-Id": "req-42"}
                async with asyncio.timeout(60):
                    while (
                        answer := await client.post("/jobs", json={"recipe": "hello", "inputs": {}}, headers=headers)
                    ).status_code == 404:
                        # The worker has not registered its recipes yet.
                        await asyncio.sleep(0.1)
                assert answer.status_code == 202, answer.text
                job_id = answer.json()["job_id"]
                assert (await until_ended(client, job_id))["status"] == "COMPLETED"
                async with asyncio.timeout(60):
                    while not any(span["trace"] == UUID(job_id).hex and not span["parent"] for span in receiver.spans):
                        await asyncio.sleep(0.1)
                scraped = [(await client.get(f"http://127.0.0.1:{port}/metrics")), (await client.get("/metrics"))]
    of_job = [span for span in receiver.spans if span["trace"] == UUID(job_id).hex]
    (root,) = [span for span in of_job if not span["parent"]]
    assert {span["parent"] for span in of_job if span is not root} == {root["span"]}
    assert {span["name"] for span in of_job} > {"submit", "hello"}
    assert {span["service"] for span in of_job} >= {"windlass-api", "windlass-worker"}
    (asked,) = [span for span in receiver.spans if span["trace"] == theirs.hex and span["links"]]
    assert (asked["name"], asked["parent"], asked["links"]) == ("POST /jobs", "00000000000000ab", [UUID(job_id).hex])
    lines = [json.loads(line) for line in (tmp_path / "api.log").read_text().splitlines()]
    (line,) = [line for line in lines if line.get("request_id") == "req-42" and line.get("status") == 202]
    assert (line["caller"], line["route"]) == ("ann", "/jobs")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "api.log", tmp_path / "worker.log"))
    assert key.encode() not in everything
    of_worker, of_api = ({f.name: f for f in text_string_to_metric_families(one.text)} for one in scraped)
    assert any(sample.labels["recipe"] == "hello" for sample in of_worker["windlass_attempts"].samples)
    counted = {(s.labels["recipe"], s.labels["status"]): s.value for s in of_api["windlass_jobs"].samples}
    assert counted["hello", "COMPLETED"] == counted["hello", "QUEUED"] == 1
