"""Both clients against a running server: one suite, and neither can do what the other cannot."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.client.server import Server, client_of
from windlass import AsyncClient, Client, JobCancelled, JobFailed, errors
from windlass.client.async_client import AsyncRemoteJob
from windlass.client.client import RemoteJob
from windlass.core.states import JobState


def test_a_job_is_submitted_and_its_result_comes_back(client: Any) -> None:
    job = client.submit("hello", name="sea", labels={"team": "blue"}, priority=3)
    assert job.is_new and job.result(timeout=60) == "hello sea"
    view = job.view()
    assert (view.job_id, view.status, view.recipe, view.caller) == (job.job_id, JobState.COMPLETED, "hello", "ana")
    assert (view.labels, view.priority, view.is_finished) == ({"team": "blue"}, 3, True)
    assert job.input() == {"name": "sea"} and job.status() is JobState.COMPLETED and job.wait() is JobState.COMPLETED
    assert [step.step for step in job.steps()] == ["greet"]
    assert job.graph()["nodes"][0]["status"] == "COMPLETED" and job.why() == []
    listed = [event.seq for event in job.events()]
    assert listed == list(range(1, len(listed) + 1))
    assert [event.seq for event in job.stream()] == listed
    assert [event.seq for event in job.stream(after=2)] == listed[2:]
    assert client.job(str(job.job_id)).result() == "hello sea"


def test_the_same_key_is_the_same_job_and_another_body_a_conflict(client: Any, kind: str) -> None:
    first = client.submit("hello", name="a", key=f"k-{kind}")
    again = client.submit("hello", name="a", key=f"k-{kind}")
    assert (again.job_id, first.is_new, again.is_new) == (first.job_id, True, False)
    with pytest.raises(errors.Conflict):
        client.submit("hello", name="b", key=f"k-{kind}")
    odd = client.submit("hello", key=f"schlüssel {kind}")
    assert client.submit("hello", key=f"schlüssel {kind}").job_id == odd.job_id


def test_many_jobs_are_made_and_listed(client: Any, kind: str) -> None:
    jobs = client.submit_many("hello", [{"name": str(n)} for n in range(450)], labels={"many": kind})
    assert len({job.job_id for job in jobs}) == 450
    listed = [view.job_id for view in client.jobs(labels={"many": kind})]
    assert sorted(listed) == sorted(job.job_id for job in jobs) and listed == sorted(listed, reverse=True)
    assert jobs[-1].result(timeout=60) == "hello 449"
    assert list(client.jobs(recipe="unheard_of")) == []


def test_a_failed_job_raises_with_its_step_and_its_fault(client: Any) -> None:
    job = client.submit("bang")
    with pytest.raises(JobFailed, match="no luck") as caught:
        job.result(timeout=60)
    assert (caught.value.status, caught.value.step) == (JobState.FAILED, "explode")
    retried = job.retry()
    assert retried.job_id != job.job_id and retried.wait(timeout=60) is JobState.FAILED
    assert retried.view().retry_of == job.job_id
    assert job.rerun().wait(timeout=60) is JobState.FAILED
    assert {reason.step: reason.status for reason in job.why()} == {"explode": "FAILED"}


def test_a_job_is_paused_resumed_cancelled_and_deleted(client: Any) -> None:
    job = client.submit("alone")
    assert job.pause().is_paused and not job.pause().changed
    assert not job.resume().is_paused
    assert "nobody_serves_this" in job.why("unserved")[0].because
    with pytest.raises(errors.WaitTimeout):
        job.wait(timeout=0.3)
    with pytest.raises(errors.WrongState):
        job.delete()
    assert job.cancel("enough").status is JobState.CANCELLED and not job.cancel().changed
    with pytest.raises(JobCancelled, match="enough"):
        job.result(timeout=60)
    job.delete()
    with pytest.raises(errors.NotFound):
        job.view()


def test_recipes_are_listed_and_shown(client: Any) -> None:
    assert "hello" in [recipe.name for recipe in client.recipes()]
    assert client.recipe("hello")["inputs_schema"]["properties"]["name"]["default"] == "you"
    assert client.me()["caller"] == "ana"


def test_refusals_are_the_errors_of_the_tree_and_say_what_to_do(
    client: Any, kind: str, server: Server, loop_runner: asyncio.Runner
) -> None:
    for act, error in (
        (lambda: client.submit("unheard_of"), errors.NotFound),
        (lambda: client.submit("hello", name=1), errors.BadInput),
        (lambda: client.submit("hello", priority=1000), errors.BadInput),
        (lambda: client.job("0" * 32).view(), errors.NotFound),
        (lambda: list(client.job("0" * 32).stream()), errors.NotFound),
        (lambda: client.keys(), errors.Forbidden),
        (lambda: list(client.jobs(caller="*")), errors.Forbidden),
    ):
        with pytest.raises(errors.WindlassError) as caught:
            act()
        assert type(caught.value) is error and caught.value.remedy, caught.value
    for key in (None, "wl_junk", server.key[:-1] + "!"):
        stranger = client_of(kind, loop_runner, server.url, key)
        with pytest.raises(errors.Unauthenticated):
            stranger.me()
        stranger.close()


def test_a_key_is_made_used_and_revoked(kind: str, server: Server, loop_runner: asyncio.Runner) -> None:
    admin = client_of(kind, loop_runner, server.url, server.admin)
    text, view = admin.create_key("bob", name="bob's")
    bob = client_of(kind, loop_runner, server.url, text)
    assert bob.me()["caller"] == "bob" and list(bob.jobs()) == []
    assert view.id in [key.id for key in admin.keys("bob")]
    admin.revoke_key(view.id)
    with pytest.raises(errors.Unauthenticated):
        bob.me()
    bob.close()
    admin.close()


def test_the_stream_of_all_jobs_tells_of_new_ones(client: Any, server: Server) -> None:
    stream = client.stream()

    def submit() -> None:
        with Client(client.server, api_key=server.key) as another:
            another.submit("hello")

    threading.Timer(0.5, submit).start()
    seen = []
    for event in stream:
        seen.append(event.type)
        if event.type == "job.completed":
            break
    stream.close()
    assert "job.completed" in seen


def test_the_two_clients_have_the_same_methods_and_parameters() -> None:
    for one, other in ((Client, AsyncClient), (RemoteJob, AsyncRemoteJob)):
        names = {name for name in vars(one) if not name.startswith("_")}
        assert names == {name for name in vars(other) if not name.startswith("_")}
        for name in names:
            mine, theirs = (inspect.signature(getattr(kind, name)).parameters for kind in (one, other))
            assert list(mine) == list(theirs), name
            assert [p.default for p in mine.values()] == [p.default for p in theirs.values()], name


def opened(folder: Path, count: int) -> tuple[list[str], list[Path]]:
    paths = [folder / f"gate{n}" for n in range(count)]
    return [str(path) for path in paths], paths


def test_a_stream_goes_on_over_a_killed_server_without_a_gap_or_a_repeat(
    client: Any, server: Server, tmp_path: Path
) -> None:
    given, gates = opened(tmp_path, 4)
    job = client.submit("gates", paths=given)
    seen = []
    running = 0
    for event in job.stream():
        seen.append(event.seq)
        running += event.type == "step.running"
        if running == 4 and gates:
            # All children run: each next event waits for the test. Twice the server dies between two of them.
            if len(gates) in (3, 2):
                server.restart()
            gates.pop().touch()
    assert seen == [event.seq for event in job.events()] == list(range(1, len(seen) + 1))
    assert job.result() == 4


def test_a_wait_outlasts_a_killed_server(client: Any, server: Server, tmp_path: Path) -> None:
    given, gates = opened(tmp_path, 1)
    job = client.submit("gates", paths=given)

    def upset() -> None:
        server.kill()
        gates[0].touch()
        server.start()

    threading.Timer(0.5, upset).start()
    assert job.result(timeout=60) == 1


def test_no_submission_is_lost_or_doubled_when_the_server_is_killed(
    client: Any, kind: str, server: Server, loop_runner: asyncio.Runner
) -> None:
    count, made = 60, []
    for n in range(count):
        if n in (20, 40):
            threading.Thread(target=server.restart).start()
        made.append(client.submit("hello", name=str(n), labels={"storm": kind}))
    assert len({job.job_id for job in made}) == count
    stored = [view.job_id for view in client.jobs(labels={"storm": kind})]
    assert sorted(stored) == sorted(job.job_id for job in made)
    assert [job.result(timeout=60) for job in made] == [f"hello {n}" for n in range(count)]


def test_a_job_is_run_again_from_a_step_once_it_was_looked_at(client: Any) -> None:
    job = client.submit("hello", name="Ada")
    job.result(timeout=60)
    [step] = [one.step for one in job.steps()]
    plan = job.preview_rerun(from_step=step, inputs={"name": "Bob"})
    assert (plan.run_again, plan.kept, plan.inputs_changed) == ([step], [], ["name"])
    new = job.rerun(from_step=step, inputs={"name": "Bob"})
    assert new.result(timeout=60) == "hello Bob" and new.view().retry_of == job.job_id
    with pytest.raises(errors.BadInput, match="has no step") as caught:
        job.rerun(from_step=f"{step}x")
    assert "Did you mean" in str(caught.value)
    with pytest.raises(errors.WrongState):
        job.preview_retry()


def test_dead_letters_are_redriven_once_and_discarded(client: Any, kind: str) -> None:
    job = client.submit("bang", labels={"dead": kind})
    job.wait(timeout=60)
    assert job.preview_retry().run_again == ["explode"]
    [letters] = [one for one in client.dead_letters() if job.job_id in one.job_ids]
    assert (letters.recipe, letters.step) == ("bang", "explode")
    dry = client.redrive(letters.fingerprint, dry_run=True)
    assert (dry.dry_run, dry.matched, dry.done) == (True, letters.count, [])
    with pytest.raises(errors.Conflict):
        client.redrive(letters.fingerprint, expect=letters.count + 1)
    done = client.redrive(letters.fingerprint, start="first", expect=letters.count, reason="again")
    assert {one.job_id for one in done.done} == set(letters.job_ids)
    for one in done.done:
        assert client.job(one.new_job_id).wait(timeout=60) is JobState.FAILED
    told = client.discard(letters.fingerprint, reason="enough")
    assert {one.job_id for one in told.done} == {one.new_job_id for one in done.done}
    assert letters.fingerprint not in [one.fingerprint for one in client.dead_letters()]
    assert len(client.overview()["throughput"]["minutes"]) == 60
