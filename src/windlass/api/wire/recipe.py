"""Recipes on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from windlass.api.wire.job import VERSION_MAX
from windlass.api.wire.step import EdgeDocument
from windlass.api.wire.wire import Sought, Time, Told
from windlass.core.plan import Node
from windlass.engine.recipes import Described
from windlass.views.recipes import RecipeVersion


class VersionQuery(Sought):
    """Which version."""

    version: int | None = Field(default=None, ge=1, le=VERSION_MAX, description="The newest, if it is not given.")


class RecipeSummary(Told):
    """One version of a recipe."""

    name: str
    version: int
    plan: str
    created_at: Time
    description: str = Field(description="What its author says of it, for people; may be empty.")


class RecipeList(Told):
    """Recipes, or versions of one."""

    items: list[RecipeSummary]


class RecipeNode(Told):
    """A step of a recipe."""

    step: str
    kind: str
    run: str
    needs: list[str]
    queue: str
    when: str | None
    each: str | None
    arguments: Any
    timeout_s: float
    retry: dict[str, Any]
    provider: str
    concurrency: str | None
    limit: int
    cost: float | None
    wait_s: float | None
    ttl_s: float | None


class RecipeDocument(Told):
    """A recipe: its graph, what it takes and what it gives."""

    name: str
    description: str = Field(description="What its author says of it, for people; may be empty.")
    plan: str
    nodes: list[RecipeNode]
    edges: list[EdgeDocument]
    inputs_schema: dict[str, Any]
    output: Any
    on_failure: str


def recipe_summary(recipe: RecipeVersion) -> RecipeSummary:
    """A version's document."""
    return RecipeSummary(
        name=recipe.name,
        version=recipe.version,
        plan=recipe.plan_hash,
        created_at=recipe.created_at,
        description=recipe.description,
    )


def recipe_document(recipe: Described) -> RecipeDocument:
    """A recipe's document."""
    plan = recipe.plan
    return RecipeDocument(
        name=plan.recipe,
        description=recipe.description,
        plan=plan.hash,
        nodes=[_node(node) for node in plan.nodes],
        edges=[EdgeDocument(source=need, target=node.name) for node in plan.nodes for need in node.needs],
        inputs_schema=plan.inputs_schema,
        output=plan.output,
        on_failure=str(plan.on_failure),
    )


def _node(node: Node) -> RecipeNode:
    return RecipeNode(
        step=node.name,
        kind=str(node.kind),
        run=node.run,
        needs=list(node.needs),
        queue=node.queue,
        when=node.when,
        each=node.each,
        arguments=node.with_,
        timeout_s=node.timeout_s,
        retry={name: getattr(node.retry, name) for name in type(node.retry).__slots__},
        provider=node.provider,
        concurrency=node.concurrency,
        limit=node.limit,
        cost=node.cost,
        wait_s=node.wait_s,
        ttl_s=node.ttl_s,
    )
