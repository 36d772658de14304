"""Recipes on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from windlass.api.wire.job import VERSION_MAX
from windlass.api.wire.step import EdgeDocument
from windlass.api.wire.wire import Sought, Time, Told, document_of
from windlass.core.plan import EffectKind, NodeKind, OnFailure
from windlass.documents.recipe import recipe_values, summary_values
from windlass.engine.recipes import Described
from windlass.views.recipes import RecipeVersion


class VersionQuery(Sought):
    """Which version to return."""

    version: int | None = Field(default=None, ge=1, le=VERSION_MAX, description="Default: the newest version.")


class RecipeSummary(Told):
    """One version of a recipe."""

    name: str
    version: int
    plan: str
    created_at: Time
    description: str = Field(description="The author's description; may be empty.")


class RecipeList(Told):
    """Recipes, or versions of one recipe."""

    items: list[RecipeSummary]


class RecipeNode(Told):
    """A step of a recipe."""

    step: str
    kind: NodeKind
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
    limit: int = Field(description="The limit of its concurrency key.")
    takes: int = Field(description="The number of places of its concurrency key that the step takes.")
    places: int = Field(description="The number of places of its provider that the step takes.")
    cost: float | None
    wait_s: float | None
    ttl_s: float | None
    approval: dict[str, Any] | None = Field(description="The terms of an approval.")
    undo: dict[str, Any] | None = Field(description="The handler that undoes the step, and its options.")
    effect: EffectKind | None
    savepoint: bool = Field(description="Once the step is done, its effect and those of the steps before it stay.")
    undoes: int | None = Field(description="In an undo job: the number of the step that the node undoes.")
    follows: list[str] = Field(description="In an undo job: the nodes that end before this one, in any way.")


class RecipeDocument(Told):
    """A recipe: its graph, its inputs and its output."""

    name: str
    description: str = Field(description="The author's description; may be empty.")
    plan: str
    nodes: list[RecipeNode]
    edges: list[EdgeDocument]
    inputs_schema: dict[str, Any]
    output: Any
    on_failure: OnFailure


def recipe_summary(recipe: RecipeVersion) -> RecipeSummary:
    """Return a version's document."""
    return RecipeSummary.model_construct(**summary_values(recipe))


def recipe_document(recipe: Described) -> RecipeDocument:
    """Return a recipe's document."""
    return document_of(RecipeDocument, recipe_values(recipe))
