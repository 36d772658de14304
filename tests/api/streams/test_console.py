"""A console's stream: several topics told as patches, nothing lost or repeated under cuts and faults."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import UUID

import pytest

from tests.api.streams.script import finish, submit, told
from tests.api.streams.stage import Stage, staged
from tests.engine.rig import Rig, plan, task
from windlass.api import console_stream
from windlass.api.topics import TOPICS_MAX
from windlass.api.wire.step import step_document
from windlass.core.note import Note
from windlass.core.outcome import Report, Success
from windlass.engine import note, settle
from windlass.views import job_graph, read

WIDE = plan(task("few"), task("many", each="[1, 2, 3]"), recipe="wide")


def events(frames: list[Any], job: UUID) -> list[int]:
    """The numbers of the job's events, as patches told them."""
    patches = [frame.data.get("job", {}).get(str(job)) for frame in frames if frame.event == "patch"]
    return [line["seq"] for patch in patches if patch is not None for line in patch["events"]]


def documents(frames: list[Any]) -> dict[str, list[dict[str, Any]]]:
    """What `jobs` told of each job."""
    found: dict[str, list[dict[str, Any]]] = {}
    for frame in frames:
        for document in frame.data.get("jobs", ()) if frame.event == "patch" else ():
            found.setdefault(document["job_id"], []).append(document)
    return found


async def whole(rig: Rig, job: UUID, after: int = 0) -> list[int]:
    return [event.seq for event in await read.events(rig.db, job, after=after)]


async def say(rig: Rig, one: Any, pct: float) -> None:
    await note.note(rig.db, [Note(one.job_id, one.no, one.attempt, progress_pct=pct)])


async def test_several_topics_are_told_in_one_stream(rig: Rig) -> None:
    job, wide = await submit(rig), await rig.submit(WIDE, caller="ann", correlation_id="x")
    async with staged(rig.db) as stage:
        client = await stage.console(f"jobs,job:{job}@0,job:{wide}@0")
        opening = client.frames[0]
        assert (opening.event, opening.data["cursor"]) == ("open", opening.id)
        await rig.run_out()
        await client.until(lambda: len(client.named("gone")) == 2)
        gone = {frame.data["topic"]: frame.data["code"] for frame in client.named("gone")}
        assert gone == {f"job:{job}": "ended", f"job:{wide}": "ended"}
        for one in (job, wide):
            assert events(client.frames, one) == await whole(rig, one)
        later = await submit(rig)
        await client.until(lambda: str(later) in documents(client.frames))
        assert documents(client.frames)[str(wide)][-1]["status"] == "COMPLETED"


