"""Every decision of the client without a socket: what is sent again, with which key, and what an answer becomes."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from tests.client.script import STREAM, Script, frame, happened, ok, problem, sent
from windlass.client import again, flows, following
from windlass.client.exchange import Answer, Lost
from windlass.client.order import joined
from windlass.client.views import Event
from windlass.core import errors
from windlass.core.states import JobState
from windlass.pure.job_failed import JobCancelled, JobFailed

ID = UUID("0199aaaa-0000-7000-8000-000000000001")
ANSWER_LOST = Lost("server closed the connection")
NOT_REACHED = Lost("connection refused", is_sent=False)


def job(status: str = "PROCESSING", **more: Any) -> dict[str, Any]:
    return {"job_id": str(ID), "recipe": "film", "status": status, "created_at": "2026-01-31T12:00:00.000Z", **more}


def test_a_submission_is_sent_again_with_the_same_key_of_its_own() -> None:
    script = Script([ANSWER_LOST, NOT_REACHED, ok(status=502), problem(503, "database_unavailable"),
                     ok(job(is_new=False), 202)])  # fmt: skip
    made = script.play(flows.submit(script.sources(), "film", {}, {"topic": "sea"}, None))
    assert made["job_id"] == str(ID) and not made["is_new"]
    assert sent(script.asks, "idempotency-key") == ["made-1"] * 5
    assert {ask.body for ask in script.asks} == {b'{"recipe":"film","inputs":{"topic":"sea"}}'}
    assert script.pauses == [0.5, 1.0, 2.0, 4.0]


def test_a_database_that_is_away_is_asked_for_twice_as_the_server_has_tried_by_itself() -> None:
    script = Script([problem(503, "database_unavailable")] * 2)
    with pytest.raises(errors.DatabaseUnavailable):
        script.play(flows.submit(script.sources(), "film", {}, {}, "k"))
    assert len(script.asks) == 2


def test_an_option_that_is_nothing_is_sent_and_what_is_usual_is_not() -> None:
    script = Script([ok(job(is_new=True), 202)])
    order = {"ttl": 0, "budget": Decimal(0), "priority": 0, "labels": {}, "deadline": None}
    script.play(flows.submit(script.sources(), "film", order, {}, "k"))
    sent_body = msgspec.json.decode(script.asks[0].body or b"")
    assert sent_body == {"recipe": "film", "inputs": {}, "ttl": 0, "budget": "0"}


def test_a_key_that_is_no_ascii_goes_into_the_body() -> None:
    script = Script([ok(job(is_new=True), 202)])
    script.play(flows.submit(script.sources(), "film", {}, {}, "schlüssel"))
    assert sent(script.asks, "idempotency-key") == [None]
    assert msgspec.json.decode(script.asks[0].body or b"")["idempotency_key"] == "schlüssel"


def test_the_server_is_given_up_after_five_tries_with_what_to_do() -> None:
    script = Script([NOT_REACHED] * 5)
    with pytest.raises(errors.ServerUnavailable, match="connection refused") as caught:
        script.play(flows.submit(script.sources(), "film", {}, {}, "k"))
    assert "windlass serve api" in str(caught.value.remedy) and len(script.asks) == 5


@pytest.mark.parametrize(("answer", "tries"), [(ANSWER_LOST, 1), (NOT_REACHED, 2), (ok(status=503), 1)])
def test_what_must_not_be_done_twice_is_sent_again_only_if_it_cannot_have_arrived(answer: Any, tries: int) -> None:
    from windlass.client.asking import send

    script = Script([answer, ok({"id": "x"})])
    with contextlib.suppress(errors.ServerUnavailable):
        script.play(send(script.sources(), "POST", "/keys", {}, is_safe=False))
    assert len(script.asks) == tries


def test_a_limit_is_waited_for_as_long_as_it_says_if_that_is_not_long() -> None:
    script = Script([problem(429, "rate_limited", retry_after="7"), ok(job())])
    assert script.play(flows.job(script.sources(), ID)).status is JobState.PROCESSING
    assert script.pauses == [7.0]
    long = Script([problem(429, "rate_limited", retry_after="3600")])
    with pytest.raises(errors.Limited) as caught:
        long.play(flows.job(long.sources(), ID))
    assert caught.value.retry_after_s == 3600 and type(caught.value) is errors.Limited and long.pauses == []


def _codes() -> list[tuple[str, type]]:
    def below(kind: type) -> list[type]:
        return [kind, *(deeper for one in kind.__subclasses__() for deeper in below(one))]

    kinds = [kind for kind in below(errors.WindlassError) if kind.__module__ == errors.__name__]
    return [(kind.code, kind) for kind in kinds]


@pytest.mark.parametrize(("code", "kind"), _codes())
def test_a_problem_becomes_the_error_of_its_code_with_its_hint(code: str, kind: type) -> None:
    script = Script([problem(418, code, "what it is", "what to do")])
    with pytest.raises(errors.WindlassError) as caught:
        script.play(flows.job(script.sources(), ID))
    assert type(caught.value) is kind and caught.value.message == "what it is"
    assert ("WINDLASS_API_KEY" if kind is errors.Unauthenticated else "what to do") in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(403, "something_new"), errors.Forbidden),
        (Answer(404, {}, b"<html>not here</html>"), errors.NotFound),
        (Answer(418, {}, b""), errors.Refused),
        (Answer(500, {}, b"[1]"), errors.Broken),
        (Answer(301, {"location": "https://elsewhere"}), errors.BadSetting),
        (Answer(200, {}, b"<html>a login page</html>"), errors.Broken),
        (ok({"job_id": 1}), errors.Broken),
        (ok(job("A_STATE_OF_TOMORROW")), errors.Broken),
    ],
)
def test_whatever_else_comes_is_an_error_too(answer: Answer, kind: type) -> None:
    script = Script([answer])
    with pytest.raises(errors.WindlassError) as caught:
        script.play(flows.job(script.sources(), ID))
    assert type(caught.value) is kind


def test_bad_inputs_say_where() -> None:
    body = {"code": "bad_input", "detail": "no", "errors": [{"pointer": "/inputs/topic", "message": "is no text"}]}
    script = Script([ok(body, 422)])
    with pytest.raises(errors.BadInput) as caught:
        script.play(flows.submit(script.sources(), "film", {}, {}, None))
    assert caught.value.errors == (("/inputs/topic", "is no text"),)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, object()}])
def test_what_json_cannot_say_is_refused_before_it_is_sent(value: Any) -> None:
    script = Script([])
    with pytest.raises(errors.BadInput):
        script.play(flows.submit(script.sources(), "film", {}, {"x": value}, None))
    assert script.asks == []


def test_many_jobs_go_in_as_few_requests_as_fit_and_each_has_a_key() -> None:
    def accept(count: int) -> Answer:
        return ok({"items": [{"job_id": str(ID), "is_new": True}] * count, "accepted": count, "refused": 0}, 202)

    script = Script([accept(1000), ANSWER_LOST, accept(200)])
    order = {
        "deadline": timedelta(minutes=2),
        "ttl": "1h",
        "priority": 0,
        "labels": {},
        "webhook": ("https://x", "whsec_"),
        "correlation_id": "r-1",
    }
    made = script.play(flows.submit_many(script.sources(), "film", order, [{"n": n} for n in range(1200)], None))
    bodies = [msgspec.json.decode(ask.body or b"")["jobs"] for ask in script.asks]
    assert len(made) == 1200 and [len(body) for body in bodies] == [1000, 200, 200]
    assert bodies[1] == bodies[2] and bodies[0][0]["deadline"] == 120 and bodies[0][0]["ttl"] == "1h"
    assert bodies[0][0]["webhook"] == {"url": "https://x", "secret": "whsec_"} and "priority" not in bodies[0][0]
    assert sent(script.asks, "x-request-id") == ["r-1"] * 3 and "correlation_id" not in bodies[0][0]
    assert len({one["idempotency_key"] for body in bodies for one in body}) == 1200
    large = Script([accept(8), accept(2)])
    large.play(flows.submit_many(large.sources(), "film", order, [{"x": "y" * 100_000}] * 10, None))
    assert all(len(ask.body or b"") < 1_000_000 for ask in large.asks) and len(large.asks) == 2


def test_a_conflict_in_a_batch_is_raised_after_the_others_are_made() -> None:
    items = [{"job_id": str(ID), "is_new": True}, {"code": "conflict", "detail": "other body", "status": 409}]
    script = Script([ok({"items": items}, 202)])
    with pytest.raises(errors.Conflict, match="other body"):
        script.play(flows.submit_many(script.sources(), "film", {}, [{}, {}], ["a", "b"]))
    with pytest.raises(errors.BadInput, match="2 inputs have 1 keys"):
        script.play(flows.submit_many(script.sources(), "film", {}, [{}, {}], ["a"]))


def test_lists_are_read_to_their_end_also_when_a_page_is_empty() -> None:
    pages = [ok({"items": [job()], "next": "a"}), ok({"items": [], "next": "b"}), ok({"items": [job()], "next": None})]
    script = Script(pages)
    script.play(flows.jobs(script.sources(), flows.filter_query(status=["FAILED"], labels={"a": "b"}, deleted=True)))
    assert len(script.given) == 2
    assert [dict(ask.query).get("cursor") for ask in script.asks] == [None, "a", "b"]
    assert script.asks[0].query[:3] == (("status", "FAILED"), ("label", "a=b"), ("deleted", "true"))
    with pytest.raises(errors.BadInput, match="time zone"):
        flows.filter_query(since=datetime(2026, 1, 1))


def test_a_delete_whose_answer_was_lost_is_done_when_the_job_is_gone() -> None:
    script = Script([ANSWER_LOST, problem(404, "not_found")])
    assert script.play(flows.delete(script.sources(), ID)) is None
    never = Script([problem(404, "not_found")])
    with pytest.raises(errors.NotFound):
        never.play(flows.delete(never.sources(), ID))


def test_a_retry_has_a_key_so_that_it_makes_one_job() -> None:
    script = Script([ANSWER_LOST, ok(job(is_new=True), 202)])
    assert script.play(again.again(script.sources(), ID, again.Rerun("retry")))["job_id"] == str(ID)
    assert sent(script.asks, "idempotency-key") == ["made-1", "made-1"]


def test_a_stream_goes_on_where_it_was_cut_and_gives_nothing_twice() -> None:
    script = Script(
        [
            STREAM, frame("open", 0), happened(1) + happened(2)[:-9], ANSWER_LOST,
            NOT_REACHED, ok(status=503),
            STREAM, frame("open", 1) + happened(1), happened(2) + b": heartbeat\n\n", b"",
            STREAM, happened(3), frame("bye"),
            STREAM, happened(4, "job.completed") + frame("end", None, job("COMPLETED")),
        ]
    )  # fmt: skip
    script.play(following.stream_job(script.sources(), ID, None))
    assert [event.seq for event in script.given] == [1, 2, 3, 4]
    assert [event.id for event in script.given] == ["1", "2", "3", "4"]
    assert sent(script.asks, "last-event-id") == ["0", "1", "1", "1", "2", "3"]


def test_a_stream_of_all_jobs_says_when_something_was_missed() -> None:
    reset = frame("reset", "2.5.ab.0")
    script = Script([STREAM, frame("job", "1.7.ab.3", {"type": "job.queued", "seq": 3}), b"", STREAM, reset, b"",
                     *[NOT_REACHED] * 60])  # fmt: skip
    with pytest.raises(errors.ServerUnavailable):
        script.play(following.stream_jobs(script.sources(), None))
    assert script.given == [Event(type="job.queued", seq=3, id="1.7.ab.3"), Event(type="reset", id="2.5.ab.0")]
    assert sent(script.asks, "last-event-id")[:3] == [None, "1.7.ab.3", "2.5.ab.0"]
    assert 300 < script.now_s - 1000 < 320  # how long it knocks


@pytest.mark.covers("CIX-99")
def test_waiting_follows_the_stream_to_its_end_across_restarts() -> None:
    script = Script([ok(job()), STREAM, happened(1), ANSWER_LOST, NOT_REACHED, STREAM,
                     happened(2) + frame("end"), ok(job("COMPLETED")), ok({"film": 1})])  # fmt: skip
    assert script.play(flows.result(script.sources(), ID, None)) == {"film": 1}
    assert script.paths[-1] == f"/jobs/{ID}/output"


def test_a_job_that_has_ended_needs_no_stream() -> None:
    script = Script([ok(job("CANCELLED", error={"code": "cancelled", "message": "enough"}))])
    with pytest.raises(JobCancelled, match="enough"):
        script.play(flows.result(script.sources(), ID, None))
    failed = Script([ok(job("FAILED", failed_step="render", error={"code": "x", "message": "no film"}))])
    with pytest.raises(JobFailed, match="FAILED at step render: no film") as caught:
        failed.play(flows.result(failed.sources(), ID, None))
    assert caught.value.fault == {"code": "x", "message": "no film"}


@pytest.mark.parametrize(
    "refusal", [problem(429, "too_many_streams", retry_after="30"), Answer(200, {"content-type": "text/html"})]
)
def test_where_there_is_no_stream_the_job_is_looked_at(refusal: Answer) -> None:
    script = Script([ok(job()), refusal, *[ok(job())] * 7, ok(job("COMPLETED"))])
    assert script.play(following.wait(script.sources(), ID, None)).status is JobState.COMPLETED
    assert script.pauses == [0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 10.0]


def test_a_wait_ends_in_time_although_the_stream_is_silent() -> None:
    script = Script([ok(job()), STREAM, 4.0, happened(1), STREAM, 60.0])
    with pytest.raises(errors.WaitTimeout, match="did not end within 10 s"):
        script.play(following.wait(script.sources(), ID, 10))
    assert 10 <= script.now_s - 1000 < 10.6
    looking = Script([ok(job()), problem(429, "too_many_streams"), *[ok(job())] * 9])
    with pytest.raises(errors.WaitTimeout):
        looking.play(following.wait(looking.sources(), ID, 4))
    assert looking.now_s - 1000 == pytest.approx(4)


def test_silence_is_a_dead_connection() -> None:
    script = Script([ok(job()), STREAM, 600.0, STREAM, frame("end"), ok(job("COMPLETED"))])
    script.play(following.wait(script.sources(), ID, None))
    assert script.now_s - 1000 == pytest.approx(60.5)


def test_a_refused_stream_is_raised_at_once() -> None:
    script = Script([problem(404, "not_found", "there is no such job")])
    with pytest.raises(errors.NotFound):
        script.play(following.stream_job(script.sources(), ID, 3))
    assert sent(script.asks, "last-event-id") == ["3"]


@pytest.mark.parametrize(
    ("recipe", "order", "inputs", "key", "words"),
    [
        (7, {}, {}, None, "recipe must be text"),
        ("film", {"labels": ["a"]}, {}, None, "labels must be"),
        ("film", {"priority": "high"}, {}, None, "priority must be"),
        ("film", {"webhook": "https://x"}, {}, None, "webhook must be a URL and a secret"),
        ("film", {"correlation_id": "two words"}, {}, None, "correlation_id"),
        ("film", {}, [1], None, "inputs must be"),
        ("film", {}, {}, 7, "key must be text"),
        ("film", {}, {"a": object()}, None, "cannot be written as JSON"),
    ],
)
def test_a_slip_is_refused_with_the_name_of_the_argument_and_nothing_is_sent(
    recipe: Any, order: dict[str, Any], inputs: Any, key: Any, words: str
) -> None:
    script = Script([])
    with pytest.raises(errors.BadInput, match=words):
        script.play(flows.submit(script.sources(), recipe, order, inputs, key))
    with pytest.raises(errors.BadInput, match="inputs must be values by name"):
        joined([1], {})  # type: ignore[arg-type]
    with pytest.raises(errors.BadInput, match="timeout must be a number"):
        script.play(flows.result(script.sources(), ID, "1m"))  # type: ignore[arg-type]
    assert script.asks == []


def test_pydantic_models_are_sent_as_json() -> None:
    class Doc(pydantic.BaseModel):
        """A model with a name of its own in JSON."""

        title: str = pydantic.Field(alias="heading")

    script = Script([ok(job(is_new=True), 202)])
    script.play(flows.submit(script.sources(), "film", {}, {"doc": Doc(heading="sea")}, "k"))
    assert msgspec.json.decode(script.asks[0].body or b"")["inputs"] == {"doc": {"heading": "sea"}}
