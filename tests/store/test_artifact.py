"""References to artifacts: what is one, and what only looks like one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from windlass.store.artifact import FolderArtifacts, fitted, ref_in, ref_of

REF = ref_of(b"a picture")


def test_a_reference_is_read_back() -> None:
    assert ref_in(REF.as_json()) == REF


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {}, {"$artifact": REF.sha256}, {"$artifact": {"sha256": REF.sha256}},
        {"$artifact": {"sha256": "../../../../etc/passwd", "size": 9}},
        {"$artifact": {"sha256": "/etc/passwd", "size": 9}},
        {"$artifact": {"sha256": REF.sha256 + "\n", "size": 9}},
        {"$artifact": {"sha256": REF.sha256.upper(), "size": 9}},
        {"$artifact": {"sha256": REF.sha256, "size": "9"}},
        {**REF.as_json(), "more": 1},
    ],
)  # fmt: skip
def test_what_is_no_reference_is_a_value(value: Any) -> None:
    assert ref_in(value) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"$artifact":1}', ' { "\\u0024artifact" : null } ', '{"$artifact":1,"$artifact":2}',
        '{"$artifac\\u0074":{"sha256":"","size":0}}',
    ],
)  # fmt: skip
async def test_an_output_that_looks_like_a_reference_is_stored_as_bytes(tmp_path: Path, text: str) -> None:
    artifacts = FolderArtifacts(tmp_path)
    ref = ref_in(msgspec.json.decode(await fitted(artifacts, text, 1000)))
    assert ref is not None
    assert await artifacts.get(ref) == text.encode()


@pytest.mark.parametrize(
    "text", ["1", '"$artifact"', '["$artifact"]', '{"a":{"$artifact":1}}', '{"$artifact":1,"a":1}', '"\\u0024"', "{}"]
)
async def test_any_other_small_output_stays_as_it_is(tmp_path: Path, text: str) -> None:
    assert await fitted(FolderArtifacts(tmp_path), text, 1000) == text


@pytest.mark.parametrize(("text", "is_stored"), [("x" * 998, False), ("x" * 999, True), ("é" * 600, True)])
async def test_an_output_is_measured_in_bytes(tmp_path: Path, text: str, is_stored: bool) -> None:
    made = await fitted(FolderArtifacts(tmp_path), f'"{text}"', 1000)
    assert (ref_in(msgspec.json.decode(made)) is not None) == is_stored
