"""The guide's functions, run as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.server import Server
from tests.docs.blocks import ROOT
from tests.docs.page import Page


async def test_the_guide_works_as_it_is_printed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_SERVER", server.url)
    monkeypatch.setenv("WINDLASS_API_KEY", server.key)
    shown = Page(ROOT / "docs/guides/client.md", tmp_path)
    shown.run()
    guide = shown.module
    greeting = guide.say_hello()
    assert "Ada" in greeting
    assert len(await guide.say_hello_to_all(["Ada", "Grace"])) == 2
    assert guide.kinds_of_events()[-1] == "job.completed"
    assert guide.hello_or_reason("hello") == greeting
    assert guide.hello_or_reason("no_such_recipe").startswith("not_found: ")
    assert guide.status_of_hello()[1] == "COMPLETED"
    assert (guide.nightly("monday"), guide.nightly("monday")) == (True, False)
