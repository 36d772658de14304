"""Packages as pip leaves them: the package of this folder, installed for real, and small packages made here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Cli

NOTES = Path(__file__).with_name("windlass-notes")


def install(source: Path, target: Path) -> None:
    """Install a package with pip into a folder, without a network."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--upgrade", "--target", str(target), str(source)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)


def write(target: Path, name: str, declaration: str, *, point: str | None = None, **files: str) -> None:
    """Leave a package `NAME_pkg` with its metadata: `extension` is what the declaration says."""
    package = target / f"{name}_pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"from windlass.extension import *\nextension = {declaration}\n")
    for path, text in files.items():
        (package / path.replace("__", "/")).with_suffix(".py").write_text(text)
    info = target / f"{name}_pkg-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-pkg\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[windlass.extensions]\n{point or name} = {name}_pkg:extension\n")


def with_site(cli: Cli, *folders: Path) -> Cli:
    """The same command line in an environment that has these packages too."""
    there = cli.environ.get("PYTHONPATH", "")
    cli.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [there]), *map(str, folders)])
    return cli
