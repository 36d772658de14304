"""Policies of an installation on the command line: the same from a database and from a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, line_with
from tests.client.server import SECRET
from windlass.testing.postgres import fresh_database

pytestmark = pytest.mark.slow

ALLOW = "default_decision: allow\ntests: [{request: {topic: job.a}, expect: {decision: allow}}]\n"
DENY = """
default_decision: deny
rules: [{id: go, match: {topics: [job.a]}, decision: allow}]
tests:
  - {request: {topic: job.a}, expect: {decision: allow, rule: go}}
  - {request: {topic: job.b}, expect: {decision: deny}}
"""
REQUEST = '{"topic": "job.b"}'


@pytest.fixture(params=["database", "server"])
def cli(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    local = Cli(tmp_path, asyncio.run(fresh_database()))
    local.environ["WINDLASS_SECRET"] = SECRET
    (tmp_path / "main.yaml").write_text(ALLOW)
    (tmp_path / "strict.yaml").write_text(DENY)
    (tmp_path / "untested.yaml").write_text(
        "tier: tenant\nselector: {tenant_id: acme}\nrules: [{id: x, decision: deny}]"
    )
    if request.param == "database":
        yield local
        return
    key = local("keys", "create", "--caller", "local", "--scope", "policy:write").ok().out.strip()
    api = local.spawn("serve", "api", "--listen", "127.0.0.1:0")
    remote = Cli(tmp_path)
    remote.environ |= {"WINDLASS_SERVER": line_with(api, "http://").strip(), "WINDLASS_API_KEY": key}
    yield remote
    api.terminate()
    out, _ = api.communicate(timeout=60)
    assert api.returncode == 0, out


def test_a_policy_is_published_shown_asked_and_rolled_back(cli: Cli) -> None:
    none = cli("policy", "list").ok()
    assert "no policy was published" in none.err
    assert cli("policy", "show").code == 4
    said = cli("policy", "publish", "main.yaml", "--note", "the first day").ok()
    assert said.out == "version 1 is in force: main\n" and "judged again" in said.err
    assert "means the same" in cli("policy", "publish", "main.yaml").ok().out
    assert cli("policy", "simulate", "-", stdin=REQUEST).ok().out.startswith("verdict    allow\n")

    shown = cli("policy", "diff", "strict.yaml", "--name", "main").ok()
    assert "changed\tdefault_decision" in shown.out
    assert cli("policy", "diff", "strict.yaml").code == 4
    told = cli("policy", "publish", "strict.yaml", "--name", "main", "--expect", "1", "--json").ok().json()
    assert (told["version"], told["is_new"], told["before"], told["floor"]) == (2, True, 1, 2)
    assert cli("policy", "publish", "main.yaml", "--expect", "1").code == 5
    assert cli("policy", "simulate", "-", stdin=REQUEST).ok().out.startswith("verdict    deny\n")
    assert cli("policy", "simulate", "-", "--version", "1", stdin=REQUEST).ok().out.startswith("verdict    allow\n")
    explained = cli("policy", "explain", "-", stdin=REQUEST).ok()
    assert "global\tgo\tfails\ttopics" in explained.out and "verdict    deny" in explained.out
    assert cli("policy", "explain", "-", "--json", stdin=REQUEST).ok().json()["rule_id"] == "windlass:default"

    assert cli("policy", "show", "--document", "main").ok().out.strip() == DENY.strip()
    whole = cli("policy", "show", "1").ok()
    assert "version    1\n" in whole.out and "note       the first day" in whole.out and "# main" in whole.out
    assert "in force" in cli("policy", "show").ok().out
    assert cli("policy", "show", "1", "--document", "other").code == 4
    cli("policy", "replay", "1").ok()
    replayed = cli("policy", "replay", "main.yaml", "--days", "1", "--json").ok().json()
    assert (replayed["jobs"], replayed["version"]) == (0, None)
    assert "no shadow rule would have decided" in cli("policy", "shadow").ok().err
    assert "version 3 is in force" in cli("policy", "rollback", "1", "--note", "too strict").ok().out
    listed = cli("policy", "list", "--json").ok().json()["items"]
    assert [(one["version"], one["rollback_of"], one["published_by"]) for one in listed] == [
        (3, 1, "local"),
        (2, None, "local"),
        (1, None, "local"),
    ]
    assert "rolled back to 1: too strict" in cli("policy", "list").ok().out


def test_documents_and_their_tests(cli: Cli) -> None:
    refused = cli("policy", "publish", "main.yaml", "untested.yaml")
    assert refused.code == 2 and "untested: rule x has no test" in refused.err, refused
    assert cli("policy", "show").code == 4
    told = cli("policy", "publish", "main.yaml", "untested.yaml", "--untested", "an emergency", "--json").ok().json()
    assert told["documents"] == ["main", "untested"]
    assert "main\n" in cli("policy", "publish", "main.yaml", "--only").ok().out
    assert cli("policy", "publish", "main.yaml", "strict.yaml", "--name", "x").code == 2
    assert "cannot be read" in cli("policy", "publish", "nothing.yaml").err
    assert cli("policy", "rollback", "99").code == 4
