"""Who may look into the folder of an installation: its user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from windlass.app.embedded.home import make_private
from windlass.app.service import holding
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass

# Root's server runs as another user and must pass through.
HOME = 0o711 if os.geteuid() == 0 else 0o700


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_that_is_made_is_closed_to_others(tmp_path: Path) -> None:
    home = tmp_path / "deep" / ".windlass"
    with holding(home):
        assert mode(home) == HOME
        assert mode(home / "up.lock") == 0o600


def test_a_home_that_was_open_is_closed_at_the_next_start(tmp_path: Path) -> None:
    home = tmp_path / ".windlass"
    (home / "artifacts").mkdir(parents=True, mode=0o755)
    (home / "pg").mkdir(mode=0o700)
    for name in ("pg.log", "key", "up.lock"):
        (home / name).touch(mode=0o644)
    (home / "server").touch(mode=0o644)
    home.chmod(0o755)
    make_private(home)
    assert mode(home) == HOME
    assert [mode(home / name) for name in ("artifacts", "pg", "pg.log", "key", "up.lock")] == [0o700] * 2 + [0o600] * 3


def test_a_folder_with_files_of_others_stays_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "shared"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    (home / "notes.txt").touch(mode=0o644)
    (home / "pg.log").touch(mode=0o644)
    outside = tmp_path / "outside"
    outside.touch(mode=0o644)
    (home / "key").symlink_to(outside)
    make_private(home)
    assert (mode(home), mode(home / "notes.txt"), mode(home / "pg.log"), mode(outside)) == (0o755, 0o644, 0o600, 0o644)


async def test_a_home_of_artifacts_alone_is_closed_too(dsn: str, tmp_path: Path) -> None:
    home = tmp_path / ".windlass"
    async with Windlass.connect(dsn, settings=Settings(home=home, database_url=dsn)):
        assert mode(home) == HOME
