"""Writes the hashes of every artefact of every pinned version into the requirement files.

    python requirements/hashes.py INDEX_URL [FILE …]

The index is asked for its pages (the simple repository API). Hashes of all platforms are written, so that one file
serves them all; addresses are not.
"""

from __future__ import annotations

import html
import json
import re
import sys
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
PIN = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]+\])?==(?P<version>[^\s;\\]+)(?P<marker>\s*;[^\\]+)?")
LINK = re.compile(r'<a[^>]*?href="([^"]+)"')
SOURCES = (".tar.gz", ".zip")


def normal(name: str) -> str:
    """A project's name as the index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def files(index: str, name: str) -> list[tuple[str, str]]:
    """The file names of a project, each with its SHA-256."""
    request = urllib.request.Request(f"{index.rstrip('/')}/{normal(name)}/", headers={"Accept": ACCEPT})
    with urllib.request.urlopen(request, timeout=60) as answer:
        body, kind = answer.read().decode(), answer.headers.get("Content-Type", "")
    if "json" in kind:
        return [(file["filename"], file["hashes"]["sha256"]) for file in json.loads(body)["files"]]
    found = []
    for href in map(html.unescape, LINK.findall(body)):
        address, _, fragment = href.partition("#sha256=")
        found.append((urllib.parse.unquote(address.rpartition("/")[2]), fragment[:64]))
    return found


def is_of(file: str, name: str, version: str) -> bool:
    """Whether a file is a wheel or a source archive of this version."""
    if file.endswith(".whl"):
        parts = file.split("-")
        return (normal(parts[0]), parts[1]) == (normal(name), version)
    ending = next((end for end in SOURCES if file.endswith(end)), None)
    if ending is None:
        return False
    stem, _, found = file.removesuffix(ending).rpartition("-")
    return (normal(stem), found) == (normal(name), version)


def pinned(index: str, line: str) -> str:
    """A requirement with its hashes; any other line as it is."""
    found = PIN.match(line)
    if found is None:
        return line
    name, version = found["name"], found["version"]
    hashes = sorted({digest for file, digest in files(index, name) if is_of(file, name, version)})
    if not hashes or not all(hashes):
        raise SystemExit(f"the index has no hashes for {name}=={version}")
    return " \\\n".join([found.group().rstrip(), *(f"    --hash=sha256:{digest}" for digest in hashes)])


def main(index: str, *names: str) -> None:
    """Rewrite the files."""
    here = Path(__file__).parent
    for path in map(Path, names) if names else sorted(here.glob("*.txt")):
        lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("--hash=")]
        with ThreadPoolExecutor(8) as pool:
            path.write_text("\n".join(pool.map(lambda line: pinned(index, line), lines)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
