"""Lists over HTTP: filters, pages, owners."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.rig import Rig


async def ids(api: Rig, query: str = "", client: Any = None) -> list[str]:
    answer = await (client or api.user).get(f"/jobs?{query}")
    assert answer.status_code == 200, answer.text
    return [job["job_id"] for job in answer.json()["items"]]


async def test_a_list_is_the_callers_own_newest_first(api: Rig) -> None:
    mine = [await api.submit() for _ in range(3)]
    theirs = await api.submit(client=api.other)
    assert await ids(api) == mine[::-1]
    assert await ids(api, client=api.other) == [theirs]
    assert await ids(api, client=api.admin) == []
    assert await ids(api, "caller=*", client=api.admin) == [theirs, *mine[::-1]]
    assert await ids(api, "caller=other", client=api.admin) == [theirs]


async def test_pages_follow_one_another_while_new_jobs_come(api: Rig) -> None:
    made = [await api.submit() for _ in range(7)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await api.user.get(f"/jobs?limit=3{cursor}")).json()
        seen += [job["job_id"] for job in page["items"]]
        await api.submit()
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == made[::-1]


async def test_a_cursor_belongs_to_its_filter(api: Rig) -> None:
    for _ in range(2):
        await api.submit()
    cursor = (await api.user.get("/jobs?limit=1")).json()["next"]
    answer = await api.user.get(f"/jobs?limit=1&recipe=hello&cursor={cursor}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert (await api.other.get(f"/jobs?limit=1&cursor={cursor}")).status_code == 400


@pytest.mark.covers("CIX-37")
async def test_filters_by_what_callers_know(api: Rig) -> None:
    failed = await api.run("failing", labels={"corpus": "films", "team": "a"})
    done = await api.run(labels={"team": "b"})
    waiting = await api.submit(labels={"corpus": "films", "team": "b"})
    assert await ids(api, "status=FAILED") == [failed]
    assert await ids(api, "status=FAILED&status=COMPLETED") == [done, failed]
    assert await ids(api, "recipe=failing") == [failed]
    assert await ids(api, "label=team=b") == [waiting, done]
    assert await ids(api, "label=team:b&label=corpus=films") == [waiting]
    assert await ids(api, "label=corpus:films") == [waiting, failed]
    assert (await api.user.get("/jobs?corpus=films")).status_code == 400
    assert await ids(api, "failed_step=break_down") == [failed]
    listed = (await api.user.get("/jobs")).json()["items"]
    assert {one["job_id"]: one["failed_step"] for one in listed} == {failed: "break_down", done: None, waiting: None}
    assert await ids(api, "since=2000-01-01T00:00:00Z&until=2001-01-01T00:00:00Z") == []


async def test_a_listed_job_has_no_payload_and_all_its_links(api: Rig) -> None:
    job_id = await api.submit(inputs={"name": "secret"})
    answer = await api.user.get("/jobs")
    assert "secret" not in answer.text
    job = answer.json()["items"][0]
    async with api.working():
        await api.ended(job_id)
    for link in (link for name, link in job["links"].items() if name != "stream"):
        assert (await api.user.get(link)).status_code == 200, link


async def test_a_listed_job_says_what_it_is_doing_and_can_be_found_by_it(api: Rig) -> None:
    done = await api.run()
    queued, waiting = await api.submit(), await api.submit()
    async with api.parts.db.connection() as connection:
        await connection.execute("INSERT INTO windlass.waits VALUES ($1, 0, 'approved', '{}')", waiting)
    items = (await api.user.get("/jobs")).json()["items"]
    told = {job["job_id"]: (job["activity"], job["waiting_for"]) for job in items}
    assert told == {done: (None, None), queued: ("queued", None), waiting: ("waiting", "event:approved")}
    assert await ids(api, "activity=waiting") == [waiting]
    assert await ids(api, "activity=waiting,queued") == await ids(api, "activity=waiting&activity=queued")
    assert await ids(api, "event=approved") == [waiting]
    assert await ids(api, "event=other") == []
    assert await ids(api, "activity=waiting", client=api.other) == []
    answer = await api.user.get("/jobs?activity=idle")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_input")
    # A bulk action takes the same filter, and touches nothing else.
    bulk = {"action": "cancel", "filter": {"activity": ["waiting"]}, "dry_run": False, "expect": 1, "reason": "no"}
    answer = await api.user.post("/jobs/bulk", json=bulk)
    assert [one["job_id"] for one in answer.json()["done"]] == [waiting], answer.text


async def test_a_deleted_job_is_listed_only_when_asked_for(api: Rig) -> None:
    job_id = await api.run()
    assert (await api.user.delete(f"/jobs/{job_id}")).status_code == 204
    assert (await api.user.get(f"/jobs/{job_id}")).status_code == 404
    assert (await api.user.delete(f"/jobs/{job_id}")).status_code == 404
    assert await ids(api) == []
    assert await ids(api, "deleted=true") == [job_id]


async def test_recipes_have_the_descriptions_of_their_authors(api: Rig) -> None:
    told = {one["name"]: one["description"] for one in (await api.user.get("/recipes")).json()["items"]}
    assert (told["hello"], told["fan"]) == ("Greets somebody by name.", "")
    for path in ("/recipes/hello", "/recipes/hello?version=1"):
        assert (await api.user.get(path)).json()["description"] == told["hello"]
    assert (await api.user.get("/recipes/hello/versions")).json()["items"][0]["description"] == told["hello"]


async def test_recipes_are_listed_and_described(api: Rig) -> None:
    names = [recipe["name"] for recipe in (await api.user.get("/recipes")).json()["items"]]
    assert names == ["failing", "fan", "hello", "large"]
    fan = (await api.user.get("/recipes/fan")).json()
    assert {"source": "count", "target": "double"} in fan["edges"]
    assert [node["step"] for node in fan["nodes"]][:2] == ["count", "double"]
    schema = await api.user.get("/recipes/hello/schema")
    assert schema.json()["properties"]["name"]["default"] == "world"
    assert schema.headers["ETag"] == f'"{(await api.user.get("/recipes/hello")).json()["plan"]}"'
    known = await api.user.get("/recipes/hello/schema", headers={"If-None-Match": schema.headers["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert [v["version"] for v in (await api.user.get("/recipes/hello/versions")).json()["items"]] == [1]
    for path in ("/recipes/none", "/recipes/none/versions", "/recipes/none/schema", "/recipes/hello?version=9"):
        assert (await api.user.get(path)).status_code == 404


async def test_keys_are_made_listed_used_and_revoked(api: Rig) -> None:
    made = await api.admin.post("/keys", json={"caller": "bot", "name": "nightly", "scopes": ["jobs:read"]})
    assert made.status_code == 201, made.text
    text, key_id = made.json()["key"], made.json()["id"]
    async with api.client(text) as bot:
        me = (await bot.get("/me")).json()
        assert (me["caller"], me["scopes"], me["role"], me["key_id"]) == ("bot", ["jobs:read"], "user", key_id)
        listed = await api.admin.get("/keys?caller=bot")
        assert text not in listed.text
        assert [key["id"] for key in listed.json()["items"]] == [key_id]
        assert (await api.admin.delete(f"/keys/{key_id}")).status_code == 204
        assert (await bot.get("/me")).status_code == 401
    assert (await api.admin.delete("/keys/none")).status_code == 404
    assert (await api.user.get("/keys")).status_code == 403
    for wrong in ({"caller": ""}, {"caller": "x", "name": "y", "scopes": ["root"]}, {"caller": "x\x00", "name": "y"}):
        assert (await api.admin.post("/keys", json=wrong)).status_code == 422


async def test_workers_are_for_admins(api: Rig) -> None:
    async with api.working():
        found = (await api.admin.get("/workers")).json()
    assert len(found["items"]) == 1
    assert (await api.user.get("/workers")).status_code == 403


async def test_the_audit_is_listed_and_verified(api: Rig) -> None:
    assert (await api.user.get("/audit")).status_code == 403
    listed = await api.admin.get("/audit?event=key_created&limit=2")
    assert listed.status_code == 200, listed.text
    verdict = (await api.admin.get("/audit/verify")).json()
    assert (verdict["is_good"], verdict["next"]) == (True, None)
    assert (await api.admin.get("/audit/verify?head=xyz")).status_code == 422
    gone = (await api.admin.get(f"/audit/verify?head={'ab' * 32}")).json()
    assert gone["is_good"] is False
