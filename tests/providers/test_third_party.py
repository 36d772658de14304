"""A third party's adapter: found by its entry point, and held to the same suite."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from windlass.core.errors import BadSetting
from windlass.providers.registry import Registry
from windlass.testing.provider_conformance import ProviderConformance

HERE = Path(__file__).parent
ENTRY_POINTS = "[windlass.providers]\nacme = acme_windlass:AcmeAdapter\nbroken = acme_windlass:Nobody\n"
METADATA = "Metadata-Version: 2.1\nName: acme-windlass\nVersion: 1.0\n"


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package as pip would leave it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(HERE / "acme_windlass.py", folder / "acme_windlass.py")
    info = folder / "acme_windlass-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
        yield
        sys.modules.pop("acme_windlass", None)


class TestAcme(ProviderConformance):
    adapter = "acme"
    protocol = "acme"
    speeches: ClassVar = {"acme": "acme_windlass:AcmeSpeech"}
    webhook_profile = "github"


ACME = "providers: {paint: {adapter: %s, base_url: 'http://localhost:1', credential_env: KEY}}"


async def test_an_entry_point_is_found_by_its_name() -> None:
    registry = Registry.read(ACME % "acme", {"KEY": "k"})
    assert type(registry["paint"].adapter).__name__ == "AcmeAdapter"
    await registry.close()


async def test_a_class_is_found_by_its_path() -> None:
    registry = Registry.read(ACME % "'acme_windlass:AcmeAdapter'", {"KEY": "k"})
    assert type(registry["paint"].adapter).__name__ == "AcmeAdapter"
    await registry.close()


def test_an_entry_point_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"providers\.paint\.adapter: acme_windlass:Nobody cannot be imported"):
        Registry.read(ACME % "broken", {"KEY": "k"})


def test_a_name_that_nobody_has_lists_those_there_are() -> None:
    with pytest.raises(BadSetting, match="acme, broken, fal, http, openai, replicate"):
        Registry.read(ACME % "nobody", {"KEY": "k"})
