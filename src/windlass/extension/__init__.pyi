"""What the author of an extension uses; see also `windlass.extension.http` and `windlass.extension.command`."""

from windlass.extension.declaration import Extension, Metric, Page, Setting
from windlass.extension.facade import Parts, parts

__all__ = ["Extension", "Metric", "Page", "Parts", "Setting", "parts"]
