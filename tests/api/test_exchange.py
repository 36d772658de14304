"""Answers as they are written: one write, headers that cannot end early, and pieces that are pushed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from windlass.api.exchange import Exchange
from windlass.core.errors import Broken


class Written(asyncio.Transport):
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


def exchange(method: str = "GET", *, keep_alive: bool = True) -> tuple[Exchange, Written]:
    transport, log = Written(), logging.getLogger("test")
    made = Exchange(
        {"method": method}, transport, FlowControl(transport), log, log, False, [(b"date", b"now")],  # type: ignore[arg-type,typeddict-item]
        asyncio.Event(), False, keep_alive, lambda: None,
    )  # fmt: skip
    return made, transport


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def piece(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def test_head_and_body_are_one_write() -> None:
    made, transport = exchange()
    await made.send(start(200, (b"content-length", b"2")))
    assert transport.writes == []
    await made.send(piece(b"ok"))
    assert transport.writes == [b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 2\r\n\r\nok"]
    assert made.response_complete
    assert not transport.is_closed


async def test_an_answer_without_a_length_is_sent_in_chunks() -> None:
    made, transport = exchange()
    await made.send(start())
    await made.send(piece(b"", more=True))
    await made.send(piece(b"one", more=True))
    await made.send(piece(b"two"))
    assert transport.writes == [
        b"HTTP/1.1 200 OK\r\ndate: now\r\ntransfer-encoding: chunked\r\n\r\n",
        b"3\r\none\r\n",
        b"3\r\ntwo\r\n0\r\n\r\n",
    ]


async def test_an_answer_to_head_has_no_body() -> None:
    made, transport = exchange("HEAD")
    await made.send(start(200, (b"content-length", b"2")))
    await made.send(piece(b"ok"))
    assert transport.writes == [b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 2\r\n\r\n"]


@pytest.mark.parametrize("keep_alive", [True, False])
async def test_an_answer_may_end_its_connection(keep_alive: bool) -> None:
    made, transport = exchange(keep_alive=keep_alive)
    said = [(b"connection", b"Close")] if keep_alive else []
    await made.send(start(204, *said))
    await made.send(piece(b""))
    assert b"\r\nconnection: " in transport.writes[0]
    assert transport.is_closed


@pytest.mark.parametrize("evil", [b"a\r\nset-cookie: x", b"a\nb", b"a\rb", b"a\x00", b"\x7f"])
async def test_a_header_cannot_end_early(evil: bytes) -> None:
    for header in ((b"location", evil), (evil, b"x")):
        made, transport = exchange()
        with pytest.raises(Broken):
            await made.send(start(200, (b"content-length", b"0"), header))
        assert transport.writes == []


@pytest.mark.parametrize("bodies", [[b"too long"], [b"x"], [b"x", b""]])
async def test_a_body_that_is_not_as_long_as_was_said_is_a_fault(bodies: list[bytes]) -> None:
    made, _ = exchange()
    await made.send(start(200, (b"content-length", b"2")))
    with pytest.raises(Broken):
        for place, body in enumerate(bodies):
            await made.send(piece(body, more=place + 1 < len(bodies)))


async def test_messages_out_of_order_are_a_fault() -> None:
    made, _ = exchange()
    with pytest.raises(Broken):
        await made.send(piece(b"first"))
    await made.send(start(200, (b"content-length", b"0")))
    await made.send(piece(b""))
    with pytest.raises(Broken):
        await made.send(piece(b"again"))


async def test_a_piece_is_pushed_only_while_the_client_is_ready() -> None:
    made, transport = exchange()
    assert not made.push(b"before the head")
    await made.send(start())
    assert not made.push(b"before the head is written")
    await made.send(piece(b"", more=True))
    assert made.push(b"now")
    made.flow.pause_writing()
    assert not made.push(b"not taken")
    made.flow.resume_writing()
    made.disconnected = True
    assert not made.push(b"gone")
    assert transport.writes[1:] == [b"3\r\nnow\r\n"]
