"""The README keeps its shape: three sentences, a light picture, twenty lines that run, a table without empty cells."""

from __future__ import annotations

import re
import struct

from tests.docs.blocks import ROOT, blocks_of

README = ROOT / "README.md"
PICTURE = "docs/images/console.png"
PICTURE_BYTES_MAX = 300_000
PEERS = ["Windlass", "Temporal", "DBOS", "Hatchet", "Prefect", "Celery"]


def test_three_sentences_say_what_it_is() -> None:
    first = README.read_text(encoding="utf-8").split("\n\n")[1]
    assert len(re.findall(r"\.(?:\s|$)", first)) == 3


def test_the_picture_is_a_light_one() -> None:
    """`make screenshot` takes it again."""
    assert f"]({PICTURE})" in README.read_text(encoding="utf-8")
    picture = (ROOT / PICTURE).read_bytes()
    assert len(picture) <= PICTURE_BYTES_MAX
    width, height = struct.unpack(">II", picture[16:24])
    assert picture.startswith(b"\x89PNG") and width >= 1_200 and height >= 600


def test_the_code_has_twenty_lines_and_is_run() -> None:
    (code,) = [block for block in blocks_of(README) if block.language == "python"]
    assert code.file_name is not None
    assert 10 <= len([line for line in code.text.splitlines() if line.strip()]) <= 20
    # tests/docs/test_blocks.py runs it.
    assert [block for block in blocks_of(README) if "run" in block.marks and code.file_name in block.text]


def test_the_comparison_is_read_without_a_legend() -> None:
    rows = [_cells(line) for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    head, *body = rows
    assert head == ["", *PEERS]
    assert len(body) >= 10
    # A cell is words or a number: no marks, no empty place, no sentence.
    assert [cell for row in body for cell in row if not re.match(r"[\w`]", cell) or len(cell) > 60] == []
    assert [row[0] for row in body if len(row) != len(head)] == []


def test_figures_name_their_versions_and_dates() -> None:
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert len(re.findall(r"20\d\d-\d\d-\d\d", text)) >= 2
    for name in ("temporalio", "prefect", "dbos", "celery"):
        assert re.search(rf"{name} \d+\.\d+\.\d+", text), name
    assert "bench:begin" not in README.read_text(encoding="utf-8")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
