"""What a visitor finds: pins without addresses, a changelog that is kept, prose about the product and nothing else."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, project_files

PIN = re.compile(r"^[A-Za-z0-9._-]+(\[[a-z,]+\])?==[A-Za-z0-9.!+_-]+(\s*;.+)?$")
ADDRESS = re.compile(r"https?://|file://|git\+|--(index-url|extra-index-url|find-links|trusted-host)|^-[if]\s", re.M)
# Ids of trackers and of papers that a reader of this repository cannot open.
FOREIGN_ID = re.compile(
    r"\b(SCR|CIX|COR|JN)-\d+|\b(SCR|CIX|COR|JN)\.[A-Z]\b|\b(ledger|pitfall|issue)s? #?[A-Z]?\d+|\bGH-\d+"
)
# Requirements have such ids too. Readers find them in the list, in the page made from it and in the marks of tests.
MAY_NAME_IDS = {
    "docs/reference/requirements.toml",
    "docs/reference/conformance.md",
    "tests/conformance/test_summary.py",
    "tests/tidy/test_marks.py",
    "tests/tidy/test_repository.py",
    "LICENSE",
}
COVERS = re.compile(r"pytest\.mark\.covers\([^)]*\)")
TEXT = {".py", ".sql", ".md", ".txt", ".toml", ".yaml", ".yml", ".json", ".sh", ""}
SECTION = re.compile(r"^## \[(?P<name>Unreleased|\d+\.\d+\.\d+)\]( - \d{4}-\d{2}-\d{2})?$", re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def requirement_files() -> list[Path]:
    found = sorted((ROOT / "requirements").glob("*.txt"))
    assert {path.name for path in found} >= {"build.txt", "run.txt", "dev.txt"}
    return found


def test_every_requirement_is_pinned() -> None:
    for path in requirement_files():
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith(("#", "    --hash="))]
        lines = [line.removesuffix(" \\") for line in lines]
        assert [line for line in lines if not PIN.match(line)] == [], path.name


def test_no_lock_holds_an_address() -> None:
    locks = [*requirement_files(), *(p for p in project_files() if p.name in ("package-lock.json", "pylock.toml"))]
    assert [path.name for path in locks if ADDRESS.search(_without_funding(path))] == []
    assert not (ROOT / "uv.lock").exists()


def _without_funding(lock: Path) -> str:
    """What a lock says, but for where its packages ask for money: nothing is downloaded from there."""
    text = lock.read_text()
    if lock.name != "package-lock.json":
        return text
    packages = json.loads(text)["packages"]
    return json.dumps([{key: value for key, value in one.items() if key != "funding"} for one in packages.values()])


def test_every_dependency_is_pinned_and_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pinned = {_key(line) for path in requirement_files() for line in path.read_text().splitlines() if "==" in line}
    explained = _key_text((ROOT / "docs/decisions/dependencies.md").read_text())
    declared = [*project["dependencies"], *(line for extra in extras.values() for line in extra)]
    for requirement in declared:
        name = _key(requirement)
        assert f"`{name}`" in explained, f"{name} has no reason in docs/decisions/dependencies.md"
        if requirement not in extras.get("s3", []):
            assert name in pinned, f"{name} is not pinned in requirements/"


def test_every_pin_carries_the_hashes_of_its_files() -> None:
    for path in requirement_files():
        blocks = re.split(r"^(?=[A-Za-z0-9])", path.read_text(), flags=re.MULTILINE)[1:]
        assert blocks
        for block in blocks:
            first, *rest = block.splitlines()
            assert rest and all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in rest), first
    makefile = (ROOT / "Makefile").read_text()
    installs = [line for line in makefile.splitlines() if "pip install" in line or "-r requirements" in line]
    assert installs and all("-r requirements" not in line or "$(LOCKED)" in line for line in installs)


def test_the_changelog_is_kept() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    text = (ROOT / "CHANGELOG.md").read_text()
    names = [match["name"] for match in SECTION.finditer(text)]
    assert names[:1] == ["Unreleased"]
    assert version in names or f"[{version}]" in text or version in text
    assert {line[4:] for line in text.splitlines() if line.startswith("### ")} <= KINDS


def test_project_text_names_no_foreign_ids() -> None:
    offences = []
    for path in project_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in TEXT and name not in MAY_NAME_IDS:
            text = COVERS.sub("", path.read_text(encoding="utf-8"))
            for number, line in enumerate(text.splitlines(), 1):
                if found := FOREIGN_ID.search(line):
                    offences.append(f"{path.relative_to(ROOT)}:{number}: {found.group()}")
    assert not offences, offences


def test_every_link_leads_somewhere() -> None:
    link = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)]*)?\)")
    offences = []
    for path in project_files():
        if path.suffix == ".md":
            for target, _ in link.findall(path.read_text(encoding="utf-8")):
                if not (path.parent / target).exists():
                    offences.append(f"{path.relative_to(ROOT)}: {target}")
    assert not offences, offences


def test_ci_runs_what_the_readme_says() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    script = ROOT / ".ci/run"
    assert "make test" in script.read_text()
    assert "make check" in script.read_text()
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"


@pytest.mark.parametrize("text", ["--index-url x", "a @ https://host/a.whl", "-f links", "git+ssh://x"])
def test_an_address_is_seen(text: str) -> None:
    assert ADDRESS.search(text)


@pytest.mark.parametrize("text", ["SCR-47", "(pitfall 28)", "see ledger A9", "fixes issue 12"])
def test_a_foreign_id_is_seen(text: str) -> None:
    assert FOREIGN_ID.search(text)


def _key(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _key_text(text: str) -> str:
    return text.lower().replace("_", "-")
