"""What the author of an extension uses; see also `windlass.extension.http` and `windlass.extension.command`."""

from windlass.extension.declaration import Extension, Metric, Page, Setting
from windlass.extension.later import __getattr__ as __getattr__

__all__ = ["Extension", "Metric", "Page", "Parts", "Setting", "parts"]
