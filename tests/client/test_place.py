"""Where a client finds its server and its key, and to whom it does not give that key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from windlass.client.place import find
from windlass.core.errors import BadSetting


def test_what_is_given_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "windlass.toml").write_text('server = "http://file"\napi_key = "of the file"\n')
    environ = {"WINDLASS_SERVER": "http://environment/", "WINDLASS_API_KEY": "k"}
    assert find("https://given/", "g", environ=environ, folder=tmp_path).url == "https://given"
    found = find(None, None, environ=environ, folder=tmp_path)
    assert (found.url, found.api_key) == ("http://environment", "k")
    assert find(None, None, environ={}, folder=tmp_path).api_key == "of the file"


def test_what_up_left_is_used_and_its_key_stays_on_this_machine(tmp_path: Path) -> None:
    home = tmp_path / ".windlass"
    home.mkdir()
    (home / "server").write_text("http://127.0.0.1:8421\n")
    (home / "key").write_text("wl_secret\n")
    found = find(None, None, environ={}, folder=tmp_path)
    assert (found.url, found.api_key) == ("http://127.0.0.1:8421", "wl_secret")
    assert "wl_secret" not in repr(found)
    for url, key in (
        ("http://localhost:1", "wl_secret"),
        ("http://[::1]:1", "wl_secret"),
        ("http://127.0.0.1.example", None),
        ("https://windlass.example", None),
    ):
        assert find(url, None, environ={}, folder=tmp_path).api_key == key, url


@pytest.mark.parametrize("url", ["windlass.example", "ftp://x", "http://", "http://x:port", "http://[::1"])
def test_an_address_that_is_none_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="is not an address"):
        find(url, None, environ={}, folder=tmp_path)


def test_without_a_server_it_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="windlass up"):
        find(None, None, environ={}, folder=tmp_path)
    (tmp_path / "windlass.toml").write_text("server = [")
    with pytest.raises(BadSetting, match="cannot be read"):
        find(None, None, environ={}, folder=tmp_path)


def test_the_client_loads_no_engine_and_the_library_no_client() -> None:
    check = "import sys, windlass; {}; print([m for m in ({}) if m in sys.modules])"
    for act, modules in (
        ("windlass.Client, windlass.AsyncClient", "'asyncpg', 'windlass.views.read', 'fastapi'"),
        ("windlass.Windlass", "'httpx', 'windlass.client.client', 'fastapi'"),
    ):
        code = check.format(act, modules)
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "[]", act


def test_without_httpx_a_client_says_what_to_install() -> None:
    code = "import sys; sys.modules['httpx'] = None; import windlass; windlass.Client('http://127.0.0.1:9')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'windlass[client]'" in found.stderr
