"""Inputs and outputs over HTTP: whole, in ranges, and not at all when they are known."""

from __future__ import annotations

import hashlib

import pytest

from tests.api.rig import Rig

SIZE = 3_000_000


async def test_input_and_output_are_what_went_in_and_came_out(api: Rig) -> None:
    job_id = await api.run(inputs={"name": "Ada"})
    assert (await api.user.get(f"/jobs/{job_id}/input")).json() == {"name": "Ada"}
    output = await api.user.get(f"/jobs/{job_id}/output")
    assert (output.json(), output.headers["Content-Type"]) == ("Hello, Ada!", "application/json")


async def test_a_job_without_an_output_says_where_it_stands(api: Rig) -> None:
    job_id = await api.submit()
    answer = await api.user.get(f"/jobs/{job_id}/output")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert "QUEUED" in answer.json()["detail"]
    assert (await api.user.get(f"/jobs/{job_id}/steps/0/output")).status_code == 409
    assert (await api.user.get(f"/jobs/{job_id}/steps/9/output")).status_code == 404


async def test_what_is_known_is_not_sent_again(api: Rig) -> None:
    job_id = await api.run()
    for path in ("", "/input", "/output", "/steps/0/output"):
        first = await api.user.get(f"/jobs/{job_id}{path}")
        tag = first.headers["ETag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            again = await api.user.get(f"/jobs/{job_id}{path}", headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
        assert (await api.user.get(f"/jobs/{job_id}{path}", headers={"If-None-Match": '"x"'})).status_code == 200


async def test_the_tag_of_a_job_changes_when_the_job_does(api: Rig) -> None:
    job_id = await api.submit()
    tags = {(await api.user.get(f"/jobs/{job_id}")).headers["ETag"] for _ in range(2)}
    assert len(tags) == 1
    await api.user.post(f"/jobs/{job_id}/pause")
    assert (await api.user.get(f"/jobs/{job_id}")).headers["ETag"] not in tags


async def test_a_large_output_is_streamed_from_its_artifact(api: Rig) -> None:
    job_id = await api.run("large", inputs={"size": SIZE})
    whole = await api.user.get(f"/jobs/{job_id}/steps/0/output")
    assert len(whole.content) == SIZE + 2
    assert whole.headers["ETag"] == f'"{hashlib.sha256(whole.content).hexdigest()}"'
    assert whole.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert (await api.user.get(f"/jobs/{job_id}/output")).content == whole.content
    for wanted, start, end in (
        ("bytes=0-9", 0, 10),
        ("bytes=1000000-2999999", 1_000_000, 3_000_000),
        (f"bytes={SIZE}-", SIZE, SIZE + 2),
        ("bytes=-5", SIZE - 3, SIZE + 2),
        ("bytes=2999990-99999999", 2_999_990, SIZE + 2),
    ):
        part = await api.user.get(f"/jobs/{job_id}/steps/0/output", headers={"Range": wanted})
        assert part.status_code == 206, part.text
        assert part.content == whole.content[start:end]
        assert part.headers["Content-Range"] == f"bytes {start}-{end - 1}/{SIZE + 2}"
        assert part.headers["Content-Length"] == str(end - start)
    graph = (await api.user.get(f"/jobs/{job_id}/graph?results=true")).json()
    assert graph["results"]["steps"]["fill"]["outputs"]["$artifact"]["size"] == SIZE + 2


@pytest.mark.parametrize("path", ["output", "steps/0/output"])
@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ("bytes=0-", 206), ("bytes=13-", 416), ("bytes=99-100", 416), ("bytes=-0", 416), ("bytes=5-2", 200),
        ("bytes=0-1,3-4", 200), ("lines=0-1", 200), ("bytes=x", 200), ("bytes=", 200), ("bytes=-999", 206),
        ("bytes=" + "9" * 30 + "-", 200),
    ],
)  # fmt: skip
async def test_a_range_is_taken_refused_or_not_understood(api: Rig, path: str, wanted: str, status: int) -> None:
    job_id = await api.run(inputs={"name": "Ada"})
    answer = await api.user.get(f"/jobs/{job_id}/{path}", headers={"Range": wanted})
    assert answer.status_code == status, answer.text
    if status == 416:
        assert (answer.headers["Content-Range"], answer.json()["code"]) == ("bytes */13", "bad_range")
    if status == 200:
        assert answer.json() == "Hello, Ada!"


async def test_a_range_of_what_has_changed_is_the_whole(api: Rig) -> None:
    job_id = await api.run()
    headers = {"Range": "bytes=0-1", "If-Range": '"another"'}
    assert (await api.user.get(f"/jobs/{job_id}/output", headers=headers)).status_code == 200


async def test_an_artifact_that_is_gone_is_not_a_fault_of_the_caller(api: Rig) -> None:
    job_id = await api.run("large", inputs={"size": SIZE})
    for file in (path for path in api.windlass.artifacts.folder.rglob("*") if path.is_file()):  # type: ignore[attr-defined]
        file.unlink()
    for path in ("output", "steps/0/output"):
        answer = await api.user.get(f"/jobs/{job_id}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert str(api.windlass.settings.home) not in answer.text


async def test_the_output_of_a_fan_out_is_the_list_of_its_childrens(api: Rig) -> None:
    job_id = await api.run("fan", inputs={"many": 5})
    steps = (await api.user.get(f"/jobs/{job_id}/steps")).json()["items"]
    [fan] = [step for step in steps if step["parent"] is None and step["run"] == "double"]
    answer = await api.user.get(fan["links"]["output"])
    assert (answer.status_code, answer.json()) == (200, [0, 2, 4, 6, 8])
    part = await api.user.get(fan["links"]["output"], headers={"Range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, b"0,2")
    known = {"If-None-Match": answer.headers["ETag"]}
    assert (await api.user.get(fan["links"]["output"], headers=known)).status_code == 304
