"""Drives a flow without any I/O: a list of what the server does, a clock that only pauses move, a fixed spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from windlass.client.exchange import Answer, Ask, Flow, Give, Got, Lost, More, Pause, Sources


def ok(body: Any = None, status: int = 200, **headers: str) -> Answer:
    content = b"" if body is None else msgspec.json.encode(body)
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def problem(status: int, code: str, detail: str = "no", hint: str = "do this", **headers: str) -> Answer:
    return ok({"code": code, "detail": detail, "hint": hint, "status": status}, status, **headers)


STREAM = Answer(200, {"content-type": "text/event-stream; charset=utf-8"})


def frame(event: str, seq: int | str | None = None, data: Any = None) -> bytes:
    lines = [f"event: {event}", *([f"id: {seq}"] if seq is not None else [])]
    return ("\n".join([*lines, f"data: {msgspec.json.encode(data or {}).decode()}"]) + "\n\n").encode()


def happened(seq: int, kind: str = "step.running") -> bytes:
    return frame("job" if kind.startswith("job") else "step", seq, {"seq": seq, "type": kind, "status": "PROCESSING"})


@dataclass
class Script:
    """What the server does, in order; a float is silence of so many seconds, which ends in a lost connection."""

    does: list[Got | float]
    now_s: float = 1000.0
    asks: list[Ask] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    keys: int = 0

    def sources(self) -> Sources:
        return Sources(lambda: self.now_s, lambda: 0.5, self._new_key)

    def _new_key(self) -> str:
        self.keys += 1
        return f"made-{self.keys}"

    def play(self, flow: Flow[Any]) -> Any:
        got: Got = None
        while True:
            try:
                wish = flow.send(got)
            except StopIteration as end:
                return end.value
            match wish:
                case Pause(seconds):
                    self.pauses.append(seconds)
                    self.now_s += seconds
                    got = None
                case Give(value):
                    self.given.append(value)
                    got = None
                case Ask() | More():
                    if isinstance(wish, Ask):
                        self.asks.append(wish)
                    does = self.does.pop(0)
                    if isinstance(does, float):
                        limit_s = self.asks[-1].timeout_s or 30.0
                        self.now_s += min(does, limit_s)
                        does = Lost("silence") if does >= limit_s else self.does.pop(0)  # type: ignore[assignment]
                    got = does  # type: ignore[assignment]

    @property
    def paths(self) -> list[str]:
        return [ask.path for ask in self.asks]


def sent(asks: Sequence[Ask], header: str) -> list[str | None]:
    return [ask.headers.get(header) for ask in asks]
