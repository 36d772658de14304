"""Flows about the policy: publish, roll back, read versions, ask about requests. `exchange` defines a flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.client.asking import converted, get, send
from windlass.client.exchange import Flow, Sources
from windlass.client.views import PolicyVersionView, PublishedView

PAGE = 200


def policy(sources: Sources) -> Flow[dict[str, Any]]:
    """Return the policy in force."""
    found: dict[str, Any] = yield from get(sources, "/policy")
    return found


def versions(sources: Sources, limit: int) -> Flow[list[PolicyVersionView]]:
    """Return the newest versions, without their texts."""
    found: list[PolicyVersionView] = []
    before: int | None = None
    while len(found) < limit:
        query = [("limit", str(min(PAGE, limit - len(found))))]
        page = yield from get(sources, "/policy/snapshots", [*query, *([("before", str(before))] if before else [])])
        found += converted(page["items"], list[PolicyVersionView])
        if (before := page["next"]) is None:
            break
    return found


def version(sources: Sources, no: int) -> Flow[PolicyVersionView]:
    """Return a version with its texts."""
    return converted((yield from get(sources, f"/policy/snapshots/{no}")), PolicyVersionView)


def publish(sources: Sources, documents: Mapping[str, str], wish: Mapping[str, Any]) -> Flow[PublishedView]:
    """Put documents in force. Publishing the same again changes nothing, so a lost answer is asked for again."""
    body = {"documents": [{"name": name, "text": text} for name, text in documents.items()], **_given(wish)}
    # A second try would find its own version in force, and not the one that it expects.
    is_safe = wish.get("expected") is None
    return converted((yield from send(sources, "POST", "/policy/publish", body, is_safe=is_safe)), PublishedView)


def rollback(sources: Sources, no: int, wish: Mapping[str, Any]) -> Flow[PublishedView]:
    """Publish the content of a version again."""
    return converted(
        (yield from send(sources, "POST", "/policy/rollback", {"version": no, **_given(wish)})), PublishedView
    )


def judged(sources: Sources, how: str, request: Mapping[str, Any], no: int | None) -> Flow[dict[str, Any]]:
    """Return the answer of `evaluate`, `simulate` or `explain` about a request."""
    body = {"request": dict(request), **_given({"version": no})}
    found: dict[str, Any] = yield from send(sources, "POST", f"/policy/{how}", body)
    return found


def replay(sources: Sources, documents: Mapping[str, str] | None, wish: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Return what documents or a version would have decided about past jobs."""
    texts = None if documents is None else [{"name": name, "text": text} for name, text in documents.items()]
    found: dict[str, Any] = yield from send(sources, "POST", "/policy/replay", _given({"documents": texts, **wish}))
    return found


def shadow(sources: Sources, minutes: int) -> Flow[dict[str, Any]]:
    """Return what shadow rules would have decided."""
    found: dict[str, Any] = yield from get(sources, "/policy/shadow", [("minutes", str(minutes))])
    return found


def _given(wish: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wish.items() if value is not None and value is not False}
