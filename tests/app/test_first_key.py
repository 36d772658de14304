"""The files that an installation on one machine makes for itself: once, whole, and readable by their owner only."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from windlass.app.first_key import announced, private, secret_of
from windlass.app.settings import Settings
from windlass.core.errors import BadSetting


def test_of_many_that_begin_at_once_one_makes_the_file_and_all_read_it(tmp_path: Path) -> None:
    numbers = count()
    for turn in range(20):
        path = tmp_path / f"secret{turn}"
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _, at=path: private(at, lambda: f"made {next(numbers)}"), range(8)))
        assert len(found) == 1 and path.read_text().strip() in found
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(f"secret{turn}" for turn in range(20))


def test_a_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("x" * 40)
    path.chmod(0o644)
    secret_of(Settings(home=tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_secret_is_made_for_the_embedded_database_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    shared = Settings(home=home, database_url="postgresql://h/d")
    with pytest.raises(BadSetting, match="openssl rand -hex 32"):
        secret_of(shared)
    assert not home.exists()
    caplog.set_level("INFO")
    made = secret_of(Settings(home=home))
    assert f"created the installation's secret: {home / 'secret'}" in caplog.text
    assert secret_of(shared).digest("check", b"") == made.digest("check", b""), "the file is taken when it is there"


def test_an_address_is_announced_while_it_holds_and_another_s_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "server"
    with announced(tmp_path, "http://127.0.0.1:1"):
        assert path.read_text().strip() == "http://127.0.0.1:1"
        path.write_text("http://127.0.0.1:2\n")
    assert path.read_text().strip() == "http://127.0.0.1:2"
    with announced(tmp_path, "http://127.0.0.1:3"):
        pass
    assert not path.exists()


def test_a_home_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSetting, match="WINDLASS_HOME"):
        secret_of(Settings(home=tmp_path / "file" / "home"))
