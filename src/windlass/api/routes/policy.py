"""The policy: publish and roll back, read the versions, and ask a version about requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Query

from windlass.api.guard import Caller, Has, RequestId, guard, guarded_router
from windlass.api.parts import Parts
from windlass.api.wire.policy import (
    NO_MAX,
    PolicyAnswer,
    PolicyExplanation,
    PolicyHeadDocument,
    PolicyQuestion,
    PolicyState,
    PolicyTextWish,
    PolicyVersionDocument,
    PolicyVersions,
    PublishedDocument,
    PublishWish,
    ReplayDocument,
    ReplayWish,
    RollbackWish,
    ShadowDocument,
    ShadowQuery,
    VersionsQuery,
)
from windlass.api.wire.wire import document_of
from windlass.core.caller import CallerContext, Scope
from windlass.core.errors import BadInput
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
from windlass.engine.publish import Published, publish, rollback
from windlass.policy.reader import read_question

router = guarded_router("policy")
_ASKS = ("bad_policy", "bad_input", "bad_media", "too_large", "not_found")


@router.get("/policy", operation_id="policy.get", response_model=PolicyState, summary="Get the policy in force")
@guard(Scope.POLICY_READ)
async def get(parts: Has) -> PolicyState:
    """Returns the version in force, and whether this process can judge by it."""
    current = await parts.policies.current(parts.db)
    head = (await policies.read(parts.db, current.no)).head if current.no else None
    return document_of(PolicyState, state_values(current, head))


@router.get(
    "/policy/snapshots", operation_id="policy.snapshots", response_model=PolicyVersions, summary="List the versions"
)
@guard(Scope.POLICY_READ, codes=("bad_input",))
async def snapshots(query: Annotated[VersionsQuery, Query()], parts: Has) -> PolicyVersions:
    """Returns published versions without their texts, the newest first."""
    found = await policies.list(parts.db, before=query.before, limit=query.limit)
    items = [document_of(PolicyHeadDocument, head_values(head)) for head in found]
    return PolicyVersions.model_construct(items=items, next=found[-1].no if len(found) == query.limit else None)


@router.get(
    "/policy/snapshots/{version}",
    operation_id="policy.snapshot",
    response_model=PolicyVersionDocument,
    summary="Get a version",
)
@guard(Scope.POLICY_READ, codes=("not_found", "bad_input"))
async def snapshot(
    version: Annotated[int, Path(ge=1, le=NO_MAX, description="A version of the policy.")], parts: Has
) -> PolicyVersionDocument:
    """Returns a published version with the texts of its documents."""
    return document_of(PolicyVersionDocument, version_values(await policies.read(parts.db, version)))


@router.post(
    "/policy/publish", operation_id="policy.publish", response_model=PublishedDocument, summary="Publish documents"
)
@guard(
    Scope.POLICY_WRITE,
    operation="write",
    codes=("bad_policy", "policy_changed", "bad_input", "bad_media", "too_large", "unavailable"),
)
async def publish_documents(wish: PublishWish, caller: Caller, parts: Has, request_id: RequestId) -> PublishedDocument:
    """Runs the tests of all documents and puts them in force. Once it answers, no job is claimed by an older version.

    Documents that mean the same as those in force are no new version.
    """
    published = await publish(
        parts.db,
        _texts(wish.documents),
        by=caller.caller_id,
        note=wish.note,
        is_whole=wish.only,
        new_only=wish.new_only,
        signature=wish.signature,
        untested=wish.untested,
        expected_no=wish.expected,
        check=parts.policies.check,
        aside=parts.policies.aside,
        about=_about(caller, request_id),
    )
    return _published(parts, published)


@router.post(
    "/policy/rollback",
    operation_id="policy.rollback",
    response_model=PublishedDocument,
    summary="Publish an earlier version again",
)
@guard(
    Scope.POLICY_WRITE,
    operation="write",
    codes=("bad_policy", "not_found", "bad_input", "bad_media", "too_large", "unavailable"),
)
async def roll_back(wish: RollbackWish, caller: Caller, parts: Has, request_id: RequestId) -> PublishedDocument:
    """Publishes the content of an earlier version again, under a new number. Its tests are not run."""
    published = await rollback(
        parts.db,
        wish.version,
        by=caller.caller_id,
        note=wish.note,
        new_only=wish.new_only,
        check=parts.policies.check,
        aside=parts.policies.aside,
        about=_about(caller, request_id),
    )
    return _published(parts, published)


@router.post("/policy/evaluate", operation_id="policy.evaluate", response_model=PolicyAnswer, summary="Judge a request")
@guard(Scope.POLICY_READ, operation="write", codes=_ASKS)
async def evaluate(wish: PolicyQuestion, parts: Has) -> PolicyAnswer:
    """Returns the verdict about a request if no velocity limit is exceeded. Nothing is recorded."""
    question = read_question(wish.request)
    found = await inquiry.evaluate(parts.db, parts.policies, question, wish.version)
    return document_of(PolicyAnswer, answer_values(found.no, found.verdict, found.would, question.job_id))


@router.post(
    "/policy/simulate", operation_id="policy.simulate", response_model=PolicyAnswer, summary="Judge a request as of now"
)
@guard(Scope.POLICY_READ, operation="write", codes=_ASKS)
async def simulate(wish: PolicyQuestion, parts: Has) -> PolicyAnswer:
    """Returns the verdict that the request would get now, with its velocity limits counted. Nothing is recorded."""
    question = read_question(wish.request)
    found = await inquiry.simulate(parts.db, parts.policies, question, wish.version)
    return document_of(PolicyAnswer, answer_values(found.no, found.verdict, found.would, question.job_id))


@router.post(
    "/policy/explain", operation_id="policy.explain", response_model=PolicyExplanation, summary="Explain a verdict"
)
@guard(Scope.POLICY_READ, operation="write", codes=_ASKS)
async def explain(wish: PolicyQuestion, parts: Has) -> PolicyExplanation:
    """Returns the verdict that the request would get now, and for each rule the first condition that failed."""
    question = read_question(wish.request)
    no, told = await inquiry.explained(parts.db, parts.policies, question, wish.version)
    values = {**explanation_values(told), **answer_values(no, told.verdict, told.would, question.job_id)}
    return document_of(PolicyExplanation, values)


@router.post(
    "/policy/replay", operation_id="policy.replay", response_model=ReplayDocument, summary="Judge past jobs again"
)
@guard(Scope.POLICY_READ, operation="write", cost=10, codes=_ASKS)
async def replay(wish: ReplayWish, parts: Has) -> ReplayDocument:
    """Judges the newest jobs by documents or by a version, and compares the decisions. Nothing is recorded."""
    no, told = await inquiry.replayed(
        parts.db,
        parts.policies,
        documents=None if wish.documents is None else _texts(wish.documents),
        is_whole=wish.only,
        no=wish.version,
        days=wish.days,
        limit=wish.limit,
    )
    return document_of(ReplayDocument, replay_values(told, no, wish.days))


@router.get(
    "/policy/shadow", operation_id="policy.shadow", response_model=ShadowDocument, summary="See the shadow rules"
)
@guard(Scope.POLICY_READ, codes=("bad_input",))
async def shadow(query: Annotated[ShadowQuery, Query()], parts: Has) -> ShadowDocument:
    """Returns how often each shadow rule would have decided, by minute, and the newest examples."""
    counts = await shadows.counts(parts.db, query.minutes * 60.0)
    return document_of(ShadowDocument, shadow_values(counts, await shadows.examples(parts.db)))


def _texts(documents: Sequence[PolicyTextWish]) -> dict[str, str]:
    found = {one.name: one.text for one in documents}
    if len(found) != len(documents):
        raise BadInput("two documents have the same name")
    return found


def _published(parts: Parts, published: Published) -> PublishedDocument:
    # The bell comes later than the answer, and a caller may ask this process at once.
    parts.policies.expire()
    return document_of(PublishedDocument, published_values(published))


def _about(caller: CallerContext, request_id: str) -> dict[str, Any]:
    about = {
        "caller_type": caller.caller_type,
        "tier": caller.tier,
        "key": caller.key_id,
        "request_id": request_id,
    }
    return {name: value for name, value in about.items() if value is not None}
