"""Jobs on the command line: submitted, followed, looked at, acted on; and what the exit code says of each."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import COMMAND, Cli
from windlass.api.wire.job import JobDocument, ListedJob
from windlass.api.wire.step import EventDocument, StepDocument

JOB_KEYS, LISTED_KEYS = set(JobDocument.model_fields), set(ListedJob.model_fields)
STEP_KEYS, EVENT_KEYS = set(StepDocument.model_fields), set(EventDocument.model_fields)


def submitted(cli: Cli, *words: str) -> str:
    return cli("submit", *words).ok().out.strip()


def test_a_job_is_submitted_waited_for_and_its_result_is_the_only_output(served: Cli) -> None:
    said = served("submit", "film", "--input", "topic=sea", "--wait").ok()
    assert said.json() == {"film": "SEA 0 + SEA 1 + SEA 2"}
    assert said.err.startswith("job ")


def test_following_without_a_terminal_tells_each_change_on_a_line(served: Cli) -> None:
    said = served("submit", "film", "--input", "topic=sea", "--follow").ok()
    assert said.json() == {"film": "SEA 0 + SEA 1 + SEA 2"}
    assert "✓ render  COMPLETED  3/3" in said.err and "\x1b[" not in said.err
    assert said.err.strip().endswith("COMPLETED")


def test_show_has_the_graph_for_people_and_everything_for_programs(served: Cli) -> None:
    job = submitted(served, "film", "--input", "topic=sea", "--label", "team=[blue]")
    served("result", job, "--wait").ok()
    picture = served("show", job).ok().out
    assert "render" in picture and "3/3" in picture and "team=[blue]" in picture and job in picture
    body = served("show", job, "--json").ok().json()
    assert set(body) == JOB_KEYS and (body["job_id"], body["status"]) == (job, "COMPLETED")
    assert served("get", f"/jobs/{job}/input").ok().json() == {"topic": "sea"}
    steps = served("get", f"jobs/{job[:23]}/steps", "-q", "limit=10").ok().json()["items"]
    assert [step["step"] for step in steps] == [
        "write_script",
        "render",
        "stitch",
        "render",
        "render",
        "render",
    ]
    assert all(set(step) == STEP_KEYS for step in steps)


def test_a_job_is_found_by_the_beginning_of_its_id_and_as_the_last(served: Cli) -> None:
    job = submitted(served, "film", "--input", "topic=sea")
    assert served("show", job[:23], "--json").ok().json()["job_id"] == job
    assert served("show", "@last", "--json").ok().json()["job_id"] == job
    assert served("show", "00000000").code == 4
    assert served("show", "not-an-id!").code == 2


def test_lists_are_filtered_and_paged(served: Cli) -> None:
    jobs = [submitted(served, "film", "--input", "topic=sea", "--label", "page=yes") for _ in range(3)]
    served("result", jobs[-1], "--wait").ok()
    page = served("jobs", "--label", "page=yes", "--limit", "2", "--json").ok().json()
    assert [item["job_id"] for item in page["items"]] == [jobs[2], jobs[1]]
    assert all(set(item) == LISTED_KEYS for item in page["items"])
    rest = served("jobs", "--label", "page=yes", "--limit", "2", "--cursor", page["next"], "--json").ok().json()
    assert [item["job_id"] for item in rest["items"]] == [jobs[0]] and rest["next"] is None
    rows = served("jobs", "--label", "page=yes", "--recipe", "film").ok().out.splitlines()
    assert [row.split("\t")[0] for row in rows] == jobs[::-1]
    assert served("jobs", "--recipe", "unheard_of").ok().out == ""


def test_events_come_in_order_one_a_line(served: Cli) -> None:
    job = submitted(served, "film", "--input", "topic=sea")
    lines = served("events", job, "--follow", "--json").ok().out.splitlines()
    events = [msgspec.json.decode(line) for line in lines]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all(set(event) == EVENT_KEYS for event in events)
    assert events[0]["type"] == "job.submitted" and events[-1]["type"] == "job.completed"
    assert "render[2]" in served("events", job).ok().out


def test_a_failed_job_says_where_and_why_and_exits_with_10(served: Cli) -> None:
    said = served("submit", "flop", "--wait")
    assert (said.code, said.out) == (10, "")
    assert "FAILED at step explode" in said.err and "[bold]fog 0[/bold] cannot be filmed" in said.err
    assert "Traceback" not in said.err
    body = served("submit", "flop", "--wait", "--json")
    assert body.code == 10 and (body.json()["status"], body.json()["failed_step"]) == ("FAILED", "explode")
    assert served("result", "@last").code == 10
    reasons = served("why", "@last", "--json").ok().json()["items"]
    assert {reason["step"]: reason["status"] for reason in reasons} == {"explode": "FAILED", "stitch": "ABANDONED"}


def test_an_unexpected_exception_is_shown_with_its_class_and_where_it_was_raised(served: Cli) -> None:
    waited = served("submit", "fall", "--wait")
    job = served("jobs", "--recipe", "fall", "--json").ok().json()["items"][0]["job_id"]
    assert waited.code == 10 and "FAILED at step stumble: KeyError: 'data'" in waited.err
    shown = [waited.err, served("show", job).ok().out, served("result", job).err, served("why", job).ok().err]
    for text in shown:
        assert "film.py" in text and 'script["data"]' in text and "in stumble" in text, text
    assert "exception: KeyError: 'data'" in served("why", job).ok().out
    watched = served("watch", job)
    assert watched.code == 10 and "KeyError: 'data'" in watched.out


def test_a_failed_job_is_retried_as_a_new_job_that_keeps_what_succeeded(served: Cli) -> None:
    failed = served("submit", "flop", "--wait", "--json").json()["job_id"]
    answer = msgspec.json.decode(served("retry", failed, "--json").ok().out)
    assert answer["retry_of"] == failed and answer["job_id"] != failed
    assert served("result", answer["job_id"], "--wait").code == 10
    steps = served("get", f"/jobs/{answer['job_id']}/steps").ok().json()["items"]
    assert {step["step"]: step["attempt"] for step in steps}["write_script"] == 0
    done = submitted(served, "film", "--input", "topic=sea")
    served("result", done, "--wait").ok()
    assert served("retry", done).code == 5
    assert served("rerun", done).ok().out.startswith(f"{done} run again as ")


def test_a_job_is_run_again_from_a_step_with_another_input(served: Cli) -> None:
    done = submitted(served, "film", "--input", "topic=sea")
    served("result", done, "--wait").ok()
    shown = served("rerun", done, "--from", "stitch", "--input", "topic=2049", "--dry-run").ok().out
    assert shown == (
        f"{done} would be run again\n"
        "  run again  stitch\n"
        "  kept       write_script, render\n"
        "  stale      write_script, render: kept, though they were made before topic changed\n"
    )
    plan = msgspec.json.decode(served("rerun", done, "--from", "render[1]", "--dry-run", "--json").ok().out)
    assert (plan["run_again"], plan["kept"]) == (["render", "stitch"], ["write_script"])
    assert plan["kept_children"] == {"render": 2}
    answer = msgspec.json.decode(served("rerun", done, "--input", "topic=2049", "--json").ok().out)
    assert served("result", answer["job_id"], "--wait").ok().json() == {"film": "2049 0 + 2049 1 + 2049 2"}
    typo = served("rerun", done, "--from", "sttich")
    assert typo.code == 2 and "Did you mean stitch?" in typo.err


def test_dead_letters_are_run_again_once_or_discarded(served: Cli) -> None:
    for _ in range(2):
        served("submit", "flop", "--wait", "--input", "topic=smog")
    [kind] = [one for one in served("dead-letters", "list", "--json").ok().json()["items"] if "smog" in one["message"]]
    assert (kind["count"], kind["recipe"], kind["step"]) == (2, "flop", "explode")
    named = kind["fingerprint"]
    assert served("dead-letters", "redrive", named, "--dry-run").ok().out == "2 jobs would be run again\n"
    assert served("dead-letters", "redrive", named, "--expect", "7").code == 5
    done = served("dead-letters", "redrive", named[:8], "--expect", "2", "--json").ok().json()
    assert {one["job_id"] for one in done["done"]} == set(kind["job_ids"])
    for one in done["done"]:
        served("result", one["new_job_id"], "--wait")
    told = served("dead-letters", "discard", named, "--reason", "smog").ok().out
    assert told.count("discarded") == 2
    assert served("dead-letters", "redrive", named).code == 4


@pytest.mark.covers("SCR-84")
def test_a_running_job_is_cancelled_and_waiting_for_it_exits_with_11(served: Cli) -> None:
    job = submitted(served, "nap")
    assert served("result", job).code == 5
    assert served("result", job, "--wait", "--timeout", "0.2s").code == 6
    assert served("cancel", job, "--reason", "too [long]").ok().out == f"{job} cancelled\n"
    said = served("result", job, "--wait")
    assert said.code == 11 and "too [long]" in said.err
    assert "not changed" in served("cancel", job).ok().out


def test_the_undo_of_a_job_is_shown_and_an_undo_of_nothing_is_refused(served: Cli) -> None:
    job = submitted(served, "nap")
    assert "nothing to undo" in served("undo", "--plan", job).ok().out
    assert served("cancel", "--no-undo", job).ok().out == f"{job} cancelled\n"
    assert served("undo", "--plan", job, "--json").ok().json()["steps"] == []
    assert served("undo", job).code == 5


def test_several_jobs_are_acted_on_or_none(served: Cli) -> None:
    jobs = [submitted(served, "nap") for _ in range(2)]
    assert served("cancel", jobs[0], "ffffffff").code == 4
    assert served("show", jobs[0], "--json").json()["status"] != "CANCELLED"
    assert len(served("cancel", "-", stdin="\n".join(jobs)).ok().out.splitlines()) == 2


def test_a_paused_job_starts_nothing_until_it_is_resumed(served: Cli) -> None:
    job = submitted(served, "nobody")
    served("pause", job).ok()
    reason = served("why", job, "later", "--json").ok().json()["items"][0]
    assert reason["status"] == "HELD" and "paused" in reason["because"]
    served("resume", job).ok()
    reason = served("why", job, "later", "--json").ok().json()["items"][0]
    assert reason["status"] == "QUEUED" and "no worker takes from queue nobody_serves_this" in reason["because"]
    assert served("why", job, "no_such_step").code == 4
    served("cancel", job).ok()
    served("delete", job).ok()
    assert served("pause", job).code == 4


def test_the_same_key_gives_the_same_job_and_another_body_a_conflict(served: Cli) -> None:
    first = served("submit", "nap", "--key", "k", "--input", "seconds=0", "--json").ok().json()
    again = served("submit", "nap", "--key", "k", "--input", "seconds=0", "--json").ok().json()
    assert (again["job_id"], again["is_new"], first["is_new"]) == (first["job_id"], False, True)
    said = served("submit", "nap", "--key", "k", "--input", "seconds=1")
    assert said.code == 5 and first["job_id"] in said.err


def test_inputs_are_json_or_text_or_files(served: Cli, tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text('{"topic": "from the file"}')
    (tmp_path / "topic.txt").write_text("from text")
    for words, topic in (
        (["--input", f"@{tmp_path}/all.json"], "from the file"),
        (["--input", f"topic=@{tmp_path}/topic.txt"], "from text"),
        (["--input", "topic=2049"], "2049"),
        (["--input", 'topic="quoted"'], "quoted"),
    ):
        job = submitted(served, "film", *words)
        assert served("get", f"/jobs/{job}/input").json() == {"topic": topic}
    assert served("submit", "film", "--input", "@-", stdin='{"topic": "piped"}').code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["submit", "film"], 2, "topic"),
        (["submit", "film", "--input", "topic=x", "--input", "tpic=x"], 2, "tpic"),
        (["submit", "film", "--input", "topic"], 2, "name=value"),
        (["submit", "film", "--input", "topic=@nowhere.txt"], 2, "nowhere.txt"),
        (["submit", "film", "--input", "@nowhere.json"], 2, "nowhere.json"),
        (["submit", "filn", "--input", "topic=x"], 4, "Did you mean film?"),
        (["submit", "nap", "--deadline", "soon"], 2, "--deadline"),
        (["submit", "nap", "--ttl", "0"], 2, "ttl must be longer than 0"),
        (["submit", "nap", "--deadline", "0s"], 2, "deadline must be longer than 0"),
        (["submit", "nap", "--priority", "1000"], 2, "priority"),
        (["submit", "nap", "--label", "x"], 2, "--label"),
        (["jobs", "--status", "HAPPY"], 2, "COMPLETED"),
        (["jobs", "--limit", "0"], 2, "limit"),
        (["graph", "nothing_here"], 4, "no recipe and no job"),
        (["recipes", "show", "nothing_here"], 4, "nothing_here"),
        (["jbos"], 2, "jobs"),
        (["show"], 2, "JOB"),
    ],
)
def test_a_mistake_is_named_with_its_remedy_and_makes_no_job(
    served: Cli, words: list[str], code: int, said: str
) -> None:
    answer = served(*words)
    assert answer.code == code, answer
    assert said in answer.err and "Traceback" not in answer.err and answer.out == ""


def test_graphs_are_drawn_of_recipes_and_of_jobs(served: Cli) -> None:
    assert "×n" in served("graph", "film").ok().out
    assert served("graph", "film", "--format", "mermaid").ok().out.startswith("flowchart TD")
    assert '"render" -> "stitch";' in served("graph", "film", "--format", "dot").ok().out
    served("submit", "film", "--input", "topic=sea", "--wait").ok()
    body = served("graph", "@last", "--json").ok().json()
    assert {node["step"]: node["status"] for node in body["nodes"]} == dict.fromkeys(
        ("write_script", "render", "stitch"), "COMPLETED"
    )
    assert {"source": "render", "target": "stitch"} in body["edges"]


def test_leaving_a_watch_leaves_the_job(served: Cli) -> None:
    job = submitted(served, "nap")
    watching = served.spawn("watch", job)
    assert watching.stdout is not None and "RUNNING" in watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 130 and "the job goes on" in out
    assert served("show", job, "--json").json()["status"] == "PROCESSING"
    served("cancel", job).ok()
    assert served("watch", job).code == 11


def test_the_fleet_and_the_recipes_are_listed(served: Cli) -> None:
    workers = served("workers", "--json").ok().json()["items"]
    assert len(workers) == 1 and workers[0]["concurrency"] == 10
    until = time.monotonic() + 60
    while workers[0]["services"] is None and time.monotonic() < until:
        time.sleep(0.2)  # the first heartbeats have told nothing yet
        workers = served("workers", "--json").ok().json()["items"]
    assert {workers[0]["services"][name] for name in ("bus", "evaluator", "heartbeat", "loops", "worker")} == {"ok"}
    assert f"{len(workers[0]['services'])} ok" in served("workers").ok().out
    recipes = served("recipes", "list", "--json").ok().json()["items"]
    assert [one["name"] for one in recipes] == ["approval", "fall", "film", "flop", "nap", "nobody", "reviewed"]
    assert {one["version"] for one in recipes} == {1}
    assert "input topic: string (required)" in served("recipes", "show", "film").ok().out


def test_a_recipe_is_listed_and_shown_with_its_docstring(served: Cli) -> None:
    told = "Make a film of a topic.\n\nOne scene at a time."
    descriptions = {one["name"]: one["description"] for one in served("recipes", "list", "--json").ok().json()["items"]}
    assert (descriptions["film"], descriptions["nap"]) == (told, "")
    line = next(line for line in served("recipes", "list").ok().out.splitlines() if line.startswith("film\t"))
    assert line.endswith("\tMake a film of a topic.")
    shown = served("recipes", "show", "film", "--json").ok().json()
    assert (shown["name"], shown["description"]) == ("film", told)
    assert f"{told}\ninput topic" in served("recipes", "show", "film").ok().out


def test_output_that_has_nowhere_to_go_is_no_error(served: Cli) -> None:
    for words in (["recipes", "list"], ["recipes", "list", "--json"]):
        closed = ["sh", "-c", '"$@" >&-', "sh", *COMMAND, *words]
        done = subprocess.run(closed, stderr=subprocess.PIPE, cwd=served.folder, env=served.environ, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


def test_output_that_nobody_reads_to_the_end_is_no_error(served: Cli) -> None:
    watching = served.spawn("recipes", "show", "film")
    assert watching.stdout is not None
    watching.stdout.close()
    assert watching.wait(20) in (0, 1)
