"""Makes the scanners of an installation: the built-in ones, and the plug-ins that are installed."""

from __future__ import annotations

from windlass.policy.scan.finding import LIMITS, ScanLimits
from windlass.policy.scan.names import entry_points, installed_names
from windlass.policy.scan.plugin import PLUGIN_LIMITS, PluginLimits, PluginScanner
from windlass.policy.scan.scanners import Scanners


def installed_scanners(
    limits: ScanLimits = LIMITS, *, plugin_limits: PluginLimits = PLUGIN_LIMITS, with_hyperscan: bool | None = None
) -> Scanners:
    """Make the scanners of this installation. A plug-in's process starts with its first text."""
    installed_names()
    plugins = [PluginScanner(point.name, point.value, plugin_limits) for point in entry_points()]
    return Scanners(plugins, limits=limits, with_hyperscan=with_hyperscan)
