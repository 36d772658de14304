"""Building the console: what decides whether it is built again, which Node will do, and what a wheel then carries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from windlass.app import console_build

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def web(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "src").mkdir(parents=True)
    (folder / "package-lock.json").write_text("{}")
    (folder / "src" / "main.ts").write_text("1")
    return folder


def tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a Node whose `npm` does what each test says; the real one is tried by every install of the gate."""
    folder = tmp_path / "bin"
    tool(folder, "node", "echo v22.1.0")
    tool(folder, "npm", "exit 0")
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return folder


BUILDS = 'case "$1" in run) mkdir -p "$WINDLASS_CONSOLE_OUT" && echo new > "$WINDLASS_CONSOLE_OUT/index.html";; esac'


def test_the_sources_decide_and_tests_do_not(web: Path) -> None:
    before = console_build.fingerprint(web)
    (web / "node_modules").mkdir()
    (web / "node_modules" / "x.js").write_text("x")
    (web / "src" / "main.test.ts").write_text("x")
    assert console_build.fingerprint(web) == before
    (web / "src" / "main.ts").write_text("2")
    assert console_build.fingerprint(web) != before


def test_a_file_that_moved_is_another_source(web: Path) -> None:
    before = console_build.fingerprint(web)
    (web / "src" / "main.ts").rename(web / "src" / "other.ts")
    assert console_build.fingerprint(web) != before


def test_the_same_sources_are_built_once(web: Path, tools: Path, tmp_path: Path) -> None:
    tool(tools, "npm", f"echo $1 >> {tmp_path}/asked\n{BUILDS}")
    said: list[str] = []
    console_build.build(web, tmp_path / "out", said.append)
    console_build.build(web, tmp_path / "out", said.append)
    assert (tmp_path / "asked").read_text().split() == ["ci", "run"]
    assert said[-1] == "the console is up to date"


def test_packages_that_are_there_are_left_alone(web: Path, tools: Path, tmp_path: Path) -> None:
    (web / "node_modules").mkdir()
    (web / "node_modules" / ".package-lock.json").write_text("{}")
    tool(tools, "npm", f"echo $1 >> {tmp_path}/asked\n{BUILDS}")
    console_build.build(web, tmp_path / "out", print)
    assert (tmp_path / "asked").read_text().split() == ["run"]


def test_a_build_that_fails_leaves_the_old_one(web: Path, tools: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "index.html").write_text("old")
    tool(tools, "npm", f'{BUILDS}\n[ "$1" = ci ] || {{ echo it went wrong; exit 1; }}')
    with pytest.raises(console_build.NotBuilt, match="it went wrong"):
        console_build.build(web, out, print)
    assert (out / "index.html").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "out", "web"]


@pytest.mark.parametrize(
    ("version", "said"),
    [("v20.18.9", "older than 20.19"), ("v18.0.0", "older"), ("what?", "older"), ("", "older")],
)
def test_an_old_node_is_refused(web: Path, tools: Path, tmp_path: Path, version: str, said: str) -> None:
    tool(tools, "node", f"echo '{version}'")
    with pytest.raises(console_build.NotBuilt, match=said):
        console_build.build(web, tmp_path / "out", print)


def test_a_node_that_does_not_run_is_refused(web: Path, tools: Path, tmp_path: Path) -> None:
    tool(tools, "node", "exit 1")
    with pytest.raises(console_build.NotBuilt, match="does not run"):
        console_build.build(web, tmp_path / "out", print)


def test_a_stamp_that_cannot_be_read_is_no_build(tmp_path: Path) -> None:
    for text in ("", "[]", "nonsense", '{"sources": 1}'):
        (tmp_path / "build.json").write_text(text)
        assert not console_build.is_built(tmp_path, "abc")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The package's own build files, and a console of one file."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "web" / "src").mkdir(parents=True)
    (folder / "web" / "src" / "main.ts").write_text("1")
    return folder


def wheel(checkout: Path, mode: str, path: str, docs: str = "auto") -> tuple[int, str, set[str]]:
    """Build a wheel as an installer does; what was said, and the names in it."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"],
        cwd=checkout,
        env={**os.environ, "WINDLASS_CONSOLE": mode, "WINDLASS_DOCS": docs, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    made = next((checkout / "dist").glob("*.whl"), None) if (checkout / "dist").exists() else None
    names = set() if made is None else set(zipfile.ZipFile(made).namelist())
    return done.returncode, done.stdout + done.stderr, names


def test_a_wheel_carries_what_was_built(checkout: Path) -> None:
    out = checkout / "build" / "console"
    out.mkdir(parents=True)
    (out / "index.html").write_text("built")
    (out / "build.json").write_text(f'{{"sources": "{console_build.fingerprint(checkout / "web")}"}}')
    code, said, names = wheel(checkout, "require", "/nowhere")
    assert code == 0, said
    assert {"windlass_console/__init__.py", "windlass_console/index.html", "windlass/py.typed"} <= names
    assert not any(name.startswith("windlass_console/web/") for name in names)


@pytest.mark.parametrize("mode", ["auto", "skip"])
def test_a_wheel_without_a_console_carries_its_sources(checkout: Path, mode: str) -> None:
    code, said, names = wheel(checkout, mode, "/nowhere")
    assert code == 0, said
    assert "windlass_console/web/src/main.ts" in names
    assert "windlass_console/index.html" not in names


def small_docs(checkout: Path) -> Path:
    """The pages of a small documentation, and where its site is built."""
    shutil.copytree(ROOT / "docs/site", checkout / "docs/site", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "STYLE.md", "docs/README.md"):
        (checkout / name).write_text(f"# {name}\n")
    return checkout / "build" / "site"


def test_a_wheel_carries_the_documentation(checkout: Path) -> None:
    out = small_docs(checkout)
    asked = "import site_build, pathlib; print(site_build.fingerprint(pathlib.Path.cwd()))"
    environment = {**os.environ, "PYTHONPATH": str(checkout / "docs/site")}
    printed = subprocess.check_output([sys.executable, "-c", asked], cwd=checkout, env=environment, text=True)
    out.mkdir(parents=True)
    (out / "index.html").write_text("built")
    (out / "site.json").write_text(f'{{"sources": "{printed.strip()}", "scripts": []}}')
    code, said, names = wheel(checkout, "skip", "/nowhere", docs="require")
    assert code == 0, said
    assert {"windlass_docs/__init__.py", "windlass_docs/index.html", "windlass_docs/site.json"} <= names


def test_a_wheel_without_its_documentation_is_a_wheel(checkout: Path) -> None:
    small_docs(checkout)
    (checkout / "docs/site/zensical.toml").write_text("this is no TOML")
    code, said, names = wheel(checkout, "skip", "/nowhere")
    assert code == 0 and "windlass/py.typed" in names, said
    assert not any(name.startswith("windlass_docs/") for name in names)
    assert "the documentation was not built" in said
    assert wheel(checkout, "skip", "/nowhere", docs="require")[0] != 0
    code, said, _ = wheel(checkout, "skip", "/nowhere", docs="skip")
    assert code == 0 and "documentation" not in said


@pytest.mark.parametrize(("mode", "said"), [("require", "there is no Node"), ("alwyas", "it may be auto, skip")])
def test_an_install_that_insists_fails(checkout: Path, mode: str, said: str) -> None:
    code, told, names = wheel(checkout, mode, "/nowhere")
    assert code != 0
    assert said in told
    assert not names
