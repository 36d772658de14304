"""A provider to test against: a real process that speaks four protocols, and fails on request."""

from windlass.testing.fake_provider.faults import Fault
from windlass.testing.fake_provider.journal import Entry, read_journal
from windlass.testing.fake_provider.process import FakeProvider

__all__ = ["Entry", "FakeProvider", "Fault", "read_journal"]
