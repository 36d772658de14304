"""What a handler returned or raised, as an outcome."""

from __future__ import annotations

import datetime
import enum
import uuid
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import asyncpg
import msgspec
import pytest

from windlass.core.errors import BadInput, DatabaseUnavailable, Permanent, Transient
from windlass.core.outcome import Cancel, Failure, Parked, Snooze, Success
from windlass.worker.fault import failure_of
from windlass.worker.output import outcome_of


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: Any
    y: Any = None


class Struct(msgspec.Struct):
    value: Any


class Model:
    """Looks like a pydantic model."""

    def model_dump(self, mode: str) -> dict[str, str]:
        return {"mode": mode}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({"a": [1, 2.5, "x", True, None]}, '{"a":[1,2.5,"x",true,null]}'),
        (Point(1, Struct(2)), '{"x":1,"y":{"value":2}}'),
        ((1, 2), "[1,2]"),
        ({1: "one"}, '{"1":"one"}'),
        (Colour.RED, '"red"'),
        (datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC), '"2024-05-01T00:00:00Z"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), '"1.10"'),
        (Model(), '{"mode":"json"}'),
    ],
)
def test_a_value_becomes_json(value: Any, text: str) -> None:
    assert outcome_of(value) == Success(text)


@pytest.mark.parametrize(
    ("value", "place", "kind"),
    [
        (object(), "output is object", "object"),
        ({"a": [0, {"b": print}]}, "output.a[1].b is builtin_function_or_method", ""),
        (Point(1, Point(object())), "output.y.x is object", ""),
        (Struct([1, {2j}]), "output.value[1][0] is complex", ""),
        ({"a": {"b": [1.0, float("nan")]}}, "output.a.b[1] is not a finite number", ""),
        (Point(float("inf")), "output.x is not a finite number", ""),
        ("\ud800", "output is str", ""),
        ({"a": {object(): 1}}, "output.a is dict", ""),
    ],
)
def test_what_json_cannot_hold_is_named_with_its_place(value: Any, place: str, kind: str) -> None:
    outcome = outcome_of(value)
    assert isinstance(outcome, Failure)
    assert not outcome.is_retryable
    assert outcome.fault.code == "bad_output"
    assert outcome.fault.message.startswith(place)
    assert kind in outcome.fault.message


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    outcome = outcome_of(loop)
    assert isinstance(outcome, Failure)
    assert "holds itself" in outcome.fault.message


def test_a_coroutine_is_no_output() -> None:
    async def handler() -> int:
        return 1

    outcome = outcome_of(handler())
    assert isinstance(outcome, Failure)
    assert "async def" in outcome.fault.message


@pytest.mark.parametrize("said", [Snooze(0), Snooze(5.5), Parked("x"), Parked("x", 60), Cancel("why")])
def test_words_of_the_law_are_outcomes_themselves(said: Any) -> None:
    assert outcome_of(said) is said


@pytest.mark.parametrize("said", [Snooze(-1), Snooze(float("nan")), Snooze(1e12), Parked("x", -1), Snooze("x")])  # type: ignore[arg-type]
def test_a_wait_that_is_no_time_is_refused(said: Any) -> None:
    outcome = outcome_of(said)
    assert isinstance(outcome, Failure)
    assert outcome.fault.code == "bad_output"


class HttpError(Exception):
    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"status {status}")
        self.response = SimpleNamespace(status_code=status, headers=headers or {})


class ApiError(Exception):
    def __init__(self, status: int) -> None:
        self.status_code = status


OperationalError = type("OperationalError", (Exception,), {"__module__": "sqlalchemy.exc"})
Unrelated = type("OperationalError", (Exception,), {"__module__": "shop.till"})


