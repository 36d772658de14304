"""The names for authors of extensions; `windlass.extension.http` and `windlass.extension.command` have more."""

from windlass.extension.declaration import Extension, Metric, Page, Setting
from windlass.extension.facade import Parts, parts

__all__ = ["Extension", "Metric", "Page", "Parts", "Setting", "parts"]
