"""Answers requests about recipes, workers, keys, the audit, providers and budgets from the local database."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from windlass.cli.local.call import LocalRequest
from windlass.core.caller import Role, Scope
from windlass.core.errors import NotFound
from windlass.documents.external import budget_values, costs_values, provider_values
from windlass.documents.recipe import recipe_values, summary_values
from windlass.engine import budgets, recipes
from windlass.store.plans import plan_of

_AUDIT_PAGE = 100


async def me(call: LocalRequest) -> Any:
    """Return the caller, an admin: a user with access to the database may do everything."""
    return {
        "caller": call.windlass.settings.caller,
        "caller_type": "user",
        "role": str(Role.ADMIN),
        "tier": None,
        "scopes": [str(Scope.ADMIN)],
        "roles": [str(Role.ADMIN)],
        "key_id": None,
    }


async def list_recipes(call: LocalRequest) -> Any:
    """List every recipe with its newest version."""
    from windlass.views import recipes as recipe_views

    return {"items": [summary_values(one) for one in await recipe_views.listing(call.db)]}


async def recipe(call: LocalRequest) -> Any:
    """Return one recipe."""
    version = call.one("version")
    return recipe_values(
        await recipes.described(call.db, call.names["name"], None if version is None else int(version))
    )


async def workers(call: LocalRequest) -> Any:
    """List the worker processes."""
    from windlass.documents.worker import worker_values
    from windlass.views import gauge
    from windlass.views import workers as worker_views

    found, at_work = await worker_views.listing(call.db), await worker_views.at_work(call.db)
    now = await gauge.now(call.db)
    items = [worker_values(view, at_work.get(view.id, []), now) for view in found]
    return {"items": items, "engines": await gauge.engines(call.db), "as_of": now}


async def list_keys(call: LocalRequest) -> Any:
    """List every key."""
    from windlass.documents.key import key_values

    return {"items": [key_values(key) for key in await (await call.keys()).listing(caller=call.one("caller"))]}


async def create_key(call: LocalRequest) -> Any:
    """Create a key."""
    from windlass.core.caller import USER_SCOPES
    from windlass.documents.key import key_values

    wish = dict(call.body)
    expires_in_s, scopes = wish.pop("expires_in", None), frozenset(wish.pop("scopes", USER_SCOPES))
    made = await (await call.keys()).create(
        wish.pop("caller"), scopes=scopes, expires_in_s=expires_in_s, by=call.windlass.settings.caller, **wish
    )
    return {**key_values(made.view), "key": made.text}


async def revoke_key(call: LocalRequest) -> None:
    """Revoke a key."""
    await (await call.keys()).revoke(call.names["key_id"], by=call.windlass.settings.caller)


async def audit(call: LocalRequest) -> Any:
    """Return a page of audit records in order."""
    from windlass.access.audit import records
    from windlass.documents.key import record_values

    job_id, limit = call.one("job_id"), call.number("limit", _AUDIT_PAGE)
    found = await records(
        call.db,
        caller=call.one("caller"),
        event=call.one("event"),
        job_id=None if job_id is None else UUID(job_id),
        since=call.time("since"),
        until=call.time("until"),
        after_no=call.number("after", 0),
        limit=limit,
    )
    items = [record_values(record, digest) for record, digest in found]
    return {"items": items, "next": items[-1]["no"] if len(items) == limit else None}


async def verify_audit(call: LocalRequest) -> Any:
    """Verify the chain of the audit."""
    from windlass.access.audit import verify_chain
    from windlass.documents.key import verdict_values

    head = call.one("head")
    found = await verify_chain(
        call.db, head=None if head is None else bytes.fromhex(head), after_no=call.number("after", 0)
    )
    return verdict_values(found)


async def list_providers(call: LocalRequest) -> Any:
    """List every provider."""
    from windlass.views import providers

    return {"items": [provider_values(view) for view in await providers.views(call.db)]}


async def provider(call: LocalRequest) -> Any:
    """Return one provider."""
    from windlass.views import providers

    return provider_values((await providers.views(call.db, call.names["name"]))[0])


async def list_budgets(call: LocalRequest) -> Any:
    """List every budget."""
    return {"items": [budget_values(view) for view in await budgets.list(call.db)]}


async def set_budget(call: LocalRequest) -> Any:
    """Set a budget's limit."""
    from decimal import Decimal

    scope, name = call.names["scope"], call.names["name"]
    return budget_values(await budgets.set(call.db, scope, name, Decimal(call.body["most"])))


async def remove_budget(call: LocalRequest) -> None:
    """Remove a budget."""
    scope, name = call.names["scope"], call.names["name"]
    if not await budgets.remove(call.db, scope, name):
        raise NotFound(f"there is no budget of {scope} {name}", remedy="`windlass budgets list` shows them")


async def costs(call: LocalRequest) -> Any:
    """Return the costs of the job's attempts."""
    from windlass.views.costs import costs_of

    view = await call.job()
    plan = await plan_of(call.db, view.plan)
    return costs_values(await costs_of(call.db, view.id), plan, await budgets.get(call.db, "job", str(view.id)))
