"""The providers of this process: their configurations, each with its adapter.

A configuration names its adapter in one of three ways: the name of a bundled adapter (openai, fal, replicate, http),
`package.module:Class`, or the name of an entry point of an installed package in the group `windlass.providers`:

```toml
[project.entry-points."windlass.providers"]
acme = "acme_windlass:AcmeAdapter"
```
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from windlass.core.errors import BadSetting, NotFound
from windlass.providers.adapter import ProviderAdapter
from windlass.providers.config import ProviderConfig, read_config

ENTRY_POINTS = "windlass.providers"
BUILT_IN: Mapping[str, str] = {
    "openai": "windlass.providers.adapters.openai:OpenAIAdapter",
    "fal": "windlass.providers.adapters.fal:FalAdapter",
    "replicate": "windlass.providers.adapters.replicate:ReplicateAdapter",
    "http": "windlass.providers.adapters.generic:HttpAdapter",
}


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: its configuration and its adapter."""

    config: ProviderConfig
    adapter: ProviderAdapter

    @property
    def name(self) -> str:
        """The provider's name in recipes."""
        return self.config.name


class Registry:
    """Providers by name. Close it when the process ends."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = dict(providers)

    @classmethod
    def load(cls, path: str | Path, environ: Mapping[str, str], *, needs_secrets: bool = True) -> Registry:
        """Load the providers of a file. BadSetting says what is wrong with it."""
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise BadSetting(f"{path} cannot be read: {error.strerror}") from None
        return cls.read(text, environ, needs_secrets=needs_secrets)

    @classmethod
    def read(cls, text: str | bytes, environ: Mapping[str, str], *, needs_secrets: bool = True) -> Registry:
        """Load the providers of a text in the format of the file."""
        return cls.of(*read_config(text, environ, needs_secrets=needs_secrets).values())

    @classmethod
    def of(cls, *configs: ProviderConfig) -> Registry:
        """Create the providers of these configurations."""
        return cls({config.name: Provider(config, adapter_class(config)(config)) for config in configs})

    def __getitem__(self, name: str) -> Provider:
        found = self._providers.get(name)
        if found is None:
            known = ", ".join(sorted(self._providers)) or "none"
            raise NotFound(f"there is no provider {name!r}", remedy=f"Configured: {known}")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._providers

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._providers.values())

    def __len__(self) -> int:
        return len(self._providers)

    async def close(self) -> None:
        """Close all connections."""
        for provider in self._providers.values():
            await provider.adapter.close()


def adapter_class(config: ProviderConfig) -> type[ProviderAdapter]:
    """Return the adapter class of a configuration. Raises BadSetting if there is none, or if it is not an adapter."""
    place = f"providers.{config.name}.adapter"
    target = config.adapter if ":" in config.adapter else BUILT_IN.get(config.adapter)
    if target is None:
        points = entry_points(group=ENTRY_POINTS)
        if config.adapter not in points.names:
            known = ", ".join(sorted({*BUILT_IN, *points.names}))
            raise BadSetting(
                f"{place}: there is no adapter {config.adapter!r}",
                remedy=f"Known: {known}; or write package.module:Class",
            )
        target = points[config.adapter].value
    return _class_at(target, place)


def _class_at(target: str, place: str) -> type[ProviderAdapter]:
    module, _, name = target.partition(":")
    try:
        found: Any = importlib.import_module(module.strip())
        for part in name.strip().split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadSetting(f"{place}: {target} cannot be imported: {error}") from error
    if not inspect.isclass(found) or not issubclass(found, ProviderAdapter):
        raise BadSetting(
            f"{place}: {target} is not a ProviderAdapter", remedy="Derive it from windlass.providers.adapter"
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise BadSetting(f"{place}: {target} does not have: {missing}")
    return found
