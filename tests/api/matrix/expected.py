"""Every route, who may use it, and what its rightful user is answered: written by hand, beside the code, not from it.

A letter names the callers: `-` all, `*` any good key, R jobs:read, W jobs:write, U audit:read, D approvals:decide,
P policy:read, Q policy:write, A admin; I is jobs:write of an internal service, or an admin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from windlass.core.caller import Scope

Kind = Literal["", "queued", "completed", "failed", "told", "handed", "waiting"]


@dataclass(frozen=True, slots=True)
class Row:
    """One route. `job` is the kind of job that its path or body names; if any, it has an owner."""

    who: str
    good: int
    job: Kind = ""
    # `{job_id}`, `{no}` and so on in a path or a body are replaced by what the case has made.
    body: Any = None
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    is_stream: bool = False
    # Signed as a provider signs: the body is sent as it stands, with headers of its own.
    is_signed: bool = False


HELLO = {"recipe": "hello"}
UNKNOWN = "01890000-0000-7000-8000-000000000000"
KEY = {"caller": "new", "name": "new"}
ASKED = {"request": {"topic": "job.hello"}}
# It lets the jobs of all other rows pass.
OPEN = {"documents": [{"name": "main", "text": "default_decision: allow"}], "untested": "a test"}

ROWS: dict[str, Row] = {
    "health.live": Row("-", 200),
    "health.ready": Row("-", 200),
    "health.metrics": Row("-", 200),
    "health.version": Row("-", 200),
    "docs.openapi": Row("-", 200),
    "docs.page": Row("-", 200),
    "docs.problem": Row("-", 200, path={"code": "not_found"}),
    "docs.home": Row("-", 307),
    # Its first page, or the plain page that says that it was not built.
    "docs.site": Row("-", 200, path={"path": ""}),
    # Only a request for a page is sent to the console; the other two are pages for every request.
    "console.root": Row("-", 404),
    "console.home": Row("-", 307),
    "console.page": Row("-", 200, path={"path": "jobs"}),
    # A browser's: a key opens no session but by its text, and says nothing of the cookie.
    "console.sign_in": Row("-", 401, body={"token": "used"}),
    "console.session": Row("-", 401),
    "console.sign_out": Row("-", 204),
    "callers.me": Row("*", 200),
    "streams.ticket": Row("R", 201, "queued", {"job_id": "{job_id}"}),
    "streams.jobs": Row("R", 200, is_stream=True),
    "streams.job": Row("R", 200, "queued", is_stream=True),
    "streams.console": Row("R", 200, query={"topics": "jobs"}, is_stream=True),
    "jobs.submit": Row("W", 202, body=HELLO),
    "jobs.submit_batch": Row("W", 202, body={"jobs": [HELLO, HELLO]}),
    "jobs.bulk": Row("W", 200, body={"action": "cancel", "filter": {"recipe": "hello"}, "dry_run": True}),
    "jobs.list": Row("R", 200),
    "jobs.get": Row("R", 200, "queued"),
    "jobs.delete": Row("W", 204, "completed"),
    "jobs.input": Row("R", 200, "queued"),
    "jobs.output": Row("R", 200, "completed"),
    "jobs.graph": Row("R", 200, "queued"),
    "jobs.steps": Row("R", 200, "queued"),
    "jobs.step": Row("R", 200, "queued", path={"no": "0"}),
    "jobs.attempts": Row("R", 200, "queued"),
    "jobs.step_output": Row("R", 200, "completed", path={"no": "0"}),
    "jobs.events": Row("R", 200, "queued"),
    "jobs.why": Row("R", 200, "queued"),
    "jobs.decisions": Row("R", 200, "queued"),
    "jobs.cancel": Row("W", 200, "queued"),
    "jobs.undo": Row("R", 200, "queued"),
    "jobs.start_undo": Row("W", 409, "queued"),
    "jobs.pause": Row("W", 200, "queued"),
    "jobs.resume": Row("W", 200, "queued"),
    "jobs.retry": Row("W", 202, "failed"),
    "jobs.rerun": Row("W", 202, "completed"),
    "jobs.complete": Row("I", 200, "handed", {"token": "{token}", "status": "success"}),
    "jobs.send_event": Row("W", 200, "waiting", {"name": "approved"}),
    "jobs.costs": Row("R", 200, "queued"),
    "providers.webhook": Row("-", 200, path={"provider": "hooks"}, is_signed=True),
    "providers.events": Row("A", 200, path={"provider": "hooks"}),
    "providers.apply": Row("A", 200, path={"provider": "hooks", "event_id": "{event_id}"}),
    "providers.list": Row("A", 200),
    "providers.get": Row("A", 200, path={"provider": "hooks"}),
    "budgets.list": Row("A", 200),
    "budgets.get": Row("A", 200, path={"scope": "recipe", "name": "{budget}"}),
    "budgets.set": Row("A", 200, body={"most": "1.50"}, path={"scope": "recipe", "name": "{budget}"}),
    "budgets.remove": Row("A", 204, path={"scope": "recipe", "name": "{budget}"}),
    "webhooks.get": Row("R", 200, "told"),
    "webhooks.redeliver": Row("W", 202, "told"),
    "overview.get": Row("R", 200),
    "dead_letters.list": Row("R", 200),
    # Of a kind that there is none of.
    "dead_letters.redrive": Row("W", 404, body={"dry_run": False}, path={"fingerprint": "0123456789abcdef"}),
    "dead_letters.discard": Row("W", 404, body={"dry_run": False}, path={"fingerprint": "0123456789abcdef"}),
    "recipes.inputs": Row("R", 200, path={"name": "hello"}),
    "recipes.list": Row("R", 200),
    "recipes.get": Row("R", 200, path={"name": "hello"}),
    "recipes.versions": Row("R", 200, path={"name": "hello"}),
    "recipes.schema": Row("R", 200, path={"name": "hello"}),
    "workers.list": Row("A", 200),
    # Only `windlass up` has a demo.
    "demo.kill_worker": Row("A", 404),
    "demo.run": Row("A", 404),
    # The matrix has no job that asks people: an approval that nobody may see is not found.
    "approvals.list": Row("*", 200),
    "approvals.get": Row("*", 404, path={"approval_id": UNKNOWN}),
    "approvals.approve": Row("D", 404, body={}, path={"approval_id": UNKNOWN}),
    "approvals.reject": Row("D", 404, body={}, path={"approval_id": UNKNOWN}),
    "keys.list": Row("A", 200),
    "keys.create": Row("A", 201, body=KEY),
    "keys.revoke": Row("A", 204, path={"key_id": "{key_id}"}),
    "audit.list": Row("U", 200),
    "audit.verify": Row("U", 200),
    "policy.get": Row("P", 200),
    "policy.snapshots": Row("P", 200),
    "policy.snapshot": Row("P", 404, path={"version": "999"}),
    "policy.publish": Row("Q", 200, body=OPEN),
    "policy.rollback": Row("Q", 404, body={"version": 999}),
    "policy.evaluate": Row("P", 200, body=ASKED),
    "policy.simulate": Row("P", 200, body=ASKED),
    "policy.explain": Row("P", 200, body=ASKED),
    "policy.replay": Row("P", 200, body={"documents": OPEN["documents"]}),
    "policy.shadow": Row("P", 200),
}

# Who asks. `owner` is the caller that the jobs belong to; several of them are that caller, with other keys.
STRANGERS = ("no key", "junk", "bad checksum", "revoked", "expired")
ASKERS: dict[str, frozenset[str]] = {
    "another caller": frozenset({Scope.JOBS_READ, Scope.JOBS_WRITE}),
    "read-only": frozenset({Scope.JOBS_READ}),
    "user": frozenset({Scope.JOBS_READ, Scope.JOBS_WRITE}),
    "service": frozenset({Scope.JOBS_READ, Scope.JOBS_WRITE}),
    "auditor": frozenset({Scope.AUDIT_READ}),
    "decider": frozenset({Scope.APPROVALS_DECIDE}),
    "policy reader": frozenset({Scope.POLICY_READ}),
    "policy writer": frozenset({Scope.POLICY_WRITE}),
    "admin": frozenset({Scope.ADMIN}),
}
PERSONS = (*STRANGERS, *ASKERS)
NEEDS = {
    "R": Scope.JOBS_READ,
    "W": Scope.JOBS_WRITE,
    "I": Scope.JOBS_WRITE,
    "U": Scope.AUDIT_READ,
    "D": Scope.APPROVALS_DECIDE,
    "P": Scope.POLICY_READ,
    "Q": Scope.POLICY_WRITE,
    "A": Scope.ADMIN,
}
# Callers that report work, on the jobs of any caller.
INTERNAL = ("service", "admin")


def is_allowed(who: str, scopes: frozenset[str]) -> bool:
    """Whether these scopes are enough: an administrator may do all, and who writes may read."""
    need = NEEDS.get(who)
    return (
        need is None
        or need in scopes
        or Scope.ADMIN in scopes
        or (need is Scope.JOBS_READ and Scope.JOBS_WRITE in scopes)
        or (need is Scope.POLICY_READ and Scope.POLICY_WRITE in scopes)
    )


def expected(row: Row, person: str) -> int:
    """What this person is answered."""
    if row.who == "-":
        return row.good
    if person in STRANGERS:
        return 401
    if not is_allowed(row.who, ASKERS[person]) or (row.who == "I" and person not in INTERNAL):
        return 403
    if row.job and person == "another caller":
        return 404
    return row.good
