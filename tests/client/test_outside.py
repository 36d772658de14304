"""Both clients, and work that others do: events, callbacks, providers, budgets, costs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.client.server import Server, client_of
from windlass import JobFailed, errors


@pytest.fixture(scope="module")
def service_key(server: Server) -> str:
    words = ("--caller", "helper", "--scope", "jobs:write", "--type", "service")
    return server.cli("keys", "create", *words).ok().out.strip()


@pytest.fixture
def service(kind: str, server: Server, service_key: str, loop_runner: asyncio.Runner) -> Iterator[Any]:
    made = client_of(kind, loop_runner, server.url, service_key)
    yield made
    made.close()


@pytest.fixture
def admin(kind: str, server: Server, loop_runner: asyncio.Runner) -> Iterator[Any]:
    made = client_of(kind, loop_runner, server.url, server.admin)
    yield made
    made.close()


def token_of(job: Any) -> str:
    """The data that the handler gave to the other service, once the step waits."""
    for event in job.stream():
        if event.type == "step.parked":
            break
    [said] = [event.payload["value"] for event in job.events() if event.type == "step.preview"]
    return str(said["token"])


def test_an_event_goes_to_the_step_that_waits_for_it(client: Any) -> None:
    job = client.submit("approval")
    assert job.send_event("approved", {"by": "bob"}) == "kept"
    assert job.send_event("approved", {"by": "ada"}, id="a1") in ("kept", "delivered")
    assert job.send_event("approved", {"by": "ada"}, id="a1") == "already"
    assert job.result(timeout=60) == {"by": "ada"}
    with pytest.raises(errors.WrongState):
        job.send_event("approved", {"by": "ada"})
    with pytest.raises(errors.NotFound):
        client.job("01890000-0000-7000-8000-000000000000").send_event("approved")


def test_a_service_reports_on_what_it_did(client: Any, service: Any) -> None:
    job = client.submit("elsewhere")
    token = token_of(job)
    theirs = service.job(job.job_id)
    with pytest.raises(errors.Forbidden):
        job.complete(token, result=1)
    with pytest.raises(errors.BadSignature):
        theirs.complete("wlc_x", result=1)
    told = theirs.complete(token, "progress", progress_pct=50.0, progress_message="half")
    assert (told.status, told.step, told.is_heard) == ("noted", "hand_over", True)
    assert client.job(job.job_id).view().progress_pct == 50
    assert theirs.complete(token, result={"a": [1, None]}).status == "COMPLETED"
    assert job.result(timeout=60) == {"a": [1, None]}
    costs = job.costs()
    assert (costs.total, costs.tokens_in, costs.tokens_out) == (Decimal("0.25"), 100, 20)
    assert [(one.step, one.attempt) for one in costs.items] == [("hand_over", 1)]
    late = theirs.complete(token, "failed", error_code="late")
    assert (late.status, late.is_heard) == ("already_advanced", False)


def test_nothing_is_a_result_too(client: Any, service: Any) -> None:
    job = client.submit("elsewhere")
    assert service.job(job.job_id).complete(token_of(job)).is_heard
    assert job.result(timeout=60) is None


def test_a_service_says_what_went_wrong(client: Any, service: Any) -> None:
    job = client.submit("elsewhere")
    told = service.job(job.job_id).complete(token_of(job), "failed", error_code="http_403", error_message="not for us")
    assert (told.status, told.job_status) == ("job_failed", "FAILED")
    with pytest.raises(JobFailed, match="not for us"):
        job.result(timeout=60)


def test_costs_and_budgets_are_told_in_decimals(client: Any, admin: Any, kind: str) -> None:
    job = client.submit("elsewhere", budget="2.5")
    token_of(job)
    costs = job.costs()
    assert costs.budget is not None
    assert costs.budget.most == Decimal("2.5")
    admin.job(job.job_id).cancel()
    made = admin.set_budget("caller", f"ada/{kind}", Decimal("12.50"))
    assert (made.most, made.left, made.spent) == (Decimal("12.5"), Decimal("12.5"), 0)
    assert f"ada/{kind}" in [one.name for one in admin.budgets()]
    admin.remove_budget("caller", f"ada/{kind}")
    assert f"ada/{kind}" not in [one.name for one in admin.budgets()]
    with pytest.raises(errors.Forbidden):
        client.budgets()
    with pytest.raises(errors.BadInput):
        admin.set_budget("caller", "x", "much")


def test_providers_are_shown_to_admins(client: Any, admin: Any) -> None:
    assert isinstance(admin.providers(), list)
    with pytest.raises(errors.NotFound):
        admin.provider("nobody")
    with pytest.raises(errors.Forbidden):
        client.providers()