async def test_documents_are_as_new_as_their_events_or_newer(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        wide = await rig.submit(WIDE, caller="ann", correlation_id="x")
        client = await stage.console(f"job:{wide}@0")
        await rig.run_out()
        await client.until(lambda: bool(client.named("gone")))
        steps: dict[int, dict[str, Any]] = {}
        fans: dict[str, Any] = {}
        for frame in client.named("patch"):
            patch = frame.data["job"][str(wide)]
            assert f"@{patch['seq']}" in frame.id
            assert patch["job"] is None or patch["job"]["seq"] >= patch["seq"]
            touched = {line["no"] for line in patch["events"] if line["no"] is not None}
            assert {step["no"] for step in patch["steps"]} == touched
            steps.update((step["no"], step) for step in patch["steps"])
            fans |= patch["fans"]
        # Put together they are the job as it stands.
        graph = await job_graph.graph(rig.db, await read.job(rig.db, wide))
        for step in await read.steps(rig.db, wide):
            assert steps[step.no] == step_document(wide, WIDE, step).model_dump(mode="json")
        [fan] = [node.fan for node in graph.nodes if node.fan is not None]
        assert fans == {"1": {"total": fan.total, "made": fan.made, "by_status": fan.by_state}}
        lines = [line for frame in client.named("patch") for line in frame.data["job"][str(wide)]["events"]]
        assert {line["step"] for line in lines} == {None, "few", "many"}
        assert set(lines[0]) == {"seq", "at", "type", "no", "step", "attempt", "source"}


async def test_children_keep_their_name_from_page_to_page(rig: Rig) -> None:
    """A page with children of the page before it and with new ones."""
    items = ", ".join(str(number) for number in range(150))
    wide = await rig.submit(plan(task("many", each=f"[{items}]"), recipe="wide"), caller="ann", correlation_id="x")
    await rig.loops.run_until_idle()
    taken = await rig.claim(100)
    await settle.settle(
        rig.db, [Report(o.job_id, o.no, o.attempt, Success("1")) for o in taken[:50]], spread=lambda: 0.0
    )
    await rig.claim(100)
    await settle.settle(
        rig.db, [Report(wide, number, 1, Success("1")) for number in range(51, 151)], spread=lambda: 0.0
    )
    async with staged(rig.db) as stage:
        client = await stage.console(f"job:{wide}@0")
        await client.until(lambda: bool(client.named("gone")))
        lines = [line for frame in client.named("patch") for line in frame.data["job"][str(wide)]["events"]]
        assert len(lines) > 300
        assert {line["step"] for line in lines if line["no"] is not None} == {"many"}


async def test_a_burst_is_one_patch(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await submit(rig)
    one = await rig.claim_one()
    monkeypatch.setattr(console_stream, "EVERY_S", 5.0)
    async with staged(rig.db) as stage:
        client = await stage.console(f"job:{job},jobs")
        await say(rig, one, 0.0)
        # The first goes out at once, though the next must wait.
        await client.until(lambda: bool(client.named("patch")))
        for number in range(1, 50):
            await say(rig, one, float(number))
        so_far = await whole(rig, job)
        await client.until(lambda: events(client.frames, job)[-1:] == so_far[-1:])
        assert len(client.named("patch")) <= 4
        last = client.named("patch")[-1].data["job"][str(job)]
        assert [step["progress"]["pct"] for step in last["steps"]] == [49.0]


class Follower:
    """A console that is cut at random bytes, and comes back with the last cursor that it has, or with other topics."""

    def __init__(self, stage: Stage, cursor: str, rng: random.Random) -> None:
        self.stage, self.cursor, self.rng = stage, cursor, rng
        self.frames: list[Any] = []
        self.cuts = 0

    def topics(self) -> str:
        """The same in another order, and now and then without some; what was left out is taken up where it was."""
        parts = self.cursor.split(",")
        self.rng.shuffle(parts)
        return ",".join(parts)

    async def once(self, is_enough: Any) -> None:
        parts = self.topics().split(",")
        left_out = parts[: self.rng.randrange(0, 3)] if self.rng.random() < 0.3 else []
        kept = [part for part in parts if part not in left_out] or parts
        by_query = self.rng.random() < 0.5
        client = await self.stage.console(",".join(kept) if by_query else "jobs", None if by_query else ",".join(kept))
        budget = self.rng.randrange(1, 40_000)
        try:
            async with asyncio.timeout(self.rng.random() * 1.5 + 0.05):
                while budget > 0 and not is_enough(self.frames + client.frames):
                    # Not by frames, nor by the pieces of HTTP: wherever it happens to be.
                    piece = await client.reader.read(min(budget, self.rng.randrange(1, 4_000)))
                    budget -= len(piece)
                    assert piece
                    client.feed(piece)
        except TimeoutError:
            pass
        client.hang_up()
        self.cuts += 1
        self.frames += client.frames
        last = client.last_id
        assert last is not None
        places = dict(part.partition("@")[::2] for part in self.cursor.split(","))
        places |= dict(part.partition("@")[::2] for part in last.split(","))
        self.cursor = ",".join(f"{name}@{place}" if place else name for name, place in places.items())


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_or_told_twice_however_it_is_cut(
    rig: Rig, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_stream, "EVERY_S", 0.02)
    rng = random.Random(seed)
    ends: dict[UUID, list[int]] = {}
    async with staged(rig.db) as stage:
        start = (await stage.console("jobs")).last_id
        jobs = [await rig.submit(WIDE, caller="ann", correlation_id="x") for _ in range(4)]
        jobs += [await submit(rig) for _ in range(4)]
        cursor = ",".join([str(start), *(f"job:{job}@0" for job in jobs)])
        followers = [Follower(stage, cursor, random.Random(f"{seed}{n}")) for n in range(3)]

        async def write() -> None:
            busy = await rig.claim(100)
            for number in range(60):
                await say(rig, rng.choice(busy), float(number))
                if number % 10 == 0:
                    await submit(rig)
            reports = [Report(one.job_id, one.no, one.attempt, Success("1")) for one in busy]
            await settle.settle(rig.db, reports, spread=lambda: 0.0)
            await rig.run_out()
            ends.update({job: (await whole(rig, job))[-1:] for job in jobs})

        def is_enough(frames: list[Any]) -> bool:
            return bool(ends) and all(events(frames, job)[-1:] == end for job, end in ends.items())

        async def follow(follower: Follower) -> None:
            async with asyncio.timeout(90):
                while not is_enough(follower.frames):
                    await follower.once(is_enough)

        await asyncio.gather(write(), *map(follow, followers))
        for follower in followers:
            assert follower.cuts > 3
            for job in jobs:
                assert events(follower.frames, job) == await whole(rig, job)
            # A place that was kept is a place to go on from: one more look has the rest of `jobs`.
            last = await submit(rig)
            client = await stage.console(follower.topics())
            await client.until(lambda c=client, n=last: str(n) in documents(c.frames))  # type: ignore[misc]
            seen = documents(follower.frames + client.frames)
            for view in await read.jobs(rig.db, caller="ann", limit=1_000):
                own = [document["seq"] for document in seen[str(view.id)]]
                assert own == sorted(own)
                assert own[-1] == view.event_seq


async def test_the_places_of_jobs_are_those_of_the_feed(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        client = await stage.console("jobs")
        for _ in range(3):
            await submit(rig)
            await finish(rig)
        history = await told(rig.db)
        await client.until(lambda: client.last_id == f"jobs@{history[-1]}")
        # A plain stream goes on from there, and a console from a plain stream's.
        plain = await stage.feed(history[4])
        again = await stage.console(f"jobs@{history[4]}")
        await plain.until(lambda: plain.ids == history[5:])
        await again.until(lambda: again.last_id == f"jobs@{history[-1]}")
        assert sum(len(found) for found in documents(again.frames).values()) >= 2


async def test_a_gone_topic_is_gone_again_and_tells_nothing_twice(rig: Rig) -> None:
    job = await submit(rig)
    async with staged(rig.db) as stage:
        client = await stage.console(f"job:{job}@0")
        await finish(rig)
        await client.until(lambda: bool(client.named("gone")))
        again = await stage.console("jobs", client.last_id)
        await again.until(lambda: bool(again.named("gone")))
        assert again.named("patch") == []
        assert client.last_id == again.last_id == f"job:{job}@{(await whole(rig, job))[-1]}"


async def test_an_admin_follows_everybodys(rig: Rig) -> None:
    job = await submit(rig, "bob")
    async with staged(rig.db) as stage:
        client = await stage.console(f"jobs,job:{job}@0", caller="root", is_admin=True)
        await client.until(lambda: events(client.frames, job) == [1])
        made = [await submit(rig, caller) for caller in ("ann", "bob")]
        await client.until(lambda: {str(one) for one in made} <= documents(client.frames).keys())


async def test_children_are_counted_at_most_once_a_second_and_at_the_end(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_stream, "EVERY_S", 0.01)
    monkeypatch.setattr(console_stream, "FANS_EVERY_S", 3600.0)
    items = ", ".join(str(number) for number in range(30))
    wide = await rig.submit(plan(task("many", each=f"[{items}]"), recipe="wide"), caller="ann", correlation_id="x")
    async with staged(rig.db) as stage:
        client = await stage.console(f"job:{wide}@0")
        await rig.loops.run_until_idle()
        for _ in range(30):
            await rig.run_one()
        await client.until(lambda: bool(client.named("gone")))
        counted = [fans for frame in client.named("patch") if (fans := frame.data["job"][str(wide)]["fans"])]
        assert len(counted) == 2
        assert counted[-1] == {"0": {"total": 30, "made": 30, "by_status": {"COMPLETED": 30}}}
        assert len(client.named("patch")) > 2


async def test_a_count_that_had_to_wait_comes_by_itself(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_stream, "FANS_EVERY_S", 0.5)
    wide = await rig.submit(plan(task("many", each="[1, 2]"), recipe="wide"), caller="ann", correlation_id="x")
    async with staged(rig.db) as stage:
        client = await stage.console(f"job:{wide}@0")
        await rig.loops.run_until_idle()
        await client.until(lambda: bool(client.named("patch")))
        await rig.claim_one()

        def counted() -> list[Any]:
            return [
                frame.data["job"][str(wide)] for frame in client.named("patch") if frame.data["job"][str(wide)]["fans"]
            ]

        await client.until(lambda: counted()[-1]["fans"]["0"]["by_status"] == {"QUEUED": 1, "RUNNING": 1})
        # Nothing else had happened, so nothing else is said.
        assert (counted()[-1]["events"], counted()[-1]["steps"], counted()[-1]["job"]) == ([], [], None)
        assert counted()[-1]["seq"] == (await whole(rig, wide))[-1]


async def test_many_topics_are_one_stream(rig: Rig) -> None:
    jobs = [await submit(rig) for _ in range(TOPICS_MAX - 1)]
    async with staged(rig.db, per_caller_max=1) as stage:
        client = await stage.console(",".join(["jobs", *(f"job:{job}@0" for job in jobs)]))
        assert (await stage.console("jobs")).status == 429
        await finish(rig)
        await client.until(lambda: len(client.named("gone")) == len(jobs))
        for job in jobs:
            assert events(client.frames, job) == await whole(rig, job)
        client.hang_up()
        await stage.until(lambda: stage.hub.count == 0)
        assert not stage.hub._feeds and not stage.hub._jobs
        assert (await stage.console("jobs")).status == 200
