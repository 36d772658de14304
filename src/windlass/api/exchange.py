"""One request and its response on a connection: uvicorn's cycle, with a response in one write.

uvicorn writes a response's head and body separately, which costs two system calls and wakes the client twice. It also
searches each header twice for characters that would end it. Here the head waits for the first piece of the body, and
all headers are checked at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from windlass.core.errors import Broken

# Characters that a header may not contain, because they would end the header or the head. A tab is allowed.
_CONTROL = bytes(code for code in (*range(32), 127) if code != 9)
_LINE = b"\r\n"
_BODILESS = (204, 304)


class Exchange(RequestResponseCycle):
    """A request that is being answered."""

    # The head of the response, until the first piece of its body is available.
    _head = b""

    async def send(self, message: Any) -> None:
        """Take a piece of the response, as an ASGI message."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started and message["type"] == "http.response.start":
            self.response_started = True
            self.waiting_for_100_continue = False
            self._head = self._made_head(message["status"], message.get("headers", ()))
        elif self.response_started and not self.response_complete and message["type"] == "http.response.body":
            self._write(message.get("body", b""), message.get("more_body", False))
        else:
            raise Broken(f"the message {message['type']!r} does not come next in an answer")

    def push(self, body: bytes) -> bool:
        """Write a piece of a started response at once; return False if the client is not ready for it."""
        if self.disconnected or self.response_complete or self.flow.write_paused:
            return False
        if not self.response_started or self._head:
            return False
        self._write(body, True)
        return True

    def _made_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        lines = []
        for name, value in (*self.default_headers, *headers):
            lines.append(name + b": " + value)
            # ASGI requires names in lower case.
            if name == b"content-length" and self.chunked_encoding is None:
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive = False
        if not self.keep_alive and b"connection: close" not in lines:
            lines.append(b"connection: close")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in _BODILESS:
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked")
        head = _LINE.join(lines)
        # The only control characters may be the line ends that were just written.
        if len(head.translate(None, _CONTROL)) != len(head) - 2 * max(0, len(lines) - 1):
            raise Broken("a header of an answer has a character that none may have")
        return STATUS_LINE[status] + head + (b"\r\n\r\n" if lines else _LINE)

    def _write(self, body: bytes, has_more: bool) -> None:
        head, self._head = self._head, b""
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            body = b""
        elif self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = chunk if has_more else chunk + b"0\r\n\r\n"
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (self.expected_content_length and not has_more):
                raise Broken("an answer's body is not as long as its head says")
        if head or body:
            self.transport.write(head + body if head else body)
        if not has_more:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()
