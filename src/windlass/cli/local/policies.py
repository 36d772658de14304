"""Answers requests about the policy from the local database."""

from __future__ import annotations

from typing import Any

from windlass.cli.local.call import LocalRequest
from windlass.documents.policy import (
    answer_values,
    explanation_values,
    head_values,
    published_values,
    replay_values,
    shadow_values,
    state_values,
    version_values,
)
from windlass.engine import inquiry, policies, shadows
from windlass.engine.publish import publish, rollback
from windlass.engine.replay import DAYS_MAX, JOBS_MAX
from windlass.policy.question import Question
from windlass.policy.reader import read_question

_PAGE = 50


async def state(call: LocalRequest) -> Any:
    """Return the policy in force."""
    current = await call.windlass.policies.current(call.db)
    head = (await policies.read(call.db, current.no)).head if current.no else None
    return state_values(current, head)


async def snapshots(call: LocalRequest) -> Any:
    """List the published versions."""
    before, limit = call.one("before"), call.number("limit", _PAGE)
    found = await policies.list(call.db, before=None if before is None else int(before), limit=limit)
    items = [head_values(head) for head in found]
    return {"items": items, "next": found[-1].no if len(found) == limit else None}


async def snapshot(call: LocalRequest) -> Any:
    """Return one version with its texts."""
    return version_values(await policies.read(call.db, int(call.names["version"])))


async def publish_documents(call: LocalRequest) -> Any:
    """Put documents in force."""
    process, body = call.windlass.policies, call.body
    published = await publish(
        call.db,
        {one["name"]: one["text"] for one in body["documents"]},
        by=call.windlass.settings.caller,
        note=body.get("note"),
        is_whole=body.get("only", False),
        new_only=body.get("new_only", False),
        signature=body.get("signature"),
        untested=body.get("untested"),
        expected_no=body.get("expected"),
        check=process.check,
        aside=process.aside,
    )
    return published_values(published)


async def roll_back(call: LocalRequest) -> Any:
    """Publish the content of an earlier version again."""
    process, body = call.windlass.policies, call.body
    published = await rollback(
        call.db,
        body["version"],
        by=call.windlass.settings.caller,
        note=body.get("note"),
        new_only=body.get("new_only", False),
        check=process.check,
        aside=process.aside,
    )
    return published_values(published)


async def evaluate(call: LocalRequest) -> Any:
    """Judge a request without its velocity limits."""
    question, no = _asked(call)
    found = await inquiry.evaluate(call.db, call.windlass.policies, question, no)
    return answer_values(found.no, found.verdict, found.would, question.job_id)


async def simulate(call: LocalRequest) -> Any:
    """Judge a request as of now."""
    question, no = _asked(call)
    found = await inquiry.simulate(call.db, call.windlass.policies, question, no)
    return answer_values(found.no, found.verdict, found.would, question.job_id)


async def explain(call: LocalRequest) -> Any:
    """Explain the verdict about a request."""
    question, no = _asked(call)
    version, told = await inquiry.explained(call.db, call.windlass.policies, question, no)
    return {**explanation_values(told), **answer_values(version, told.verdict, told.would, question.job_id)}


async def replay(call: LocalRequest) -> Any:
    """Judge past jobs again."""
    body = call.body
    documents = body.get("documents")
    days = body.get("days", DAYS_MAX)
    no, told = await inquiry.replayed(
        call.db,
        call.windlass.policies,
        documents=None if documents is None else {one["name"]: one["text"] for one in documents},
        is_whole=body.get("only", False),
        no=body.get("version"),
        days=days,
        limit=body.get("limit", JOBS_MAX),
    )
    return replay_values(told, no, days)


async def shadow(call: LocalRequest) -> Any:
    """Return what shadow rules would have decided."""
    counts = await shadows.counts(call.db, call.number("minutes", 60) * 60.0)
    return shadow_values(counts, await shadows.examples(call.db))


def _asked(call: LocalRequest) -> tuple[Question, int | None]:
    return read_question(call.body["request"]), call.body.get("version")
