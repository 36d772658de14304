"""Every adapter that is shipped passes the suite that is shipped."""

from __future__ import annotations

from typing import Any, ClassVar

from windlass.testing.fake_provider import FakeProvider
from windlass.testing.provider_conformance import ProviderConformance


class TestHttp(ProviderConformance):
    adapter = "http"
    protocol = "generic"
    options: ClassVar = {
        "cancel": "DELETE /jobs/{id}",
        "find": "GET /jobs?key={key}",
        "list": "GET /jobs?since={since}",
    }


class TestHttpWithResult(ProviderConformance):
    adapter = "http"
    protocol = "generic"
    options: ClassVar = {"result": "GET /jobs/{id}/result", "fields": {"output": "nowhere"}}


class TestHttpAtOnce(ProviderConformance):
    adapter = "http"
    protocol = "generic"
    is_sync = True
    options: ClassVar = {"submit": "POST /now"}


class TestFal(ProviderConformance):
    adapter = "fal"
    protocol = "fal"
    model = "fal-ai/flux/dev"
    has_fal_keys = True

    def config(self, fake: FakeProvider, **more: Any) -> Any:
        return super().config(fake, **{"options": {"keys_url": f"{fake.url}/fal/.well-known/jwks.json"}, **more})


class TestFalWithKeys(ProviderConformance):
    adapter = "fal"
    protocol = "fal"
    model = "fal-ai/flux"
    options: ClassVar = {"honours_keys": True}
    webhook_profile = "standard"


class TestReplicate(ProviderConformance):
    adapter = "replicate"
    protocol = "replicate"
    model = "acme/painter"


class TestReplicateWithKeys(ProviderConformance):
    adapter = "replicate"
    protocol = "replicate"
    model = "acme/painter:" + "0123456789abcdef" * 4
    options: ClassVar = {"honours_keys": True}


class TestOpenAIChat(ProviderConformance):
    adapter = "openai"
    protocol = "openai"
    model = "gpt-4o"
    input: ClassVar = {"messages": [{"role": "user", "content": "What is a windlass?"}]}
    is_sync = True


class TestOpenAIBatch(ProviderConformance):
    adapter = "openai"
    protocol = "openai"
    model = "gpt-4o"
    input: ClassVar = {"requests": [{"messages": [{"role": "user", "content": str(no)}]} for no in range(3)]}

    async def receive_at(self, fake: FakeProvider, url: str) -> None:
        await fake.tell_batches_to(url)
