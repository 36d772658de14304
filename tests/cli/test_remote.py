"""Every command asks a database or a server and prints the same; and the commands that are about the server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from tests.cli.conftest import APP, Cli, Said, line_with
from tests.client.server import SECRET
from windlass.testing.postgres import fresh_database

pytestmark = pytest.mark.slow


class Two:
    """One installation, asked at its database (`local`) and over HTTP (`remote`, with an admin's key)."""

    def __init__(self, local: Cli, remote: Cli, url: str) -> None:
        self.local, self.remote, self.url = local, remote, url

    def both(self, *words: str) -> tuple[Said, Said]:
        with ThreadPoolExecutor(2) as pool:
            local, remote = pool.map(lambda cli: cli(*words), (self.local, self.remote))
        return local, remote


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    local = Cli(tmp_path_factory.mktemp("local"), asyncio.run(fresh_database()))
    local.environ["WINDLASS_SECRET"] = SECRET
    worker = local.spawn("worker", APP, "--concurrency", "10")
    line_with(worker, "Ctrl-C stops")
    key = local("keys", "create", "--caller", "local", "--scope", "admin").ok().out.strip()
    api = local.spawn("serve", "api", "--listen", "127.0.0.1:0")
    url = line_with(api, "http://").strip()
    # The remote one knows nothing but an address and a key.
    remote = Cli(tmp_path_factory.mktemp("remote"))
    remote.environ |= {"WINDLASS_SERVER": url, "WINDLASS_API_KEY": key}
    yield Two(local, remote, url)
    for process in (api, worker):
        process.terminate()
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, out


@pytest.fixture(scope="module")
def jobs(two: Two) -> dict[str, str]:
    """Jobs that nothing happens to any more."""
    made = {
        "film": two.remote("submit", "film", "--input", "topic=sea", "--label", "kind=film", "--wait", "--json"),
        "flop": two.remote("submit", "flop", "--wait", "--json"),
        "lone": two.local("submit", "nobody", "--json"),
        "late": two.local("submit", "nobody", "--json"),
    }
    ids = {name: said.json()["job_id"] for name, said in made.items()}
    two.local("pause", ids["late"]).ok()
    two.local("cancel", ids["lone"], "--reason", "enough").ok()
    return ids


LOOKS: list[list[str]] = [
    ["show", "{film}"],
    ["show", "{flop}"],
    ["show", "{lone}"],
    ["show", "{late}"],
    ["show", "@last"],
    ["show", "{film_start}"],
    ["jobs"],
    ["jobs", "--status", "FAILED"],
    ["jobs", "--recipe", "film", "--label", "kind=film"],
    ["jobs", "--limit", "2"],
    ["get", "/jobs/{film}/input"],
    ["get", "/jobs/{film}/steps", "--query", "limit=2"],
    ["get", "/jobs/{film}/costs"],
    ["get", "/jobs/{film}/nothing"],
    ["events", "{film}"],
    ["events", "{film}", "--follow"],
    ["watch", "{film}"],
    ["watch", "{flop}"],
    ["result", "{film}"],
    ["result", "{flop}"],
    ["result", "{lone}"],
    ["result", "{late}"],
    ["why", "{flop}"],
    ["why", "{late}"],
    ["why", "{late}", "later"],
    ["graph", "{film}"],
    ["graph", "{late}"],
    ["graph", "film"],
    ["recipes", "list"],
    ["recipes", "show", "film"],
    ["recipes", "show", "nap", "--version", "1"],
    ["keys", "list"],
    ["keys", "list", "--caller", "local"],
    ["audit", "list", "--event", "key_created"],
    ["audit", "list", "--job", "{film}", "--limit", "1"],
    ["audit", "verify"],
    ["cancel", "{lone}"],
    ["pause", "{late}"],
    # Refusals: the same exit code, and what is said begins the same.
    ["show", "ffffffff"],
    ["show", "00000000-0000-7000-8000-000000000000"],
    ["show", "not-an-id!"],
    ["show", "0"],
    ["why", "{late}", "no_such_step"],
    ["graph", "nothing_here"],
    ["recipes", "show", "nothing_here"],
    ["submit", "filn"],
    ["submit", "film"],
    ["submit", "film", "--input", "topic=x", "--input", "tpic=x"],
    ["submit", "nap", "--priority", "1000"],
    ["submit", "nap", "--deadline", "soon"],
    ["retry", "{film}"],
    ["delete", "{late}"],
    ["retry", "{flop}", "--dry-run"],
    ["rerun", "{film}", "--dry-run"],
    ["rerun", "{film}", "--dry-run", "--from", "stitch", "--input", "topic=2049"],
    ["rerun", "{film}", "--dry-run", "--from", "render[1]"],
    ["dead-letters", "list"],
    ["webhooks", "{film}"],
    ["providers", "list"],
    ["budgets", "list"],
    # Refusals again.
    ["rerun", "{film}", "--from", "sttich"],
    ["rerun", "{film}", "--from", "render[7]"],
    ["rerun", "{film}", "--input", "tpic=x"],
    ["rerun", "{late}", "--from", "later"],
    ["dead-letters", "redrive", "feedfeedfeedfeed"],
    ["dead-letters", "discard", "feedfeedfeedfeed", "--expect", "3"],
    ["providers", "show", "nobody"],
    ["budgets", "set", "thing", "x", "1"],
    ["budgets", "set", "caller", "x", "much"],
    ["budgets", "remove", "caller", "nobody"],
    ["send", "{late}", "approved"],
    ["send", "{late}", "approved", "--body", "{{"],
    ["submit", "nap", "--budget", "-1"],
    ["keys", "revoke", "nosuchkey123"],
    ["keys", "create", "--caller", "x", "--scope", "everything"],
    ["audit", "verify", "--head", "zz"],
]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_command_prints_the_same_whoever_answers(two: Two, jobs: dict[str, str], words: list[str]) -> None:
    given = [word.format(**jobs, film_start=jobs["film"][:20]) for word in words]
    local, remote = two.both(*given, *(["--json"] if words[0] != "get" else []))
    if words[0] == "audit" and local.out != remote.out:
        # Some of it is written a moment after what it tells of.
        remote, local = remote, two.local(*given, "--json")
    assert remote.code == local.code, (local, remote)
    assert _steady(remote.out) == _steady(local.out)
    assert "Traceback" not in remote.err
    if local.code and not local.out:
        assert "exit" in remote.err and len(remote.err.splitlines()) >= 2, remote.err


def _steady(out: str) -> Any:
    """What was printed, without what changes by itself: when the key that asks was last used."""
    is_one = out.lstrip().startswith(("{\n", "["))
    found = [msgspec.json.decode(line) for line in ([out] if is_one else out.splitlines())]
    for key in found[0].get("items", []) if is_one and isinstance(found[0], dict) else []:
        key.pop("last_used_at", None)
    return found


def test_workers_are_listed_alike(two: Two) -> None:
    local, remote = two.both("workers", "--json")
    kept = ("id", "host", "pid", "queues", "concurrency", "started_at")
    mine, theirs = local.ok().json(), remote.ok().json()
    assert [[one[name] for name in kept] for one in mine["items"]] == [
        [one[name] for name in kept] for one in theirs["items"]
    ]
    assert set(mine) == set(theirs) and set(mine["items"][0]) == set(theirs["items"][0])


def test_jobs_are_made_followed_and_acted_on_over_http(two: Two) -> None:
    said = two.remote("submit", "film", "--input", "topic=sea", "--follow").ok()
    assert said.json() == {"film": "SEA 0 + SEA 1 + SEA 2"} and "render" in said.err
    failed = two.remote("submit", "flop", "--wait")
    assert failed.code == 10 and "FAILED at step explode" in failed.err
    again = msgspec.json.decode(two.remote("retry", "@last", "--json").ok().out)
    assert two.remote("result", again["job_id"], "--wait").code == 10
    job = two.remote("submit", "nap", "--key", "k", "--json").ok().json()
    assert two.local("submit", "nap", "--key", "k", "--json").ok().json()["job_id"] == job["job_id"]
    assert two.remote("result", job["job_id"], "--wait", "--timeout", "0.3s").code == 6
    assert two.remote("cancel", "-", stdin=job["job_id"]).ok().out == f"{job['job_id']} cancelled\n"
    assert two.remote("result", job["job_id"], "--wait").code == 11
    assert two.remote("delete", job["job_id"]).ok().out == f"{job['job_id']} deleted\n"
    assert two.remote("show", job["job_id"]).code == 4


def test_a_picture_is_drawn_over_http(two: Two, jobs: dict[str, str]) -> None:
    local, remote = two.both("show", jobs["film"])
    assert "3/3" in remote.ok().out and "render" in remote.out
    assert [line.split()[:3] for line in local.out.splitlines()] == [
        line.split()[:3] for line in remote.out.splitlines()
    ]


def test_a_key_is_shown_once_and_works_until_it_is_revoked(two: Two) -> None:
    said = two.remote("keys", "create", "--caller", "bob", "--expires", "1d").ok()
    key = said.out.strip()
    assert re.fullmatch(r"wl_\w{12}_\w+", key) and said.out.count("wl_") == 1 and key not in said.err
    bob = Cli(two.remote.folder)
    bob.environ |= {"WINDLASS_SERVER": two.url, "WINDLASS_API_KEY": key}
    assert bob("jobs", "--json").ok().json() == {"items": [], "next": None}
    assert bob("workers").code == 5 and bob("keys", "list").code == 5
    for said in (*two.both("keys", "list", "--json"), *two.both("audit", "list", "--json")):
        assert key not in said.ok().out and key[-20:] not in said.out
    two.local("keys", "revoke", key.split("_")[1]).ok()
    refused = bob("jobs")
    assert refused.code == 5 and key not in refused.err and "key" in refused.err
    pasted = two.remote("keys", "revoke", key)
    assert pasted.code == 2 and key not in pasted.err


def test_a_steps_output_is_printed(two: Two, jobs: dict[str, str]) -> None:
    for step, output in (("write_script", {"scenes": ["sea 0", "sea 1", "sea 2"]}), ("render[1]", "SEA 1")):
        for said in two.both("result", jobs["film"], "--step", step):
            assert said.ok().json() == output
    assert two.local("result", jobs["film"], "--step", "render").ok().json() == ["SEA 0", "SEA 1", "SEA 2"]
    for said in two.both("result", jobs["film"], "--step", "rendr"):
        assert said.code == 4 and "write_script, render, stitch" in said.err, said
    for said in two.both("result", jobs["flop"], "--step", "explode"):
        assert said.code == 5 and "has no output" in said.err, said


def test_what_is_not_for_servers_refuses_them_by_name(two: Two) -> None:
    assert "--server" not in two.local("worker", "--help").ok().out
    for name, more in (("up", []), ("demo", []), ("worker", [APP]), ("serve api", []), ("db status", [])):
        said = two.remote(*name.split(), *more, "--server", two.url)
        assert said.code == 2 and f"`windlass {name}` works on this machine" in said.err, said
    both = two.remote("jobs", "--server", two.url, "--database", "postgresql://x/y")
    assert both.code == 2 and "--server and --database" in both.err


def test_a_server_that_is_away_or_wrong_is_named_with_what_to_do(alone: Cli) -> None:
    away = alone("jobs", "--server", "http://127.0.0.1:9")
    assert away.code == 3 and "cannot be reached" in away.err and "windlass serve api" in away.err
    assert alone("jobs", "--server", "windlass.example").code == 2


def test_without_a_key_the_refusal_says_how_to_get_one(two: Two) -> None:
    stranger = Cli(two.remote.folder)
    said = stranger("jobs", "--server", two.url)
    assert said.code == 5 and "key" in said.err and said.out == ""


def test_a_job_is_told_what_it_waits_for(two: Two) -> None:
    for ask in (two.local, two.remote):
        job = ask("submit", "approval", "--budget", "2.50", "--json").ok().json()["job_id"]
        assert ask("send", job, "approved", "--body", '{"by": "bob"}', "--id", "b").ok().out.startswith(job)
        shown = ask("show", job).ok().out
        assert "budget     2.5, 2.5 left" in shown
        yes = ("send", job, "approved", "--body", '{"by": "ada"}', "--id", "a", "--json")
        assert ask(*yes).ok().json()["status"] in ("kept", "delivered")
        assert ask(*yes).ok().json()["status"] == "already"
        assert ask("result", job, "--wait", "--timeout", "30s").ok().json() == {"by": "ada"}


def test_a_step_that_waits_says_for_what(two: Two) -> None:
    job = two.local("submit", "approval", "--json").ok().json()["job_id"]
    for ask in (two.local, two.remote):
        for _ in range(100):
            shown = ask("show", job).ok().out
            if "PARKED" in shown:
                break
        assert "waits for approved" in shown
        assert any(line.startswith("waits") and "approved" in line for line in shown.splitlines())
    two.remote("cancel", job).ok()


def test_an_approval_is_listed_here_and_decided_there(two: Two) -> None:
    key = two.local("keys", "create", "--caller", "grace", "--role", "lead").ok().out.strip()
    grace = Cli(two.remote.folder)
    grace.environ |= {"WINDLASS_SERVER": two.url, "WINDLASS_API_KEY": key}
    job = grace("submit", "reviewed", "--json").ok().json()["job_id"]
    for _ in range(200):
        here, there = two.both("approvals", "list", "--decidable", "--json")
        if here.ok().json()["items"] and there.ok().json()["items"]:
            break
    [one], [other] = here.json()["items"], there.json()["items"]
    assert {**one, "left_s": 0} == {**other, "left_s": 0}
    assert (one["job_id"], one["requester"], one["show"]) == (job, "grace", {"topic": "sea"})
    for said in two.both("approvals", "show", one["id"][-8:]):
        assert "asks       Show the film?" in said.ok().out and "you        may decide" in said.out
    assert "waits for an approval" in two.local("show", job).ok().out
    refused = grace("approvals", "approve", one["id"])
    assert refused.code == 5 and "approvals:decide" in refused.err
    assert two.remote("approvals", "approve", one["id"], "--reason", "fine").ok().out == f"{one['id']} is USED\n"
    again = two.local("approvals", "reject", one["id"], "--json")
    assert again.code == 5
    assert grace("result", job, "--wait", "--timeout", "30s").ok().json()["reasons"] == ["fine"]
    assert "no approvals" in two.local("approvals").ok().err


def test_a_budget_is_set_here_and_read_there(two: Two) -> None:
    said = two.local("budgets", "set", "caller", "ada", "12.50", "--json").ok().json()
    assert said == {
        "scope": "caller", "name": "ada", "most": "12.5", "spent": "0", "reserved": "0", "left": "12.5",
    }  # fmt: skip
    assert said in two.remote("budgets", "list", "--json").ok().json()["items"]
    assert two.remote("budgets", "set", "caller", "ada", "3").ok().out == "caller ada: 3, of which 3 is left\n"
    assert two.remote("budgets", "remove", "caller", "ada").ok().out == "caller ada: no budget\n"
    assert "ada" not in two.local("budgets", "list").ok().out


def test_a_sweep_is_for_where_the_credentials_are(two: Two) -> None:
    said = two.remote("providers", "sweep", "fal", "--server", two.url)
    assert said.code == 2 and "works on this machine" in said.err
    assert two.local("providers", "sweep", "nobody").code == 4
