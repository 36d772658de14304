"""One request, to receivers of every kind."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpcore
import pytest

from tests.outbound.receiver import Receiver
from windlass.core.errors import BadUrl, Unavailable
from windlass.outbound import dial, send
from windlass.outbound.send import Sender

# No answer is late on a slow machine; receivers that would never end their answer are given up soon.
PATIENCE_S = 60.0
SOON_S = 0.3


@pytest.fixture
def sender() -> Sender:
    return Sender(is_loopback_allowed=True, within_s=PATIENCE_S)


async def test_a_request_is_sent_as_it_is_given(receiver: Receiver, sender: Sender) -> None:
    sent = await sender.post(receiver.url("ok?x=%20y&z"), b'{"a":1}', {"webhook-id": "m1"})
    assert (sent.status, sent.fault, sent.retry_after_s) == (204, None, None)
    [seen] = receiver.seen()
    assert (seen["path"], seen["body"]) == ("/ok?x=%20y&z", '{"a":1}')
    assert seen["headers"] == {
        "host": f"127.0.0.1:{receiver.port}",
        "connection": "close",
        "content-type": "application/json",
        "content-length": "7",
        "webhook-id": "m1",
    }


@pytest.mark.parametrize(
    ("path", "status", "fault"),
    [
        ("status/200", 200, None),
        ("status/500", 500, None),
        ("redirect", 302, None),
        ("big", 200, None),
        ("half-body", 200, None),
        ("close", None, "bad_answer"),
        ("half", None, "bad_answer"),
        ("endless-head", None, "bad_answer"),
    ],
)
async def test_whatever_a_receiver_does_is_an_answer(
    receiver: Receiver, sender: Sender, path: str, status: int | None, fault: str | None
) -> None:
    sent = await sender.post(receiver.url(path), b"{}", {})
    assert (sent.status, sent.fault) == (status, fault)
    assert len(receiver.seen()) == 1


@pytest.mark.parametrize(
    ("path", "outcomes"), [("drip", {(200, None), (None, "timeout")}), ("hang", {(None, "timeout")})]
)
async def test_a_receiver_that_does_not_end_its_answer_is_given_up(
    receiver: Receiver, path: str, outcomes: set[tuple[int | None, str | None]]
) -> None:
    sent = await Sender(is_loopback_allowed=True, within_s=SOON_S).post(receiver.url(path), b"{}", {})
    assert (sent.status, sent.fault) in outcomes


async def test_of_a_long_answer_only_the_beginning_is_read() -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1024
            yield b"x" * 1024

    await send._throw_away(httpcore.Response(200, content=endless()), within_s=60)
    assert taken == send.ANSWER_MAX_BYTES + 1024


async def test_a_receiver_may_ask_for_time(receiver: Receiver, sender: Sender) -> None:
    assert (await sender.post(receiver.url("status/503"), b"{}", {})).retry_after_s == 7.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"0", 0.0), (b"120", 120.0), (b"", None), (b"-1", None), (b"1e9", None), (b"9" * 10, None), (b"nan", None),
     (b"Wed, 21 Oct 2026 07:28:00 GMT", None)],
)  # fmt: skip
def test_only_seconds_are_read_of_what_it_asks(value: bytes, seconds: float | None) -> None:
    assert send._retry_after_s([(b"X", b"1"), (b"Retry-After", value)]) == seconds


def test_nothing_is_asked_without_the_header() -> None:
    assert send._retry_after_s([(b"X", b"1")]) is None


async def test_nobody_there_is_an_answer(sender: Sender) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        sent = await sender.post(f"http://127.0.0.1:{taken.getsockname()[1]}/", b"{}", {})
    assert (sent.status, sent.fault) == (None, "not_connected")


async def test_a_receiver_that_does_not_accept_is_given_up(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        monkeypatch.setattr(send, "CONNECT_WITHIN_S", 0.2)
        sent = await sender.post(f"http://127.0.0.1:{full.getsockname()[1]}/", b"{}", {})
        for one in waiting:
            one.close()
    assert (sent.status, sent.fault) == (None, "timeout")
    assert sent.seconds < PATIENCE_S, "the limit of the connect, not of the request"


async def test_the_next_address_is_tried_when_one_does_not_answer(receiver: Receiver) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["::1", "127.0.0.1"]

    sender = Sender(is_loopback_allowed=True, resolve=resolve)
    sent = await sender.post(f"http://two.example:{receiver.port}/ok", b"{}", {})
    assert sent.status == 204
    [seen] = receiver.seen()
    assert seen["headers"]["host"] == f"two.example:{receiver.port}"


async def test_the_environments_proxy_is_not_used(
    receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert (await sender.post(receiver.url("ok"), b"{}", {})).status == 204


async def test_a_fault_of_ours_is_an_answer_too(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise RuntimeError("planted")

    sent = await Sender(resolve=resolve).post("http://example.org/secret-path", b"{}", {})
    assert (sent.status, sent.fault) == (None, "broken")
    assert "planted" in caplog.text
    assert "secret-path" not in caplog.text


async def test_a_cancelled_request_stays_cancelled(receiver: Receiver, sender: Sender) -> None:
    task = asyncio.create_task(sender.post(receiver.url("hang"), b"{}", {}))
    while not receiver.seen():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_tls_is_spoken_to_the_name_and_its_certificate_is_checked(tmp_path: Path) -> None:
    certificate = _certificate(tmp_path, "hook.example")
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate)
    names: list[str | None] = []
    server_side.sni_callback = lambda _, name, __: names.append(name)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=server_side)
    port = server.sockets[0].getsockname()[1]
    trusting = ssl.create_default_context(cafile=str(certificate))
    good = Sender(is_loopback_allowed=True, resolve=resolve, ssl_context=trusting)
    assert (await good.post(f"https://hook.example:{port}/", b"{}", {})).status == 204
    # The name is what TLS is asked for, although an address was dialled.
    assert names == ["hook.example"]
    assert (await good.post(f"https://other.example:{port}/", b"{}", {})).fault == "bad_certificate"
    stranger = Sender(is_loopback_allowed=True, resolve=resolve)
    assert (await stranger.post(f"https://hook.example:{port}/", b"{}", {})).fault == "bad_certificate"
    server.close()


def _certificate(folder: Path, name: str) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "pair.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


async def test_a_name_that_is_not_resolved_in_time_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.sleep(3600)
        return []

    monkeypatch.setattr(dial, "RESOLVE_WITHIN_S", 0.05)
    sender = Sender(resolve=resolve)
    with pytest.raises(Unavailable):
        await sender.check("https://slow.example/")
    assert (await sender.post("https://slow.example/", b"{}", {})).fault == "not_resolved"


async def test_a_resolver_that_cannot_answer_now_may_be_asked_again() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with pytest.raises(Unavailable):
        await Sender(resolve=resolve).check("https://slow.example/")


async def test_the_machines_own_resolver_knows_its_own_name(sender: Sender) -> None:
    await sender.check("http://localhost:8420/hook")
    with pytest.raises(BadUrl):
        await Sender().check("http://localhost/hook")
