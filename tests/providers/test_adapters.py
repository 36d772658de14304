"""What each adapter makes of its provider's own words, beyond what all of them must do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from windlass.core.errors import BadSignature
from windlass.core.external import ProviderStatus, Said
from windlass.providers.adapter import ProviderAdapter, StartRequest
from windlass.providers.adapters.fal import FalAdapter, app_of
from windlass.providers.adapters.generic import HttpAdapter
from windlass.providers.adapters.openai import OpenAIAdapter
from windlass.providers.adapters.replicate import ReplicateAdapter
from windlass.providers.config import Hidden, ProviderConfig, WebhookConfig
from windlass.providers.errors import (
    BadAnswer,
    ContentRefused,
    InsufficientFunds,
    InvalidRequest,
    NotSupported,
    ProviderError,
)
from windlass.providers.price import Price
from windlass.testing.conformance.stage import ended, external_id
from windlass.testing.fake_provider import FakeProvider, Fault

VERSION = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeProvider]:
    fake = FakeProvider(tmp_path_factory.mktemp("fake") / "journal", is_durable=False)
    with asyncio.Runner() as runner:
        runner.run(fake.start())
        yield fake
        runner.run(fake.stop())


@pytest.fixture
async def fake(running: FakeProvider) -> FakeProvider:
    await running.reset()
    return running


def make(kind: type[ProviderAdapter], url: str = "http://127.0.0.1:9", **more: Any) -> Any:
    return kind(ProviderConfig("acme", "x", base_url=url, **more))


def start(model: str, input: Any, key: str = "wl-key", **more: Any) -> StartRequest:
    return StartRequest(key, model, input, **more)


def parsed(adapter: ProviderAdapter, body: Any, **query: str) -> Any:
    return adapter.parse_webhook({}, json.dumps(body).encode(), query)


# FAL


@pytest.mark.parametrize(
    ("model", "app"),
    [
        ("fal-ai/flux", "fal-ai/flux"),
        ("fal-ai/flux/dev/image-to-image", "fal-ai/flux"),
        ("workflows/me/comic/page", "workflows/me/comic"),
    ],
)
def test_the_app_of_a_model(model: str, app: str) -> None:
    assert app_of(model) == app


@pytest.mark.parametrize("model", ["", "flux", "workflows/me", "a/b#c"])
async def test_what_is_no_model_of_fal(model: str) -> None:
    with pytest.raises(InvalidRequest):
        await make(FalAdapter).start_job(start(model, {}))


@pytest.mark.parametrize(
    ("told", "status", "code", "is_retryable"),
    [
        ({"status": "OK", "payload": {"a": 1}}, "SUCCEEDED", None, True),
        ({"status": "ERROR", "payload": {"detail": [{"msg": "bad", "type": "value_error"}]}}, "FAILED", "bad", False),
        ({"status": "ERROR", "error": "Unexpected", "payload": None}, "FAILED", "Unexpected", True),
        (
            {"status": "ERROR", "payload": {"detail": "gone", "error_type": "runner_disconnected"}},
            "FAILED", "gone", True,
        ),
        (
            {"status": "ERROR", "payload": {"detail": "stopped", "error_type": "client_cancelled"}},
            "CANCELLED", "stopped", True,
        ),
        (
            {"status": "ERROR", "payload": {"detail": [{"msg": "no", "type": "content_policy_violation"}]}},
            "FAILED", "no", False,
        ),
    ],
)  # fmt: skip
def test_what_fal_tells(told: dict[str, Any], status: str, code: str | None, is_retryable: bool) -> None:
    news = parsed(make(FalAdapter), {"request_id": "r1", **told}, model="fal-ai/flux/dev", key="k")
    assert (news.external_id, news.key, news.said.status) == ("fal-ai/flux/dev#r1", "k", status)
    assert news.said.is_retryable is is_retryable
    assert (news.said.fault is None) if code is None else (news.said.fault.message == code)


def test_a_result_that_did_not_fit_is_to_be_fetched() -> None:
    told = {"request_id": "r1", "status": "OK", "payload": None, "payload_error": "not JSON"}
    news = parsed(make(FalAdapter), told, model="fal-ai/flux")
    assert news.needs_look and not news.said.status.is_terminal
    assert not parsed(make(FalAdapter), told).needs_look  # nobody knows where


async def test_fal_charges_by_call_second_and_unit(fake: FakeProvider) -> None:
    prices = {"fal-ai/flux/dev": Price(call=Decimal("0.01"), second=Decimal("0.1"))}
    adapter = make(FalAdapter, fake.base_url("fal"), prices=prices)
    said = await ended(adapter, await adapter.start_job(start("fal-ai/flux/dev", {})))
    assert said.cost is not None and (said.cost.amount, said.cost.seconds) == ("0.16", 1.5)
    await adapter.close()


async def test_fal_fails_for_good_or_for_now(fake: FakeProvider) -> None:
    adapter = make(FalAdapter, fake.base_url("fal"))
    for outcome, is_retryable, code in (
        ("failed", False, "provider_failed"),
        ("refused", False, "content_refused"),
        ("crashed", True, "provider_failed"),
    ):
        input = {"fake": {"outcome": outcome}}
        said = await ended(adapter, await adapter.start_job(start("fal-ai/flux", input, outcome)))
        assert said.status is ProviderStatus.FAILED and said.fault is not None
        assert (said.is_retryable, said.fault.code) == (is_retryable, code)
    await adapter.close()


async def test_keys_of_fal_that_cannot_be_had_let_nothing_in() -> None:
    webhook = WebhookConfig()
    adapter = make(FalAdapter, webhook=webhook, options={"keys_url": "http://127.0.0.1:9/keys"}, timeout_s=2.0)
    headers = {"x-fal-webhook-request-id": "r", "x-fal-webhook-timestamp": "1000", "x-fal-webhook-signature": "00" * 64}
    with pytest.raises(BadSignature, match="cannot be fetched"):
        await adapter.verify_webhook(headers, b"{}", 1000.0)
    for name, text in (("signature", "zz"), ("timestamp", "١٢٣"), ("timestamp", "9" * 20), ("request-id", "")):
        with pytest.raises(BadSignature):
            await adapter.verify_webhook({**headers, f"x-fal-webhook-{name}": text}, b"{}", 1000.0)
    await adapter.close()


async def test_no_webhooks_are_taken_unless_they_are_expected() -> None:
    for kind in (FalAdapter, ReplicateAdapter):
        with pytest.raises(BadSignature):
            await make(kind).verify_webhook({}, b"{}", 0.0)


# Replicate


@pytest.mark.parametrize(
    ("model", "path", "version"),
    [
        ("acme/painter", "/replicate/v1/models/acme/painter/predictions", ""),
        (f"acme/painter:{VERSION}", "/replicate/v1/predictions", VERSION),
        (VERSION, "/replicate/v1/predictions", VERSION),
        ("deployments/acme/mine", "/replicate/v1/deployments/acme/mine/predictions", ""),
    ],
)
async def test_where_a_prediction_is_created(fake: FakeProvider, model: str, path: str, version: str) -> None:
    adapter = make(ReplicateAdapter, fake.base_url("replicate"))
    await adapter.start_job(start(model, {"a": 1}, webhook_url="https://us.test/webhooks/r"))
    entry = fake.entries("accepted")[-1]
    assert (entry.extra.get("version") or "") == version
    assert entry.model == (version or model.removeprefix("deployments/"))
    assert entry.webhook == "https://us.test/webhooks/r?key=wl-key"
    await adapter.close()


@pytest.mark.parametrize("model", ["painter", "", "a/b/c", "/", "a/"])
async def test_what_is_no_model_of_replicate(model: str) -> None:
    with pytest.raises(InvalidRequest):
        await make(ReplicateAdapter).start_job(start(model, {}))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"status": "starting"}, Said(ProviderStatus.QUEUED)),
        ({"status": "processing", "output": ["a"]}, Said(ProviderStatus.RUNNING, preview='["a"]')),
        ({"status": "aborted"}, Said(ProviderStatus.CANCELLED)),
        ({"status": "pondering"}, Said(ProviderStatus.UNKNOWN, message="Replicate says 'pondering'")),
        ({}, Said(ProviderStatus.UNKNOWN, message="Replicate says 'None'")),
    ],
)
def test_what_replicate_tells(told: dict[str, Any], said: Said) -> None:
    assert parsed(make(ReplicateAdapter), {"id": "p1", **told}).said == said


def test_what_replicate_does_not_want_to_do_is_final() -> None:
    told = {"id": "p", "status": "failed", "error": "The input or output was flagged as sensitive. (E005)"}
    said = parsed(make(ReplicateAdapter), told).said
    assert not said.is_retryable and said.fault.code == "content_refused"


def test_replicate_charges_by_second_and_token() -> None:
    prices = {"acme/painter": Price(second=Decimal("0.001"), tokens_out=Decimal(8))}
    metrics = {"predict_time": 2.5, "input_token_count": 10, "output_token_count": 1000}
    told = {"id": "p", "status": "succeeded", "model": "acme/painter", "output": None, "metrics": metrics}
    cost = parsed(make(ReplicateAdapter, prices=prices), told).said.cost
    assert (cost.amount, cost.seconds, cost.tokens_in, cost.tokens_out) == ("0.0105", 2.5, 10, 1000)


async def test_a_list_of_many_pages_is_read_to_its_end(fake: FakeProvider) -> None:
    adapter = make(ReplicateAdapter, fake.base_url("replicate"))
    ids = {external_id(await adapter.start_job(start("a/b", {}, f"k{no}"))) for no in range(230)}
    listed = await adapter.list_jobs(datetime.now(UTC) - timedelta(hours=1))
    assert {one.external_id for one in listed} == ids and len(listed) == 230
    await adapter.close()


# OpenAI


@pytest.mark.covers("CIX-46")
async def test_openai_answers_at_once(fake: FakeProvider) -> None:
    prices = {"gpt-4o": Price(tokens_in=Decimal("2.5"), tokens_out=Decimal(10)), "dall-e": Price(item=Decimal("0.04"))}
    adapter = make(OpenAIAdapter, fake.base_url("openai"), prices=prices)
    chat = (await adapter.start_job(start("gpt-4o", {"messages": [{"role": "user", "content": "hi"}]}))).said
    assert "hi" in json.loads(chat.output)["text"]
    assert (chat.cost.amount, chat.cost.tokens_in, chat.cost.tokens_out) == ("0.00037", 12, 34)
    vectors = (await adapter.start_job(start("embed", {"input": ["a", "b"]}, "k2"))).said
    assert [len(vector) for vector in json.loads(vectors.output)["embeddings"]] == [8, 8]
    assert vectors.cost.tokens_in == 12
    images = (await adapter.start_job(start("dall-e-3", {"prompt": "x", "n": 2}, "k3"))).said
    assert len(json.loads(images.output)["images"]) == 2
    assert make(OpenAIAdapter).calculate_cost(
        "x", chat and __import__("windlass.providers.price").providers.price.Usage()
    )
    await adapter.close()


async def test_a_batch_comes_back_in_its_order_and_at_half_the_price(fake: FakeProvider) -> None:
    prices = {"gpt-4o": Price(tokens_in=Decimal("2.5"), tokens_out=Decimal(10))}
    adapter = make(OpenAIAdapter, fake.base_url("openai"), prices=prices)
    requests: list[dict[str, Any]] = [{"messages": [{"role": "user", "content": f"no {no}"}]} for no in range(12)]
    requests[5]["fails"] = True
    started = await adapter.start_job(start("gpt-4o", {"requests": requests}))
    said = await ended(adapter, started)
    output = json.loads(said.output or "")
    assert [one["custom_id"] for one in output["results"]] == [str(no) for no in range(12)]
    assert output["failed"] == 1 and output["results"][5]["status_code"] == 400
    assert "no 11" in output["results"][11]["body"]["choices"][0]["message"]["content"]
    assert said.cost is not None
    assert (Decimal(said.cost.amount), said.cost.tokens_in) == (Decimal("0.00037") * 11 / 2, 12 * 11)
    await adapter.close()


async def test_a_batch_that_fails_as_a_whole_is_not_right(fake: FakeProvider) -> None:
    adapter = make(OpenAIAdapter, fake.base_url("openai"))
    request = {"messages": [], "fake": {"outcome": "failed", "error": "line 1 is not right"}}
    said = await ended(adapter, await adapter.start_job(start("gpt-4o", {"requests": [request]})))
    assert not said.is_retryable and said.fault is not None and said.fault.message == "line 1 is not right"
    await adapter.close()


@pytest.mark.parametrize(
    "input",
    [
        "text",
        {},
        {"requests": []},
        {"requests": ["a"]},
        {"requests": [{"custom_id": "a"}, {"custom_id": "a"}]},
        {"endpoint": "song", "messages": []},
    ],
)
async def test_what_openai_is_not_asked(input: Any) -> None:
    with pytest.raises(InvalidRequest):
        await make(OpenAIAdapter).start_job(start("gpt-4o", input))


async def test_what_openai_refuses(fake: FakeProvider) -> None:
    adapter = make(OpenAIAdapter, fake.base_url("openai"))
    for outcome, kind in (("refused", ContentRefused), ("broke", InsufficientFunds), ("failed", InvalidRequest)):
        with pytest.raises(kind) as caught:
            await adapter.start_job(start("gpt-4o", {"messages": [], "fake": {"outcome": outcome}}, outcome))
        assert not caught.value.is_retryable
    await adapter.close()


def test_openai_tells_that_a_batch_has_ended_and_not_how() -> None:
    adapter = make(OpenAIAdapter)
    news = parsed(adapter, {"id": "evt_1", "type": "batch.completed", "data": {"id": "batch_1"}})
    assert (news.id, news.external_id, news.needs_look) == ("evt_1", "batch_1", True)
    assert not parsed(adapter, {"id": "evt_2", "type": "response.completed", "data": {"id": "r"}}).needs_look
    with pytest.raises(BadAnswer):
        parsed(adapter, {"id": "evt_3", "type": "batch.completed"})


async def test_a_service_without_batches_has_none(fake: FakeProvider) -> None:
    adapter = make(OpenAIAdapter, fake.base_url("generic"))
    assert await adapter.find_job("wl-key") is None
    assert await adapter.list_jobs(datetime.now(UTC)) == []
    await adapter.close()


# Any job API


async def test_names_and_words_are_configured(fake: FakeProvider) -> None:
    options = {
        "submit": "POST /jobs",
        "body": {"input": {"wrapped": "{input}", "ref": "{key}", "kept": 7}, "model": "{model}", "x": "{metadata}"},
        "fields": {"output": "output.echo.wrapped", "progress": "progress"},
        "statuses": {"running": "QUEUED"},
        "key_header": "",
    }
    adapter = make(HttpAdapter, fake.base_url("generic"), options=options)
    await fake.behave(seconds=None)
    id = external_id(await adapter.start_job(start("m", {"a": 1})))
    assert await adapter.get_job_status(id) == Said(ProviderStatus.QUEUED, progress_pct=50.0)
    await fake.finish()
    said = await adapter.get_job_status(id)
    assert json.loads(said.output) == {"a": 1}
    entry = fake.entries("accepted")[-1]
    assert entry.key == "" and entry.input == {"wrapped": {"a": 1}, "ref": "wl-key", "kept": 7}
    assert not adapter.can_cancel and not adapter.can_find and not adapter.can_list
    for asked in (adapter.cancel_job(id), adapter.find_job("k"), adapter.list_jobs(datetime.now(UTC))):
        with pytest.raises(NotSupported):
            await asked
    await adapter.close()


async def test_what_a_job_cost_is_what_it_says(fake: FakeProvider) -> None:
    prices = {"m": Price(second=Decimal("0.2"))}
    adapter = make(HttpAdapter, fake.base_url("generic"), prices=prices)
    said = await ended(adapter, await adapter.start_job(start("m", {})))
    assert said.cost is not None and (said.cost.amount, said.cost.seconds) == ("0.3", 1.5)
    told = {"id": 7, "status": "done", "output": 1, "cost": "0.123", "usage": {"tokens_in": 5}}
    news = parsed(adapter, told)
    assert (news.external_id, news.said.cost.amount, news.said.cost.tokens_in) == ("7", "0.123", 5)
    await adapter.close()


@pytest.mark.parametrize(
    ("auth", "header"), [("Bearer", "authorization"), ("X-Api-Key", "x-api-key"), ("", "authorization")]
)
def test_how_a_credential_is_sent(auth: str, header: str) -> None:
    adapter = make(HttpAdapter, credential=Hidden("c"), options={"auth": auth})
    sent = {name.lower(): text for name, text in adapter._auth().items()}
    assert sent == {header: f"{auth} c" if auth == "Bearer" else "c"}


async def test_a_failure_is_known_by_its_code() -> None:
    adapter = make(HttpAdapter)
    limited = parsed(adapter, {"id": "1", "status": "failed", "error": "RATE_LIMITED"}).said
    assert limited.fault.code == "rate_limited" and limited.is_retryable
    plain = parsed(adapter, {"id": "1", "status": "failed", "error": {"code": "E1", "message": "no"}}).said
    assert plain.fault.code == "provider_failed" and plain.fault.message == "no"


def test_what_a_provider_says_can_be_kept() -> None:
    adapter = make(HttpAdapter)
    for status in ("failed", "cancelled"):
        said = parsed(adapter, {"id": "1", "status": status, "error": "a\x00b\n" + "x" * 9999}).said
        assert said.fault.message.startswith("ab x") and len(said.fault.message) <= 500
    running = parsed(adapter, {"id": "1", "status": "running", "message": "a\x00" + "x" * 9999}).said
    assert running.message.startswith("ax") and len(running.message) <= 500
    assert ProviderError("\ud800\x00").message == "?"


async def test_more_at_once_than_there_are_connections_wait_their_turn(fake: FakeProvider) -> None:
    adapter = make(HttpAdapter, fake.base_url("generic"), timeout_s=20.0)
    asked = [adapter.start_job(start("m", {"no": no}, f"k{no}")) for no in range(200)]
    assert len({external_id(started) for started in await asyncio.gather(*asked)}) == 200
    await adapter.close()


async def test_an_output_that_is_kept_elsewhere_is_fetched(fake: FakeProvider) -> None:
    options = {"result": "GET /jobs/{id}/result", "fields": {"output": "nowhere"}}
    adapter = make(HttpAdapter, fake.base_url("generic"), options=options)
    await fake.behave(output={"picture": 1})
    id = external_id(await adapter.start_job(start("m", {})))
    assert json.loads((await adapter.get_job_status(id)).output) == {"picture": 1}
    news = parsed(adapter, {"id": id, "status": "done"})
    assert news.needs_look and not news.said.status.is_terminal
    await adapter.close()


async def test_a_service_that_lists_everything_finds_nothing_by_accident(fake: FakeProvider) -> None:
    adapter = make(HttpAdapter, fake.base_url("generic"), options={"find": "GET /jobs?ignored={key}"})
    await adapter.start_job(start("m", {}, "one"))
    two = external_id(await adapter.start_job(start("m", {}, "two")))
    assert await adapter.find_job("two") == two
    assert await adapter.find_job("three") is None
    await fake.fail(Fault("list", "shape"))
    await adapter.find_job("two")
    await adapter.close()
