"""Tools to test recipes: an engine inside the test, a clock that jumps, handlers that fail on purpose."""

from windlass.testing.clock import VirtualClock
from windlass.testing.failing import fail_always, fail_times, returning
from windlass.testing.harness import Harness, harness

__all__ = ["Harness", "VirtualClock", "fail_always", "fail_times", "harness", "returning"]
