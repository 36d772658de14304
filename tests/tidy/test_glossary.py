"""The glossary has every module of the core and every public class, and it names nothing that does not exist."""

from __future__ import annotations

import inspect
import re

import windlass
from tests.tidy.sources import ROOT, SRC, modules, room

PAGE = ROOT / "docs" / "reference" / "glossary.md"
ROW = re.compile(r"^\| \*\*(?P<word>[^*]+)\*\* \| (?P<meaning>.+) \| (?P<names>[^|]+) \|$", re.MULTILINE)


def rows() -> list[re.Match[str]]:
    """The entries of the glossary."""
    return list(ROW.finditer(PAGE.read_text(encoding="utf-8")))


def names() -> set[str]:
    """The modules and classes in the last column of the glossary."""
    return {name for row in rows() for name in re.findall(r"`([^`]+)`", row["names"])}


def test_every_module_of_the_core_is_in_the_glossary() -> None:
    wanted = {f"core/{module.path.name}" for module in room("core") if module.path.name != "__init__.py"}
    assert sorted(wanted - names()) == []


def test_every_public_class_is_in_the_glossary() -> None:
    wanted = {name for name in windlass.__all__ if inspect.isclass(getattr(windlass, name))}
    assert len(wanted) > 10
    assert sorted(wanted - names()) == []


def test_every_name_in_the_glossary_exists() -> None:
    classes = {match for module in modules("src") for match in re.findall(r"^class (\w+)", module.text, re.MULTILINE)}
    unknown = {
        name for name in names() if name not in classes and not ((SRC / name).exists() or (ROOT / name).exists())
    }
    assert sorted(unknown) == []


def test_every_entry_is_one_sentence_and_every_word_has_one_entry() -> None:
    found = rows()
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| **")]
    assert len(found) == len(lines)
    assert [row["word"] for row in found if not re.fullmatch(r"[^.]*(?:\.\w[^.]*)*\.", row["meaning"])] == []
    words = [row["word"].lower() for row in found]
    assert sorted({word for word in words if words.count(word) > 1}) == []
