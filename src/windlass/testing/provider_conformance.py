"""The tests that every adapter must pass, for pytest: derive a class, say which adapter it is, and run it.

```python
from windlass.testing.provider_conformance import ProviderConformance

class TestAcme(ProviderConformance):
    adapter = "acme_windlass:AcmeAdapter"       # or the name of your entry point
    protocol = "acme"                           # what the fake provider speaks, and the path it speaks it at
    speeches = {"acme": "acme_windlass.fake:AcmeSpeech"}
    model = "acme/painter"
    input = {"prompt": "a windlass"}
```

A `Speech` is your protocol as the fake provider answers it, usually a page of code: see the four in
`windlass.testing.fake_provider`. Taking work, keys, the journal, webhooks and every fault come with it.

What does not apply is skipped: a provider that does all within the call (`is_sync`) has nothing to poll or to cancel,
one that sends no webhooks (`has_webhooks`) is not asked about them.
"""

from __future__ import annotations

from windlass.testing.conformance.mishaps import MishapTests
from windlass.testing.conformance.webhooks import WebhookTests
from windlass.testing.conformance.work import WorkTests

__all__ = ["ProviderConformance"]


class ProviderConformance(WorkTests, MishapTests, WebhookTests):
    """Derive from it, and say which adapter it is: see `Stage` for all that can be said."""
