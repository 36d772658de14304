"""One request to a provider: its limits, what its statuses mean, and what is never told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import pytest

from windlass.providers.config import Hidden, ProviderConfig
from windlass.providers.errors import (
    AFTER_S_MAX,
    MESSAGE_MAX,
    AnswerTooLarge,
    BadAnswer,
    InvalidRequest,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    failure_of,
)
from windlass.providers.http import (
    CONNECTIONS_MAX,
    Answer,
    Line,
    error_of,
    message_in,
    path_parts,
    retry_after_s,
    told_of,
)
from windlass.providers.pool import is_proxied
from windlass.providers.price import FREE, Price, Usage, amount_of, count_of, decimal_of, price_of
from windlass.providers.words import codes_in, failed, meaning_of, percent_of, status_of
from windlass.testing.fake_provider import FakeProvider, Fault
from windlass.testing.fake_provider.wire import Reply, Request, reply, serve

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CREDENTIAL = "sk-1234567890"


def error(status: int, body: bytes = b"", **headers: str) -> ProviderError:
    answer = Answer(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)
    return error_of(answer, "acme", told=told_of(answer), now=NOW)


@pytest.mark.covers("SCR-78")
@pytest.mark.parametrize(
    ("status", "body", "code", "is_retryable", "is_ambiguous"),
    [
        (400, b"", "invalid_request", False, False),
        (401, b"", "auth_failed", False, False),
        (402, b"", "insufficient_funds", False, False),
        (403, b"", "auth_failed", False, False),
        (404, b"", "provider_not_found", False, False),
        (408, b"", "provider_timeout", True, True),
        (409, b"", "conflict", True, True),
        (410, b"", "provider_not_found", False, False),
        (418, b"", "invalid_request", False, False),
        (422, b"", "invalid_request", False, False),
        (429, b"", "rate_limited", True, False),
        (500, b"", "provider_down", True, True),
        (504, b"", "provider_timeout", True, True),
        (599, b"", "provider_down", True, True),
        (302, b"", "invalid_request", False, False),
        (403, b'{"code": "RATE_LIMITED"}', "rate_limited", True, False),
        (400, b'{"error": {"code": "rate_limit_exceeded"}}', "rate_limited", True, False),
        (429, b'{"error": {"code": "insufficient_quota"}}', "insufficient_funds", False, False),
        (400, b'{"error": {"code": "content_policy_violation"}}', "content_refused", False, False),
        (422, b'{"detail": [{"type": "content_policy_violation", "msg": "no"}]}', "content_refused", False, False),
        (500, b'{"error": {"code": "RATE_LIMITED"}}', "provider_down", True, True),
    ],
)
def test_what_a_status_means(status: int, body: bytes, code: str, is_retryable: bool, is_ambiguous: bool) -> None:
    found = error(status, body)
    assert (found.code, found.is_retryable, found.is_ambiguous) == (code, is_retryable, is_ambiguous)
    assert found.status == status
    failure = failure_of(found)
    assert (failure.fault.code, failure.is_retryable) == (code, is_retryable)
    assert failure.is_counted is (code != "rate_limited")
    assert found.counts_against_breaker is (code in ("provider_down", "provider_timeout"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "1e99"}, 86400.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_when_to_come_again(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


def test_a_wait_has_an_end() -> None:
    assert RateLimited("busy", after_s=1e9).after_s == AFTER_S_MAX


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"error": {"message": "no paint"}}', "no paint"),
        (b'{"detail": [{"msg": "no\\n  paint"}]}', "no paint"),
        (b'{"error": "no paint"}', "no paint"),
        (b'{"errors": ["no paint"]}', "no paint"),
        (b'{"title": "Oh", "detail": "no paint"}', "no paint"),
        (b"<html>no paint</html>", "<html>no paint</html>"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"{}", ""),
        (b"[]", ""),
        (b"null", ""),
        (b'{"error": {"error": {"error": {"error": {"error": "deep"}}}}}', ""),
    ],
)
def test_what_a_refusal_says(body: bytes, told: str) -> None:
    assert told_of(Answer(400, {}, body)) == told


def test_a_message_is_not_endless() -> None:
    assert len(error(400, b'{"error": "' + b"x" * 10_000 + b'"}').message) < MESSAGE_MAX
    assert len(ProviderError("x" * 10_000).message) == MESSAGE_MAX


@pytest.mark.parametrize("text", ["", "..", "a/../b", "a//b", "/", "a/./b"])
def test_a_path_leads_nowhere_else(text: str) -> None:
    with pytest.raises(InvalidRequest):
        path_parts(text)


def test_a_path_is_quoted() -> None:
    assert path_parts("/a b/c?d#e/") == "a%20b/c%3Fd%23e"


# Requests


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeProvider]:
    fake = FakeProvider(tmp_path_factory.mktemp("fake") / "journal", credential=CREDENTIAL, is_durable=False)
    with asyncio.Runner() as runner:
        runner.run(fake.start())
        yield fake
        runner.run(fake.stop())


@pytest.fixture
async def fake(running: FakeProvider) -> FakeProvider:
    await running.reset()
    return running


def line(url: str, **more: Any) -> Line:
    credential = Hidden(CREDENTIAL)
    config = ProviderConfig("acme", "http", base_url=url, credential=credential, timeout_s=more.pop("timeout_s", 30.0))
    return Line(config, headers={"authorization": f"Bearer {CREDENTIAL}"}, **more)


async def test_an_answer_that_is_too_large_is_not_read_to_its_end(fake: FakeProvider) -> None:
    await fake.fail(Fault("any", "huge", size=200_000))
    acme = line(fake.base_url("generic"), answer_max_bytes=100_000)
    with pytest.raises(AnswerTooLarge, match="over 100,000 bytes") as caught:
        await acme.take("GET", "jobs")
    assert not caught.value.is_retryable and caught.value.is_ambiguous
    await acme.close()


async def test_a_request_has_its_time_as_a_whole() -> None:
    """A server that sends a byte now and then is as late as a silent server."""

    is_over = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        try:
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        except OSError:
            writer.close()
            is_over.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    acme = line(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout_s=0.3)
    with pytest.raises(ProviderTimeout):
        await acme.take("GET", "x")
    await acme.close()
    await asyncio.wait_for(is_over.wait(), 60)
    server.close()


async def test_a_late_answer_is_a_timeout(fake: FakeProvider) -> None:
    await fake.fail(Fault("any", "delay", seconds=20.0, times=1))
    acme = line(fake.base_url("generic"), timeout_s=0.2)
    with pytest.raises(ProviderTimeout, match=r"within 0\.2 s"):
        await acme.take("GET", "jobs")
    await acme.close()


async def test_connections_are_used_again_and_broken_ones_are_not(fake: FakeProvider) -> None:
    seen: list[int] = []

    async def answer(request: Request) -> Reply | None:
        seen.append(len(open_ones))
        if request.target.endswith("lose"):
            return None
        if request.target.endswith("late"):
            await asyncio.sleep(30)
        return reply({})

    server, open_ones = await serve(answer, "127.0.0.1", 0)
    acme = line(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for path in ("a", "b", "lose", "c"):
        try:
            await acme.take("GET", path)
        except ProviderError as error:
            assert path == "lose" and error.is_ambiguous
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(acme.take("GET", "late"), 0.2)
    assert seen[:3] == [1, 1, 1]  # one connection for all, until it broke
    asked = [acme.take("GET", "x") for _ in range(100)]
    assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
    assert max(seen) <= CONNECTIONS_MAX + 1  # one is still late
    await acme.close()
    server.close()
    for connection in list(open_ones):
        connection.hang_up()


def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert not is_proxied("https", "queue.fal.run")
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    assert is_proxied("https", "queue.fal.run") and not is_proxied("http", "queue.fal.run")
    monkeypatch.setenv("no_proxy", "fal.run")
    assert not is_proxied("https", "queue.fal.run")


async def test_a_redirect_is_not_followed() -> None:
    seen: list[Request] = []

    async def away(request: Request) -> Reply:
        seen.append(request)
        return reply({}, 302, location="http://127.0.0.1:9/elsewhere")

    server, _ = await serve(away, "127.0.0.1", 0)
    acme = line(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    with pytest.raises(InvalidRequest, match="points elsewhere"):
        await acme.take("GET", "x")
    assert len(seen) == 1
    await acme.close()
    server.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:10/x", "https://127.0.0.1:9/x", "http://other:9/x", "http://[/x"])
async def test_the_credential_goes_nowhere_else(url: str) -> None:
    acme = line("http://127.0.0.1:9/base")
    with pytest.raises(BadAnswer):
        await acme.ask("GET", url)
    assert acme.url("http://127.0.0.1:9/other") == "http://127.0.0.1:9/other"
    assert CREDENTIAL not in repr(acme)
    await acme.close()


async def test_what_is_sent_is_what_was_asked(fake: FakeProvider) -> None:
    acme = line(fake.base_url("generic"))
    answer = await acme.take("POST", "/jobs", json={"input": {"text": "ä"}}, headers={"idempotency-key": "k"})
    assert answer.status == 202 and answer.table()["output"]["echo"] == {"text": "ä"}
    listed = await acme.take("GET", "jobs", query={"key": "k & more"})
    assert listed.json() == {"jobs": []}
    await acme.close()


def test_an_answer_that_is_no_object_says_so() -> None:
    with pytest.raises(BadAnswer, match="a list where an object was expected"):
        Answer(200, {}, b"[1]").table()
    with pytest.raises(BadAnswer, match=r"\(200, text/html\) is not JSON"):
        Answer(200, {"content-type": "text/html"}, b"<p>").json()
    with pytest.raises(BadAnswer):
        Answer(200, {}, b"[" * 100_000).json()


# Words and prices


@pytest.mark.parametrize(
    ("word", "status"),
    [("Done", "SUCCEEDED"), (" in_queue ", "QUEUED"), ("canceled", "CANCELLED"), ("?", "UNKNOWN"), (7, "UNKNOWN")],
)
def test_words_for_where_work_stands(word: object, status: str) -> None:
    assert status_of(word) == status


def test_codes_are_found_wherever_they_are() -> None:
    assert meaning_of(codes_in({"error": {"type": "x", "code": "Rate-Limited"}})) == "rate_limited"
    assert meaning_of(codes_in([{"detail": [{"type": "content_policy_violation"}]}])) == "content_refused"
    assert meaning_of(codes_in({"error": "RATE_LIMITED"})) == "rate_limited"
    assert meaning_of(codes_in({"code": 7})) is None
    assert codes_in(None) == []


def test_what_we_know_of_a_code_decides_whether_it_is_tried_again() -> None:
    assert not failed("x", codes=["content_filter"]).is_retryable
    limited = failed("x", codes=["RATE_LIMITED"], is_retryable=False)
    assert limited.is_retryable and limited.fault is not None and limited.fault.code == "rate_limited"
    assert failed("").fault is not None


@pytest.mark.parametrize(("value", "percent"), [(12, 12.0), (101, 100.0), (-1, 0.0), (True, None), ("5", None)])
def test_a_share_of_the_work(value: object, percent: float | None) -> None:
    assert percent_of(value) == percent
    assert percent_of(float("nan")) is None


def test_money_is_exact() -> None:
    price = Price(call=Decimal("0.1"), second=Decimal("0.0001"), item=Decimal("0.04"), tokens_in=Decimal("2.5"))
    usage = Usage(calls=3, seconds=Decimal("1.1"), items=Decimal(2), tokens_in=1_000, tokens_out=99)
    assert amount_of(price, usage) == Decimal("0.38261")
    assert amount_of(FREE, usage) == 0
    assert sum((amount_of(Price(call=Decimal("0.1")), Usage()) for _ in range(10)), Decimal(0)) == Decimal(1)


def test_a_price_is_found_by_the_name_or_its_beginning() -> None:
    prices = {"gpt-4o": Price(call=Decimal(1)), "gpt-4o-mini": Price(call=Decimal(2)), "*": Price(call=Decimal(3))}
    assert price_of(prices, "gpt-4o-2024-08-06").call == 1
    assert price_of(prices, "gpt-4o-mini-2024").call == 2
    assert price_of(prices, "claude").call == 3
    assert price_of({}, "x") is FREE


@pytest.mark.parametrize("value", [None, True, "x", "-1", -0.5, float("inf"), [], "NaN"])
def test_what_is_no_amount(value: object) -> None:
    assert decimal_of(value) is None


def test_what_is_an_amount() -> None:
    assert decimal_of(0.1) == Decimal("0.1") and decimal_of("1e-3") == Decimal("0.001") and decimal_of(2) == 2
    assert (count_of(3), count_of(-3), count_of(True), count_of("3"), count_of(None)) == (3, 0, 0, 0, 0)


def test_the_sentence_in_an_error() -> None:
    assert message_in({"error": {"msg": 7}}) == "7"
    assert message_in({"error": {}}) == ""
