"""Every refusal looks the same, says what to do, and is documented."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.rig import Rig
from windlass.api import problem as problems
from windlass.api.wire.problem import Problem
from windlass.core import errors
from windlass.pure.problem import FAULT_OF_OURS, KINDS, hint_of, kind_of


def tree(root: type[errors.WindlassError] = errors.WindlassError) -> Iterator[type[errors.WindlassError]]:
    for kind in root.__subclasses__():
        if kind.__module__ == "windlass.core.errors":
            yield kind
            yield from tree(kind)


def example(kind: type[errors.WindlassError]) -> errors.WindlassError:
    if issubclass(kind, errors.Limited):
        return kind("wait", retry_after_s=1.2)
    if issubclass(kind, errors.BadRange):
        return kind("no", size=7)
    return kind("no")


def test_every_error_has_a_row_and_every_row_an_error() -> None:
    assert {kind.code for kind in tree()} == set(KINDS)
    assert all(kind_of(kind).error is kind for kind in tree())


@pytest.mark.parametrize("kind", list(tree()), ids=lambda kind: kind.__name__)
def test_every_error_is_a_problem(kind: type[errors.WindlassError]) -> None:
    made = problems.problem_of(example(kind), instance="/jobs", request_id="r")
    row = KINDS[kind.code]
    assert (made.code, made.status, made.retryable) == (kind.code, row.status, row.is_retryable)
    assert made.type == f"/problems/{kind.code}"
    assert made.title and made.hint and made.detail


def test_a_fault_of_ours_tells_nothing_of_itself() -> None:
    made = problems.problem_of(errors.Broken("password=hunter2", remedy="see /etc"), instance="/", request_id="r")
    assert made.detail == FAULT_OF_OURS
    assert "hunter2" not in made.model_dump_json() and "/etc" not in made.model_dump_json()
    assert problems.known(ValueError("hunter2")).message == FAULT_OF_OURS


def test_a_hint_for_the_command_line_is_not_told_over_http() -> None:
    assert "windlass" not in hint_of(errors.NotFound("no", remedy="`windlass jobs` lists the known ones"))
    assert hint_of(errors.BadInput("no", remedy="Write it so")) == "Write it so."


async def test_an_unknown_path_and_an_unknown_method_are_problems(api: Rig) -> None:
    missing = await api.stranger.get("/nowhere")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    wrong = await api.stranger.put("/jobs")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert wrong.headers["Allow"] == "GET, POST"
    assert (await api.user.head("/jobs")).status_code == 405
    for answer in (missing, wrong):
        assert answer.headers["Content-Type"] == "application/problem+json"
        Problem.model_validate(answer.json())


async def test_a_slash_too_many_is_no_redirect(api: Rig) -> None:
    assert (await api.user.get("/jobs/")).status_code == 404


async def test_a_stranger_learns_nothing(api: Rig) -> None:
    """The answer is the same for every request, and comes before the request is read."""
    almost = api.admin_key[:-1] + ("A" if api.admin_key[-1] != "A" else "B")
    answers = [
        await api.stranger.post("/jobs", content=b"not json at all"),
        await api.stranger.post("/jobs", json={"recipe": "hello"}, headers={"X-API-Key": "wl_junk"}),
        await api.stranger.post("/jobs", content=b"[" * 10_000, headers={"Authorization": "Bearer nobody"}),
        await api.stranger.get("/jobs/not-an-id?unknown=1"),
        await api.stranger.get("/keys", headers={"X-API-Key": almost}),
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert {answer.headers["WWW-Authenticate"] for answer in answers} == {'Bearer realm="windlass"'}
    both = {"X-API-Key": api.user_key, "Authorization": f"Bearer {api.user_key}"}
    assert (await api.stranger.get("/me", headers=both)).status_code == 200


async def test_a_key_in_the_query_is_not_read(api: Rig) -> None:
    assert (await api.stranger.get(f"/me?api_key={api.user_key}")).status_code == 401


async def test_a_scope_that_is_missing_is_403(api: Rig) -> None:
    async with api.client(await api.key("reader", scopes=frozenset({"jobs:read"}))) as reader:
        assert (await reader.get("/jobs")).status_code == 200
        answer = await reader.post("/jobs", json={"recipe": "hello"})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert "jobs:write" in answer.json()["detail"]


def bad(number: int) -> dict[str, str]:
    return {"X-API-Key": f"wl_{number:012}_{number:043}"}


async def test_an_address_that_guesses_is_turned_away_unheard(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.api.admission.REFUSALS_PER_MINUTE_MAX", 3)
    assert (await api.user.get("/me")).status_code == 200
    for number in range(3):
        assert (await api.stranger.get("/me", headers=bad(number))).status_code == 401
    for credential in (bad(9), {"X-API-Key": await api.key("new")}, {"Authorization": "Bearer x"}):
        answer = await api.stranger.get("/me", headers=credential)
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
        assert int(answer.headers["Retry-After"]) > 0
    # Clients share addresses: a key that was good before is still good, and no key is still no key.
    assert (await api.user.get("/me")).status_code == 200
    assert (await api.stranger.get("/me")).status_code == 401


async def test_a_key_that_was_good_and_is_revoked_counts_as_a_guess(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.api.admission.REFUSALS_PER_MINUTE_MAX", 3)
    key = await api.key("gone")
    given = {"X-API-Key": key}
    assert (await api.stranger.get("/me", headers=given)).status_code == 200
    assert api.parts.keys is not None
    await api.parts.keys.revoke(key.split("_")[1], by="test")
    answers = [(await api.stranger.get("/me", headers=given)).status_code for _ in range(4)]
    assert answers == [401, 401, 401, 429]


async def test_requests_without_a_key_and_from_other_sites_are_no_guesses(
    api: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.api.admission.REFUSALS_PER_MINUTE_MAX", 3)
    for _ in range(10):
        assert (await api.stranger.get("/me")).status_code == 401
        assert (await api.stranger.post("/jobs", json={"recipe": "hello"})).status_code == 401
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        for number in range(10):
            answer = await api.stranger.get(f"/jobs/stream?ticket=wlt_{number:043}", headers=headers)
            assert answer.status_code == 401
    # A key that this process has never seen.
    assert (await api.stranger.get("/me", headers={"X-API-Key": await api.key("new")})).status_code == 200


async def test_every_kind_of_problem_has_a_page(api: Rig) -> None:
    for code, row in KINDS.items():
        page = await api.stranger.get(f"/problems/{code}")
        assert page.status_code == 200 and row.title in page.text
        assert "script" not in page.text
    assert (await api.stranger.get("/problems/none")).status_code == 404
    assert "/jobs/{job_id}" in (await api.stranger.get("/openapi")).text
