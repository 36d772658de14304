"""Settings: where they come from, which source wins, and how a slip is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from windlass.app.settings import load, masked
from windlass.core.errors import BadSetting

URL = "postgresql://ana:secret@db.example/windlass"


def test_a_providers_file_in_the_folder_is_found_unless_another_is_set(tmp_path: Path) -> None:
    assert load(environ={}, folder=tmp_path).providers is None
    (tmp_path / "providers.yaml").write_text("providers: {}")
    assert load(environ={}, folder=tmp_path).providers == tmp_path / "providers.yaml"
    assert load(environ={"WINDLASS_PROVIDERS": "other.yaml"}, folder=tmp_path).providers == tmp_path / "other.yaml"


@pytest.mark.parametrize("queues", ["a b", "gpu,2d", "gpu,a b"])
def test_a_queue_that_no_step_could_name_is_refused(queues: str) -> None:
    with pytest.raises(BadSetting, match="is not a queue's name"):
        load(environ={"WINDLASS_QUEUES": queues})


def test_without_anything_the_home_is_a_folder_here(tmp_path: Path) -> None:
    found = load(environ={}, folder=tmp_path)
    assert found.database_url is None
    assert found.home == tmp_path / ".windlass"
    assert found.artifacts_place == str(tmp_path / ".windlass" / "artifacts")
    assert (found.lease_s, found.retention_days, found.caller) == (15.0, 30.0, "local")


@pytest.mark.covers("COR-34")
def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "windlass.toml").write_text('caller = "file"\nlease_s = 20\nconcurrency = 3\n')
    environ = {"WINDLASS_CALLER": "environment", "WINDLASS_LEASE_S": "30"}
    found = load({"caller": "flag", "lease_s": None}, environ=environ, folder=tmp_path)
    assert (found.caller, found.lease_s, found.concurrency) == ("flag", 30.0, 3)


def test_paths_in_the_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "w.toml").write_text('home = "data"\nartifacts = "big"\nqueues = ["a", "b"]\n')
    found = load(environ={"WINDLASS_CONFIG": "conf/w.toml"}, folder=tmp_path)
    assert found.home == tmp_path / "conf" / "data"
    assert found.artifacts == str(tmp_path / "conf" / "big")
    assert found.queues == ("a", "b")


def test_a_variable_that_is_set_to_nothing_is_not_set(tmp_path: Path) -> None:
    assert load(environ={"WINDLASS_DATABASE_URL": " "}, folder=tmp_path).database_url is None


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"WINDLASS_LEASE_S": "soon"}, ["WINDLASS_LEASE_S", "soon", "number"]),
        ({"WINDLASS_LEASE_S": "0.1"}, ["WINDLASS_LEASE_S", "from 2"]),
        ({"WINDLASS_CONCURRENCY": "1.5"}, ["WINDLASS_CONCURRENCY", "whole"]),
        ({"WINDLASS_DATABASE_URL": "mysql://u:secret@h/d"}, ["WINDLASS_DATABASE_URL", "postgresql://"]),
        ({"WINDLASS_ARTIFACTS": "ftp://h/x"}, ["WINDLASS_ARTIFACTS", "s3://"]),
        ({"WINDLASS_QUEUES": ","}, ["WINDLASS_QUEUES", "at least one"]),
        ({"WINDLASS_DATABSE_URL": URL}, ["WINDLASS_DATABSE_URL", "WINDLASS_DATABASE_URL"]),
        ({"WINDLASS_CONFIG": "nowhere.toml"}, ["WINDLASS_CONFIG", "nowhere.toml"]),
    ],
)
def test_a_bad_variable_is_refused_by_name(environ: dict[str, str], words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadSetting) as caught:
        load(environ=environ, folder=tmp_path)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "secret" not in str(caught.value)


def test_variables_of_an_orchestrator_are_let_be(tmp_path: Path) -> None:
    theirs = {"WINDLASS_PORT": "tcp://10.0.0.7:80", "WINDLASS_SERVICE_HOST": "10.0.0.7"}
    assert load(environ=theirs, folder=tmp_path) == load(environ={}, folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lease = 3", ["lease", "lease_s"]),
        ("colour = 1", ["colour", "database_url"]),
        ("home = ", ["windlass.toml", "TOML"]),
        ("lease_s = true", ["lease_s", "number"]),
        ("home = 3", ["home='3'", "text"]),
        ('home = "a\\u0000b"', ["home", "text"]),
    ],
)
def test_a_bad_file_is_refused_by_key(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "windlass.toml").write_text(text)
    with pytest.raises(BadSetting) as caught:
        load(environ={}, folder=tmp_path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_password_is_never_shown() -> None:
    assert masked(URL) == "postgresql://ana:***@db.example/windlass"
    assert masked("postgresql://h/d") == "postgresql://h/d"
    assert masked("postgresql://ana@h/d?password=pw") == "postgresql://ana@h/d?password=***"
    with pytest.raises(BadSetting) as caught:
        load({"database_url": "h/d?password=hidden"}, environ={})
    assert "hidden" not in str(caught.value)
