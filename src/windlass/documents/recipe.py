"""Documents about recipes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from windlass.core.plan import Node
from windlass.engine.recipes import Described
from windlass.views.recipes import RecipeVersion


def summary_values(recipe: RecipeVersion) -> dict[str, Any]:
    """Return the fields of the document of a recipe's version."""
    return {
        "name": recipe.name,
        "version": recipe.version,
        "plan": recipe.plan_hash,
        "created_at": recipe.created_at,
        "description": recipe.description,
    }


def recipe_values(recipe: Described) -> dict[str, Any]:
    """Return the fields of a recipe's document."""
    plan = recipe.plan
    return {
        "name": plan.recipe,
        "description": recipe.description,
        "plan": plan.hash,
        "nodes": [_node(node) for node in plan.nodes],
        "edges": [{"source": need, "target": node.name} for node in plan.nodes for need in node.needs],
        "inputs_schema": plan.inputs_schema,
        "output": plan.output,
        "on_failure": plan.on_failure,
    }


# Fields of a node that have another name in its document, or that its document omits.
_RENAMED = {"name": "step", "with_": "arguments"}


def _node(node: Node) -> dict[str, Any]:
    values = {_RENAMED.get(name, name): getattr(node, name) for name in type(node).__slots__}
    retry = {name: getattr(node.retry, name) for name in type(node.retry).__slots__}
    undo = None if node.undo is None else {**asdict(node.undo), "when": str(node.undo.when)}
    lists = {"needs": list(node.needs), "follows": list(node.follows)}
    return {**values, **lists, "kind": node.kind, "retry": retry, "undo": undo}
