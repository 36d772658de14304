"""A real server for streams: the product's hub and answers behind uvicorn, without keys, and clients on raw sockets.

The tests of keys, tickets and owners are in test_routes.py, against the whole service.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from windlass.api.connection import Connection
from windlass.api.connections import Connections, HttpLimits
from windlass.api.hub import Hub
from windlass.api.sse import HEARTBEAT_S, SEND_MAX_S, EventStream
from windlass.api.topics import parse_topics
from windlass.api.wire.console import FRAMES as CONSOLE_FRAMES
from windlass.core.caller import USER_SCOPES, CallerContext, Scope
from windlass.core.errors import WindlassError
from windlass.store.database import Database

WITHIN_S = 60.0


@dataclass
class Frame:
    event: str = ""
    id: str | None = None
    data: Any = None


@dataclass
class Client:
    """A client that speaks HTTP by hand. `frames` has the frames with data; comments are counted."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    heartbeats: int = 0
    is_over: bool = False
    # Of the console's stream: every frame is what its model in the OpenAPI document says, no less and no more.
    is_console: bool = False
    _text: bytes = b""
    _raw: bytes = b""

    @property
    def ids(self) -> list[str]:
        return [frame.id for frame in self.frames if frame.event in ("job", "step") and frame.id is not None]

    @property
    def last_id(self) -> str | None:
        return next((frame.id for frame in reversed(self.frames) if frame.id is not None), None)

    def named(self, event: str) -> list[Frame]:
        return [frame for frame in self.frames if frame.event == event]

    async def read(self) -> bool:
        """Take in one more piece; False at the end."""
        size = await self.reader.readline()
        if not size.strip() or int(size, 16) == 0:
            self.is_over = True
            return False
        self._hear((await self.reader.readexactly(int(size, 16) + 2))[:-2])
        return True

    def feed(self, body: bytes) -> None:
        """Take in bytes as they come, wherever they begin and end."""
        self._raw += body
        while b"\r\n" in self._raw:
            size, _, rest = self._raw.partition(b"\r\n")
            if len(rest) < int(size, 16) + 2:
                return
            self._hear(rest[: int(size, 16)])
            self._raw = rest[int(size, 16) + 2 :]

    def _hear(self, text: bytes) -> None:
        *whole, self._text = (self._text + text).split(b"\n\n")
        for one in whole:
            self._take(one.decode())

    async def until(self, is_enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not is_enough():
                assert await self.read(), "the stream is over"

    async def to_the_end(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            while await self.read():
                pass

    def hang_up(self) -> None:
        self.writer.transport.abort()

    def _take(self, text: str) -> None:
        frame = Frame()
        for line in text.split("\n"):
            name, _, value = line.partition(": ")
            match name:
                case "event":
                    frame.event = value
                case "id":
                    frame.id = value
                case "data":
                    frame.data = msgspec.json.decode(value)
                case "":
                    assert line == ": heartbeat"
                    self.heartbeats += 1
        if frame.event:
            if self.is_console:
                told = CONSOLE_FRAMES[frame.event].model_validate_json(msgspec.json.encode(frame.data))
                assert told.model_dump(mode="json") == frame.data
            self.frames.append(frame)


async def connect(
    port: int, path: str, *, after: str | None = None, receive_bytes: int | None = None, **headers: str
) -> Client:
    """Ask for a stream; returns with its first frame, or with the refusal."""
    made = socket.socket()
    if receive_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    # What is not asked for is not read either, if its buffer is small.
    reader, writer = await asyncio.open_connection(sock=made, limit=receive_bytes or 2**20)
    given = {"Host": "test", **({} if after is None else {"Last-Event-ID": after}), **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in given.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    client = Client(reader, writer, is_console=path.startswith("/console/stream"))
    async with asyncio.timeout(WITHIN_S):
        client.status = int((await reader.readline()).split()[1])
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(": ")
            client.headers[name.lower()] = value
        if client.status == 200:
            while not client.frames:
                await client.read()
    return client


@dataclass
class Stage:
    hub: Hub
    port: int
    clients: list[Client] = field(default_factory=list)

    async def feed(self, after: str | None = None, *, caller: str = "ann", **more: Any) -> Client:
        return self._kept(await connect(self.port, "/jobs/stream", after=after, X_Caller=caller, **more))

    async def job(self, job_id: UUID, after: int = 0, *, caller: str = "ann", **more: Any) -> Client:
        path = f"/jobs/{job_id}/stream"
        return self._kept(await connect(self.port, path, after=str(after), X_Caller=caller, **more))

    async def console(
        self, topics: str, after: str | None = None, *, caller: str = "ann", is_admin: bool = False, **more: Any
    ) -> Client:
        role = {"X_Admin": "yes"} if is_admin else {}
        path = f"/console/stream?topics={quote(topics)}"
        return self._kept(await connect(self.port, path, after=after, X_Caller=caller, **role, **more))

    def _kept(self, client: Client) -> Client:
        self.clients.append(client)
        return client

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not is_so():
                await asyncio.sleep(0.01)

    async def looks(self, count: int) -> None:
        """Wait until the hub has looked so many times."""
        for _ in range(count):
            before = self.hub.alive_s
            await self.until(lambda: self.hub.alive_s != before)  # noqa: B023


@asynccontextmanager
async def staged(
    db: Database,
    *,
    heartbeat_s: float = HEARTBEAT_S,
    send_max_s: float = SEND_MAX_S,
    send_bytes: int | None = None,
    **hub: Any,
) -> AsyncIterator[Stage]:
    """Serve streams on a free port while the block lasts."""
    made = Hub(db, **{"epoch": 1, "streams_max": 2_000, "per_caller_max": 2_000, **hub})
    await made.start()

    async def follow(request: Request) -> Response:
        caller, after = request.headers["x-caller"], request.headers.get("last-event-id")
        frames: Any
        try:
            if request.url.path == "/console/stream":
                scopes = frozenset({Scope.ADMIN}) if "x-admin" in request.headers else USER_SCOPES
                topics = parse_topics(after or request.query_params["topics"])
                frames = await made.follow_topics(CallerContext(caller, scopes=scopes), topics)
            elif "job_id" in request.path_params:
                frames = await made.follow_job(UUID(request.path_params["job_id"]), caller, int(after or 0))
            else:
                frames = await made.follow_caller(caller, after, of=request.query_params.get("caller"))
        except WindlassError as error:
            return JSONResponse({"code": error.code}, status_code=429 if error.code == "too_many_streams" else 400)
        return EventStream(frames, heartbeat_s=heartbeat_s, send_max_s=send_max_s)

    paths = ("/jobs/stream", "/jobs/{job_id}/stream", "/console/stream")
    app = Starlette(routes=[Route(path, follow) for path in paths])
    bound = socket.socket(proto=socket.IPPROTO_TCP)
    if send_bytes is not None:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
    bound.bind(("127.0.0.1", 0))
    http: Any = partial(Connection, connections=Connections(HttpLimits(), 4_000, 4_000, frozenset()))
    config = uvicorn.Config(app, http=http, ws="none", lifespan="off", loop="none", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve(sockets=[bound]))
    stage = Stage(made, bound.getsockname()[1])
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield stage
    finally:
        for client in stage.clients:
            client.hang_up()
        await made.stop()
        server.should_exit = True
        await serving
        bound.close()
