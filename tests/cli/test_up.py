"""`up` and the other servers: the first key, the port, who may listen where, and how they end."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import APP, Cli, line_with
from tests.client.server import SECRET
from windlass import Client
from windlass.app.http import bound
from windlass.core.errors import BadSetting

pytestmark = pytest.mark.slow
START = "ready in"


@pytest.fixture
def homes(server_folder: Path) -> list[Cli]:
    """The command line in two folders of its own, without a database."""
    made = []
    for name in ("one", "two"):
        home = server_folder / name
        home.mkdir(mode=0o711)
        made.append(Cli(home))
    return made


def ended(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    return out


def test_up_makes_a_first_key_and_clients_of_its_folder_use_it(homes: list[Cli]) -> None:
    home = homes[0]
    up = home.spawn("up", APP)
    url = line_with(up, "http://").split()[-1]
    line_with(up, START)
    path = home.folder / "key"
    key = path.read_text().strip()
    assert key.startswith("wl_")
    for name in ("key", "secret"):
        assert stat.S_IMODE((home.folder / name).stat().st_mode) == 0o600
    assert (home.folder / "server").read_text().strip() == url
    with Client(home=home.folder) as client:
        assert client.server == url and client.me()["caller"] == "local"
        assert client.submit("film", topic="sea").result(timeout=60) == {"film": "SEA 0 + SEA 1 + SEA 2"}
    # The command line of the same folder goes to the database; when told of a server, it takes the same key.
    assert len(home("jobs", "--json").ok().json()["items"]) == 1
    assert home("jobs", "--server", url, "--json").ok().json() == home("jobs", "--json").ok().json()
    assert httpx.get(f"{url}/jobs", trust_env=False, timeout=60).status_code == 401
    said = ended(up)
    assert key not in said and not (home.folder / "server").exists()

    again = home.spawn("up", APP)
    line_with(again, START)
    assert path.read_text().strip() == key  # the same key is good, and no other is made
    assert len(home("keys", "list", "--json").ok().json()["items"]) == 1
    home("keys", "revoke", key.split("_")[1]).ok()
    ended(again)
    third = home.spawn("up", APP)
    line_with(third, START)
    assert path.read_text().strip() != key  # a revoked key is replaced
    ended(third)


def test_several_up_at_once_take_ports_of_their_own(homes: list[Cli]) -> None:
    ups = [home.spawn("up", APP) for home in homes]
    urls = [line_with(up, "http://").split()[-1] for up in ups]
    for up in ups:
        line_with(up, START)
    assert len(set(urls)) == 2
    for home, url in zip(homes, urls, strict=True):
        with Client(home=home.folder) as client:
            assert client.server == url and client.me()["caller"] == "local"
    # The key of one is nothing to the other.
    key = (homes[0].folder / "key").read_text().strip()
    assert httpx.get(f"{urls[1]}/me", headers={"X-API-Key": key}, trust_env=False, timeout=60).status_code == 401
    for up in ups:
        ended(up)


def test_a_port_is_taken_from_the_moment_it_is_found() -> None:
    with bound("127.0.0.1:0") as first:
        port = first.getsockname()[1]
        with bound(f"127.0.0.1:{port}", tries=20) as second:
            assert second.getsockname()[1] != port
        with pytest.raises(BadSetting, match=str(port)):
            bound(f"127.0.0.1:{port}")


def test_nobody_else_is_let_in_before_there_is_a_key(homes: list[Cli], fresh_dsn: str) -> None:
    said = homes[0]("up", APP, "--listen", "0.0.0.0:0")
    assert said.code == 2 and "no key yet" in said.err and "windlass keys create" in said.err
    assert not (homes[0].folder / "key").exists()

    shared = Cli(homes[1].folder, fresh_dsn)
    unset = shared("serve", "api", "--listen", "0.0.0.0:0")
    assert unset.code == 2 and "WINDLASS_SECRET" in unset.err
    shared.environ["WINDLASS_SECRET"] = SECRET
    assert "windlass keys create" in shared("serve", "api", "--listen", "0.0.0.0:0").err
    shared("keys", "create", "--caller", "ana").ok()
    api = shared.spawn("serve", "api", "--listen", "0.0.0.0:0")
    line_with(api, "http://")
    ended(api)


def test_a_port_that_is_taken_is_a_setting_to_correct(homes: list[Cli], fresh_dsn: str) -> None:
    cli = Cli(homes[0].folder, fresh_dsn)
    cli.environ["WINDLASS_SECRET"] = SECRET
    first = cli.spawn("serve", "api", "--listen", "127.0.0.1:0")
    address = line_with(first, "http://").strip().removeprefix("http://")
    said = cli("serve", "api", "--listen", address)
    assert said.code == 2 and address in said.err and "another address" in said.err
    ended(first)


@pytest.mark.covers("JN-04")
def test_servers_and_engines_are_processes_of_their_own_and_any_number_of_each(
    homes: list[Cli], fresh_dsn: str
) -> None:
    cli = Cli(homes[0].folder, fresh_dsn)
    cli.environ["WINDLASS_SECRET"] = SECRET
    key = cli("keys", "create", "--caller", "ana").ok().out.strip()
    apis = [cli.spawn("serve", "api", "--listen", "127.0.0.1:0") for _ in range(2)]
    urls = [line_with(api, "http://").strip() for api in apis]
    engines = [cli.spawn("serve", "engine") for _ in range(2)]
    for engine in engines:
        line_with(engine, "Ctrl-C stops")
    worker = cli.spawn("worker", APP, "--no-loops")
    line_with(worker, "Ctrl-C stops")
    # A fan-out takes the engine's router, so a worker without loops shows that the engines do theirs.
    with Client(urls[0], api_key=key) as one, Client(urls[1], api_key=key) as other:
        job = one.submit("film", topic="sea")
        assert other.job(job.job_id).result(timeout=60) == {"film": "SEA 0 + SEA 1 + SEA 2"}
        ended(engines[0])
        ended(apis[0])
        assert other.submit("film", topic="fog").result(timeout=60) == {"film": "FOG 0 + FOG 1 + FOG 2"}
    assert cli("audit", "verify", "--json").ok().json()["is_good"]
    for process in (apis[1], engines[1], worker):
        ended(process)


def test_a_server_that_is_told_to_end_finishes_what_it_has_begun(homes: list[Cli], fresh_dsn: str) -> None:
    cli = Cli(homes[0].folder, fresh_dsn)
    cli.environ["WINDLASS_SECRET"] = SECRET
    key = cli("keys", "create", "--caller", "ana").ok().out.strip()
    worker = cli.spawn("worker", APP, "--drain", "90s")
    line_with(worker, "Ctrl-C stops")
    api = cli.spawn("serve", "api", "--listen", "127.0.0.1:0")
    url = line_with(api, "http://").strip()
    with Client(url, api_key=key) as client:
        job = client.submit("nap")
        with httpx.stream(
            "GET", f"{url}/jobs/{job.job_id}/stream", headers={"X-API-Key": key}, trust_env=False, timeout=60
        ) as stream:
            lines = stream.iter_lines()
            assert any("step.running" in line for line in lines)
            api.send_signal(signal.SIGTERM)
            assert "event: bye" in list(lines)
    out, _ = api.communicate(timeout=60)
    assert api.returncode == 0 and "Traceback" not in out, out
    # Asked twice, it does not wait for the nap. Two signals that meet are one, so the first must have been heard.
    worker.send_signal(signal.SIGTERM)
    line_with(worker, "attempts have up to 90 s")
    ended(worker)


def test_a_secret_of_another_is_refused(homes: list[Cli], fresh_dsn: str) -> None:
    cli = Cli(homes[0].folder, fresh_dsn)
    cli.environ["WINDLASS_SECRET"] = SECRET
    ended_api = cli.spawn("serve", "api", "--listen", "127.0.0.1:0")
    line_with(ended_api, "http://")
    ended(ended_api)
    cli.environ["WINDLASS_SECRET"] = SECRET[::-1]
    said = cli("serve", "api", "--listen", "127.0.0.1:0")
    assert said.code == 2 and "secret" in said.err and SECRET[::-1] not in said.err
    assert "the file `secret` of its home" in " ".join(said.err.split())
    key = cli("keys", "create", "--caller", "ana")
    assert key.code == 2 and "WINDLASS_SECRET" in key.err and key.out == ""


def test_without_a_secret_nothing_serves_a_database_of_ones_own(homes: list[Cli], fresh_dsn: str) -> None:
    cli = Cli(homes[0].folder, fresh_dsn)
    for words in (["serve", "api", "--listen", "127.0.0.1:0"], ["up", APP], ["keys", "create", "--caller", "ana"]):
        said = cli(*words)
        assert said.code == 2 and "openssl rand -hex 32" in said.err and "WINDLASS_SECRET" in said.err, said
    assert not (homes[0].folder / "secret").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_is_named(homes: list[Cli]) -> None:
    homes[0].folder.chmod(0o500)
    assert "WINDLASS_HOME" in homes[0]("up", APP).err


def test_up_publishes_a_policy_that_allows_every_job_and_says_so(homes: list[Cli]) -> None:
    home = homes[0]
    up = home.spawn("up", APP)
    line = line_with(up, " policy ")
    assert "version 1 (starter): every job may run" in line and "windlass policy example" in line
    line_with(up, START)
    [head] = home("policy", "list", "--json").ok().json()["items"]
    assert (head["documents"], head["published_by"]) == (["starter"], "windlass up")
    assert home("db", "status", "--json").ok().json()["policy"] == 1
    checks = {one["name"]: one["found"] for one in home("doctor", "--json").json()["checks"]}
    assert checks["policy"].startswith("version 1, ")
    home.folder.joinpath("main.yaml").write_text("default_decision: allow")
    home("policy", "publish", str(home.folder / "main.yaml"), "--only", "--untested", "a test").ok()
    ended(up)

    again = home.spawn("up", APP)
    assert line_with(again, " policy ").strip().endswith("version 2: main"), "an operator's policy stays"
    ended(again)


@pytest.mark.parametrize("is_own", [True, False])
def test_no_policy_is_published_where_none_is_wanted(homes: list[Cli], fresh_dsn: str, is_own: bool) -> None:
    home = homes[0] if is_own else Cli(homes[1].folder, fresh_dsn)
    home.environ["WINDLASS_SECRET"] = SECRET
    up = home.spawn("up", APP, *(["--no-policy"] if is_own else []))
    assert "none: every job may run" in line_with(up, " policy ")
    line_with(up, START)
    assert home("policy", "list", "--json").ok().json()["items"] == []
    ended(up)
