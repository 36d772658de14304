"""Building the documentation as a site: `make site`, or `python docs/site/site_build.py`, writes it to build/site.

The package's build hook (`hatch_build.py`) calls it too, so that the wheel carries the site. Nothing of Windlass is
imported here: it is not installed yet.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import site_pages as pages

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GENERATOR = "zensical"
# Taken from the package index for the time of an isolated build, where there is a wheel: its source needs Rust.
GENERATOR_PACKAGE = "zensical==0.0.73; platform_machine in 'x86_64 AMD64 aarch64 arm64 ARM64'"
STAMP = "site.json"
INDEX = "index.html"
ASSETS = ("windlass.css", "icon.svg")
BUILD_MAX_S = 300
# Made by the generator and used by no page of ours: another theme, and a page with addresses of another root.
_UNUSED = ("assets/stylesheets/classic", "404.html", "sitemap.xml", "sitemap.xml.gz", "objects.inv")
_COMPRESSED = frozenset({".css", ".html", ".js", ".json", ".svg"})
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class NotBuilt(Exception):
    """The site could not be built; the message says why."""


def fingerprint(root: Path) -> str:
    """A digest of all sources. The same sources are not built twice."""
    digest = hashlib.sha256(GENERATOR_PACKAGE.encode())
    for path in [*pages.sources(root), *sorted(p for p in (root / "docs" / "site").iterdir() if p.is_file())]:
        digest.update(f"{path.relative_to(root).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def is_built(out: Path, wanted: str) -> bool:
    """Whether `out` holds a whole build of the sources with this fingerprint."""
    try:
        found = json.loads((out / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("sources") == wanted and (out / INDEX).is_file()


def has_generator() -> bool:
    """Whether the generator is installed for this interpreter."""
    return importlib.util.find_spec(GENERATOR) is not None


def build(root: Path, out: Path, say: Callable[[str], None]) -> None:
    """Make `out` the site. The former site stays until the new one is whole; NotBuilt if the build fails."""
    wanted = fingerprint(root)
    if is_built(out, wanted):
        say("the documentation is up to date")
        return
    if not has_generator():
        raise NotBuilt(f"{GENERATOR} is not installed (requirements/site.txt)")
    say("building the documentation")
    made = out.with_name(f"{out.name}.{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            _generate(root, Path(folder))
            shutil.rmtree(made, ignore_errors=True)
            shutil.copytree(Path(folder, "site"), made)
        _finish(made, wanted)
        shutil.rmtree(out, ignore_errors=True)
        os.replace(made, out)
    except (OSError, subprocess.SubprocessError, pages.BadPage) as error:
        raise NotBuilt(f"the build failed: {error}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _generate(root: Path, folder: Path) -> None:
    """Run the generator in `folder` on the pages of the repository; the site is then in `folder/site`."""
    pages.stage(root, folder / "docs")
    for name in ASSETS:
        shutil.copy(root / "docs" / "site" / name, folder / "docs" / name)
    config = (root / "docs" / "site" / "zensical.toml").read_text(encoding="utf-8")
    menu = f"nav = {_toml(pages.navigation(root))}\n"
    (folder / "zensical.toml").write_text(config.replace("# nav\n", menu, 1), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", GENERATOR, "build", "--strict"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=BUILD_MAX_S,
    )
    if done.returncode != 0:
        raise NotBuilt(f"`{GENERATOR} build` failed:\n{_COLOUR.sub('', done.stdout)[:4_000].strip()}")


def _finish(made: Path, wanted: str) -> None:
    """Remove unused files, compress texts, and write the stamp with the hashes of the scripts inside pages.

    The server allows these scripts by their hashes, and no other.
    """
    for name in _UNUSED:
        path = made / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    scripts = set()
    for path in sorted(made.rglob("*")):
        if path.suffix not in _COMPRESSED:
            continue
        body = path.read_bytes()
        if path.suffix == ".html":
            scripts.update(base64.b64encode(hashlib.sha256(one).digest()).decode() for one in _SCRIPT.findall(body))
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(body, mtime=0))
    (made / STAMP).write_text(json.dumps({"sources": wanted, "scripts": sorted(scripts)}), encoding="utf-8")


def _toml(value: object) -> str:
    """A menu as TOML: strings, lists and tables in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def main() -> int:
    """Build the site of this checkout."""
    out = ROOT / "build" / "site"
    try:
        build(ROOT, out, lambda text: print(text, file=sys.stderr))
    except NotBuilt as why:
        print(f"the documentation was not built: {why}", file=sys.stderr)
        return 1
    print(out / INDEX)
    return 0


if __name__ == "__main__":
    sys.exit(main())
