"""Recipes: list them, and return their inputs and graphs."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from windlass.api.guard import Caller, Has, guard, guarded_router
from windlass.api.routes.jobs import IfNoneMatch
from windlass.api.tagged import is_known
from windlass.api.wire.overview import RecentInput, RecentInputs
from windlass.api.wire.recipe import (
    RecipeDocument,
    RecipeList,
    VersionQuery,
    recipe_document,
    recipe_summary,
)
from windlass.api.wire.wire import TEXT_MAX, storable
from windlass.core.caller import Scope
from windlass.core.errors import NotFound
from windlass.engine import recipes
from windlass.views import recipes as recipe_views

router = guarded_router("recipes")


def _name(text: Any) -> str:
    try:
        if isinstance(text, str) and 0 < len(text) <= TEXT_MAX:
            return storable(text)
    except ValueError:
        pass
    raise NotFound("there is no such recipe")


Name = Annotated[str, BeforeValidator(_name), Path(description="A recipe.")]
Version = Annotated[VersionQuery, Query()]


@router.get("/recipes", operation_id="recipes.list", response_model=RecipeList, summary="List recipes")
@guard(Scope.JOBS_READ)
async def list_recipes(parts: Has) -> RecipeList:
    """Returns every recipe with its newest version."""
    return RecipeList(items=[recipe_summary(recipe) for recipe in await recipe_views.listing(parts.db)])


@router.get("/recipes/{name}", operation_id="recipes.get", response_model=RecipeDocument, summary="Get a recipe")
@guard(Scope.JOBS_READ, codes=("not_found", "bad_input"))
async def get(name: Name, query: Version, parts: Has) -> RecipeDocument:
    """Returns its description, its steps and their dependencies, its inputs' schema, and its output expression."""
    return recipe_document(await recipes.described(parts.db, name, query.version))


@router.get(
    "/recipes/{name}/versions", operation_id="recipes.versions", response_model=RecipeList, summary="List versions"
)
@guard(Scope.JOBS_READ, codes=("not_found",))
async def versions(name: Name, parts: Has) -> RecipeList:
    """Returns every version, the newest first."""
    found = await recipe_views.versions(parts.db, name)
    if not found:
        raise NotFound(f"there is no recipe {name}", remedy="GET /recipes lists them")
    return RecipeList(items=[recipe_summary(recipe) for recipe in found])


@router.get(
    "/recipes/{name}/schema",
    operation_id="recipes.schema",
    response_model=dict[str, Any],
    summary="Get the schema of a recipe's inputs",
    responses={304: {"description": "It has not changed."}},
)
@guard(Scope.JOBS_READ, codes=("not_found", "bad_input"))
async def schema(
    request: Request, name: Name, query: Version, parts: Has, if_none_match: IfNoneMatch = None
) -> Response:
    """Returns the JSON Schema of the inputs. Its ETag is the plan's hash."""
    plan = await recipes.latest(parts.db, name, query.version)
    headers = {"ETag": f'"{plan.hash}"', "Cache-Control": "private, no-cache"}
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(msgspec.json.encode(plan.inputs_schema), media_type="application/json", headers=headers)


@router.get(
    "/recipes/{name}/inputs",
    operation_id="recipes.inputs",
    response_model=RecentInputs,
    summary="List recent inputs of a recipe",
)
@guard(Scope.JOBS_READ, codes=("not_found",))
async def recent_inputs(name: Name, caller: Caller, parts: Has) -> RecentInputs:
    """Returns the inputs of the recipe's newest jobs, without duplicates and at most ten. Omits large inputs."""
    await parts.plans.latest(name)
    found = await recipe_views.recent_inputs(parts.db, name, caller.owner)
    return RecentInputs(items=[RecentInput(job_id=one.job_id, at=one.at, inputs=one.inputs) for one in found])
