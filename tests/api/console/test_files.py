"""Where the console's files are looked for, and what is served of them."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import pytest

from windlass.api import console_files, static
from windlass.api.console_files import VARIABLE, cache_folder, find_console
from windlass.api.static import Console, chosen, full, lite
from windlass.core.errors import BadSetting


def built(folder: Path, text: str = "<!doctype html>one") -> Path:
    """A small build, as Vite leaves one."""
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    for name, body in {
        "index.html": text,
        "icon.svg": "<svg/>",
        "assets/main-1.js": "one()",
        "assets/a-1.css": "a{}",
    }.items():
        (folder / name).write_text(body)
        (folder / f"{name}.gz").write_bytes(gzip.compress(body.encode()))
        (folder / f"{name}.br").write_bytes(b"brotli of " + body.encode())
    (folder / "assets/inter-1.woff2").write_bytes(b"font")
    return folder


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No build anywhere: neither of the checkout, nor installed, nor in the cache."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(console_files, "checkout_folder", lambda: tmp_path / "checkout")
    monkeypatch.setattr(console_files, "PACKAGE", "windlass_console_of_the_tests")
    return tmp_path


def test_the_places_are_tried_in_order(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_console() is None
    cached = built(cache_folder())
    assert cached == nowhere / "cache/windlass/console"
    assert find_console() == cached
    package = built(nowhere / "lib/windlass_console_of_the_tests")
    monkeypatch.syspath_prepend(nowhere / "lib")
    assert find_console() == package
    checkout = built(nowhere / "checkout/build/console")
    assert find_console() == checkout
    named = built(nowhere / "named")
    monkeypatch.setenv(VARIABLE, str(named))
    assert find_console() == named
    sys.path_importer_cache.clear()


def test_a_folder_that_is_named_must_hold_a_console(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(cache_folder())
    monkeypatch.setenv(VARIABLE, str(nowhere / "nothing"))
    with pytest.raises(BadSetting, match="no index"):
        find_console()
    with pytest.raises(BadSetting):
        Console()


def test_without_a_home_there_is_no_cache(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert find_console() is None


def test_only_files_of_the_build_are_known(tmp_path: Path) -> None:
    folder = built(tmp_path / "console")
    (tmp_path / "secret").write_text("secret")
    (folder / "assets/main-1.js.gz").unlink()
    (folder / "elsewhere").symlink_to(tmp_path)
    (folder / "broken").symlink_to(tmp_path / "nothing")
    (folder / "web").mkdir()
    (folder / "web/source.ts").write_text("source")
    (folder / "assets/deep").mkdir()
    (folder / "assets/deep/x.js").write_text("deep")
    build = full(folder)
    assert set(build.files) == {"index.html", "icon.svg", "assets/main-1.js", "assets/a-1.css", "assets/inter-1.woff2"}
    assert set(build.files["assets/main-1.js"].forms) == {"identity", "br"}
    assert b"secret" not in b"".join(body for file in build.files.values() for body in file.forms.values())


def test_a_build_of_links_is_a_build(tmp_path: Path) -> None:
    """As some installers leave a package: each file a link into their own cache."""
    real, linked = built(tmp_path / "cache"), tmp_path / "installed"
    (linked / "assets").mkdir(parents=True)
    for path in real.rglob("*.*"):
        (linked / path.relative_to(real)).symlink_to(path)
    assert full(linked) == full(real)
    assert Console(lambda: linked).build().kind == "full"


def test_a_folder_that_is_no_build_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = built(tmp_path / "console")
    monkeypatch.setattr(static, "FILES_MAX", 4)
    with pytest.raises(BadSetting, match="over 4 files"):
        full(folder)
    monkeypatch.setattr(static, "FILES_MAX", 5)
    full(folder)
    monkeypatch.setattr(static, "BYTES_MAX", 100)
    with pytest.raises(BadSetting, match="100 bytes"):
        full(folder)


def test_a_new_build_is_noticed_and_half_a_one_is_not_served(tmp_path: Path) -> None:
    folder, now = tmp_path / "console", 0.0
    found: list[Path | None] = [None]

    def find() -> Path | None:
        if isinstance(found[0], Path) and not (found[0] / "index.html").exists():
            raise BadSetting("being written")
        return found[0]

    console = Console(find, lambda: now)
    assert console.build().kind == "lite"
    found[0] = built(folder)
    assert console.build().kind == "lite", "it looks once a second"
    now += 1
    first = console.build()
    assert first.kind == "full"
    now += 1
    assert console.build() is first, "nothing has changed"
    # A build begins by emptying its folder.
    (folder / "index.html").unlink()
    now += 1
    assert console.build() is first
    built(folder, "<!doctype html>another")
    os.utime(folder / "index.html", ns=(1, 1))
    now += 1
    second = console.build()
    assert second.hash != first.hash
    assert second.files["index.html"].forms["identity"] == b"<!doctype html>another"
    found[0] = None
    now += 1
    assert console.build() is second, "what was read stays when its folder is gone"


def test_open_pages_find_their_files_after_the_next_build(tmp_path: Path) -> None:
    folder, now = built(tmp_path / "console"), 0.0
    console = Console(lambda: folder, lambda: now)
    names: set[str] = set()
    for text in ("two", "three"):
        for old in (folder / "assets").iterdir():
            old.unlink()
        built(folder, text)
        (folder / "assets/main-1.js").rename(folder / f"assets/main-{text}.js")
        now += 1
        names = set(console.build().files)
        assert f"assets/main-{text}.js" in names
        assert console.build().files["index.html"].forms["identity"] == text.encode()
    assert "assets/main-two.js" in names, "of the build before"
    assert "assets/main-1.js" not in names, "but not of all that ever were"


def test_a_build_that_changes_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, now = built(tmp_path / "console"), 0.0
    real, changes = static.full, 1

    def while_written(path: Path) -> static.Build:
        nonlocal changes
        made = real(path)
        if changes:
            changes -= 1
            (path / "assets/late-1.js").write_text("late()")
        return made

    monkeypatch.setattr(static, "full", while_written)
    console = Console(lambda: folder, lambda: now)
    assert console.build().kind == "lite"
    now += 1
    assert "assets/late-1.js" in console.build().files


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        ("", "identity"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("BR;Q=0.1", "br"),
        ("*", "br"),
        ("*;q=0", "identity"),
        ("gzip;q=1.0, *;q=0", "gzip"),
        ("identity;q=0", "identity"),
        ("br;q=oops", "identity"),
        ("br;level=1", "br"),
        (",,;,", "identity"),
        ("br;q=nan", "identity"),
        ("zstd", "identity"),
    ],
)
def test_the_form_is_chosen_by_what_is_accepted(accepted: str, sent: str) -> None:
    assert chosen(accepted, {"identity": b"", "gzip": b"", "br": b""}) == sent


def test_a_form_that_is_not_there_is_not_chosen() -> None:
    assert chosen("br, gzip", {"identity": b"", "gzip": b""}) == "gzip"
    assert chosen("br, gzip", {"identity": b""}) == "identity"


def test_the_lite_page_is_small_and_needs_nothing_else() -> None:
    build = lite()
    body = build.files["index.html"].forms["identity"].decode()
    assert len(body.encode()) <= 10_000
    assert "windlass console build" in body
    assert body.count("<script>") == 1 and build.policy.count("'sha256-") == 1
    assert "http:" not in body and "https:" not in body and "src=" not in body
    assert gzip.decompress(build.files["index.html"].forms["gzip"]).decode() == body
    assert "innerHTML" not in body and "insertAdjacentHTML" not in body, "what callers wrote is text, never markup"
