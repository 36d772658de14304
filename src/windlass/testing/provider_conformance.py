"""The tests that every adapter must pass, for pytest: derive a class that names the adapter, and run it.

```python
from windlass.testing.provider_conformance import ProviderConformance

class TestAcme(ProviderConformance):
    adapter = "acme_windlass:AcmeAdapter"       # or the name of your entry point
    protocol = "acme"                           # the protocol of the fake provider, and its path
    speeches = {"acme": "acme_windlass.fake:AcmeSpeech"}
    model = "acme/painter"
    input = {"prompt": "a windlass"}
```

A `Speech` implements your protocol in the fake provider, usually in a page of code; `windlass.testing.fake_provider`
has four examples. The fake provider itself handles work, keys, the journal, webhooks and every fault.

Tests that do not apply are skipped. A provider that finishes all work within the call (`is_sync`) has nothing to poll
or to cancel. A provider without webhooks (`has_webhooks`) skips their tests.
"""

from __future__ import annotations

from windlass.testing.conformance.mishaps import MishapTests
from windlass.testing.conformance.webhooks import WebhookTests
from windlass.testing.conformance.work import WorkTests

__all__ = ["ProviderConformance"]


class ProviderConformance(WorkTests, MishapTests, WebhookTests):
    """Derive a class from it that names the adapter; `Stage` lists all attributes."""