@pytest.mark.parametrize(
    ("error", "code", "is_retryable", "after_s"),
    [
        (Permanent("gone"), "permanent", False, None),
        (Transient("busy"), "transient", True, None),
        (Transient("busy", after_s=7), "transient", True, 7.0),
        (Transient("busy", after_s=float("nan")), "transient", True, None),
        (HttpError(400), "http_400", False, None),
        (HttpError(404), "http_404", False, None),
        (HttpError(408), "http_408", True, None),
        (HttpError(425), "http_425", True, None),
        (HttpError(429, {"Retry-After": "12"}), "http_429", True, 12.0),
        (HttpError(429, {"retry-after": "junk"}), "http_429", True, None),
        (HttpError(429, {"Retry-After": "999999"}), "http_429", True, 3600.0),
        (
            HttpError(
                503,
                {"Retry-After": "Wed, 01 May 2024 00:01:00 GMT", "Date": "Wed, 01 May 2024 00:00:00 GMT"},
            ),
            "http_503",
            True,
            60.0,
        ),
        (ApiError(422), "http_422", False, None),
        (ApiError(500), "http_500", True, None),
        (TimeoutError(), "timeout", True, None),
        (ConnectionResetError("reset"), "connection", True, None),
        (asyncpg.ConnectionDoesNotExistError("closed"), "database_lost", True, None),
        (asyncpg.InterfaceError("closed"), "database_lost", True, None),
        (DatabaseUnavailable("away"), "database_lost", True, None),
        (OperationalError("away"), "database_lost", True, None),
        (Unrelated("till"), "exception", True, None),
        (ImportError("no module"), "program", False, None),
        (BadInput("no"), "bad_input", False, None),
        (MemoryError(), "out_of_memory", True, None),
        (KeyError("x"), "exception", True, None),
        (SystemExit(1), "exception", True, None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_exception_says_whether_another_attempt_may_help(
    error: BaseException, code: str, is_retryable: bool, after_s: float | None
) -> None:
    failure = failure_of(error)
    assert (failure.fault.code, failure.is_retryable, failure.after_s) == (code, is_retryable, after_s)
    assert failure.fault.message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit(3), "the handler raised SystemExit(3)"),
        (ValueError("half \ud800"), "half \\ud800"),
        (ValueError("zero \x00"), "zero \\0"),
    ],
)
def test_a_message_can_be_read_and_stored_whatever_it_holds(error: BaseException, message: str) -> None:
    assert failure_of(error).fault.message == message


def test_the_detail_is_the_end_of_the_traceback() -> None:
    def deep(count: int) -> None:
        if count == 0:
            raise ValueError("at the\x00 bottom")
        deep(count - 1)

    with pytest.raises(ValueError, match="bottom") as raised:
        deep(20)
    fault = failure_of(raised.value).fault
    assert fault.kind == "ValueError"
    assert fault.message == "at the\\0 bottom"
    assert 'raise ValueError("at the' in fault.detail
    assert fault.detail.count("in deep") <= 5


def test_the_detail_of_a_chain_tells_each_link_the_first_cause_first() -> None:
    def look_up() -> None:
        try:
            raise KeyError("page")
        except KeyError:
            raise ValueError("no such page")  # noqa: B904

    with pytest.raises(RuntimeError) as raised:
        try:
            look_up()
        except ValueError as error:
            raise RuntimeError("cannot draw") from error
    detail = failure_of(raised.value).fault.detail
    words = [line for line in detail.splitlines() if line and not line.startswith("  ")]
    assert words == [
        "KeyError: 'page'",
        "During handling of the above exception, another exception occurred:",
        "ValueError: no such page",
        "The above exception was the direct cause of the following exception:",
        "RuntimeError: cannot draw",
    ]


def test_a_chain_that_was_cut_or_bites_its_own_tail_ends() -> None:
    with pytest.raises(ValueError, match="shown") as raised:
        try:
            raise KeyError("hidden")
        except KeyError:
            raise ValueError("shown") from None
    assert "hidden" not in failure_of(raised.value).fault.detail.replace('raise KeyError("hidden")', "")
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert failure_of(one).fault.detail.count("ValueError") == 2
