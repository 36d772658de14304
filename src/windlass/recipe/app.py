"""Loads the handlers and recipes of a module, a Python file or a document."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from windlass.core.errors import BadSetting, NotFound, WindlassError
from windlass.core.expression import nearest
from windlass.core.plan import Plan
from windlass.recipe.document import plan_from_document, recipe_description
from windlass.recipe.draft import Known
from windlass.recipe.recipe import DocumentRecipe, Recipe
from windlass.recipe.step import Step
from windlass.recipe.user_code import described

_DOCUMENTS = (".yaml", ".yml", ".json")


@dataclass(slots=True)
class App:
    """The handlers and the recipes of one or more targets, by name."""

    steps: dict[str, Step] = field(default_factory=dict)
    recipes: dict[str, Recipe] = field(default_factory=dict)
    targets: tuple[str, ...] = ()

    def add(self, found: Iterable[Any]) -> None:
        """Add steps and recipes, and everything that the recipes use."""
        for thing in found:
            if isinstance(thing, Step):
                self._add_step(thing)
            elif isinstance(thing, Recipe):
                self._add_recipe(thing)

    def recipe(self, name: str | None = None) -> Recipe:
        """Return the named recipe. Without a name, return the only recipe that no other recipe uses."""
        if name is not None:
            if name not in self.recipes:
                raise NotFound(f"no recipe is called {name!r}", remedy=_hint(name, self.recipes))
            return self.recipes[name]
        used = {child for recipe in self.recipes.values() for child in recipe.children if child != recipe.name}
        heads = [name for name in self.recipes if name not in used] or list(self.recipes)
        if len(heads) == 1:
            return self.recipes[heads[0]]
        where = ", ".join(self.targets) or "the app"
        if not heads:
            raise NotFound(f"no recipes in {where}", remedy="Write one with @wl.recipe")
        raise NotFound(f"{where} has {len(heads)} recipes: {', '.join(sorted(heads))}", remedy="Name one of them")

    @property
    def known(self) -> Known:
        """The names that a document may use. An app without its own handlers checks nothing."""
        if not self.steps:
            return Known()
        return Known(
            {name: step.parameters for name, step in self.steps.items()},
            {name: recipe.parameters for name, recipe in self.recipes.items()},
        )

    def _add_step(self, step: Step) -> None:
        there = self.steps.setdefault(step.name, step)
        if there is not step and there.function is not step.function:
            raise _twice("handlers", step.name, there.where, step.where)
        if step.undo is not None:
            self._add_step(step.undo)

    def _add_recipe(self, recipe: Recipe) -> None:
        there = self.recipes.get(recipe.name)
        if there is recipe:
            return
        if there is not None and there.plan.hash != recipe.plan.hash:
            raise _twice("recipes", recipe.name, there.where, recipe.where)
        self.recipes[recipe.name] = recipe
        self.add(recipe.steps.values())
        self.add(recipe.children.values())


def load(*targets: str) -> App:
    """Load everything in the targets: `module`, `module:name`, `path/to/file.py`, or a YAML or JSON document.

    It compiles the recipes, so that a mistake is found before anything runs. Documents are read last, because they may
    name the handlers and recipes of the other targets, in any order of the targets.
    """
    if not targets:
        raise BadSetting("no app is named", remedy="Name a module or a file, such as recipes.py")
    app = App(targets=targets)
    for target in (t for t in targets if not t.endswith(_DOCUMENTS)):
        app.add(_found(target))
    documents = {target: _document(target) for target in targets if target.endswith(_DOCUMENTS)}
    # Two passes: documents may use each other as steps, so all must exist before their references are checked.
    for target, body in documents.items():
        app.add([DocumentRecipe(_compiled(target, body, Known()), target, recipe_description(body))])
    for target, body in documents.items():
        _compiled(target, body, app.known)
    for recipe in app.recipes.values():
        # Reading the plan raises the error of an invalid recipe.
        recipe.plan  # noqa: B018
    if not app.steps and not app.recipes:
        raise NotFound(
            f"no steps and no recipes in {', '.join(targets)}",
            remedy="Windlass finds functions with @wl.step and @wl.recipe at the top of a module",
        )
    return app


def _found(target: str) -> list[Any]:
    name, _, attribute = target.partition(":")
    is_file = name.endswith(".py") or "/" in name
    module = _import_file(Path(name)) if is_file else _import_module(name)
    if not attribute:
        return list(vars(module).values())
    if not hasattr(module, attribute):
        names = [key for key, value in vars(module).items() if isinstance(value, Step | Recipe | App)]
        raise NotFound(f"{name} has no {attribute!r}", remedy=_hint(attribute, names))
    value = getattr(module, attribute)
    if isinstance(value, App):
        return [*value.steps.values(), *value.recipes.values()]
    if not isinstance(value, Step | Recipe):
        raise BadSetting(f"{target} is a {type(value).__name__}, and must be a step, a recipe or an App")
    return [value]


def _import_module(name: str) -> ModuleType:
    # The current folder comes first, as with `python -m` and similar tools.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise _broken(name, error) from error
        remedy = f"Did you mean the file {name}.py?" if Path(f"{name}.py").is_file() else "Is it on PYTHONPATH?"
        raise NotFound(f"there is no module {name!r}", remedy=remedy) from None
    except WindlassError:
        # An error of Windlass already has its reason and place.
        raise
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFound(f"there is no file {path}")
    path = path.resolve()
    # The file's folder comes first, as with `python file.py`, so that it can import its neighbours.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = path.stem
    there = sys.modules.get(name)
    if there is not None and getattr(there, "__file__", None) != str(path):
        name = f"windlass_app_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs, because pickle looks up its objects by this name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, WindlassError) or not isinstance(error, Exception | SystemExit):
            raise
        raise _broken(str(path), error) from error
    return module


def _compiled(target: str, body: bytes, known: Known) -> Plan:
    try:
        return plan_from_document(body, known)
    except WindlassError as error:
        error.message = f"{target}: {error.message}"
        raise


def _document(target: str) -> bytes:
    try:
        return Path(target).read_bytes()
    except OSError as error:
        raise NotFound(f"cannot read {target}: {error.strerror}") from None


def _broken(where: str, error: Exception | SystemExit) -> BadSetting:
    if isinstance(error, SyntaxError):
        return BadSetting(f"{where} cannot be read: {error.msg} ({error.filename}, line {error.lineno})")
    if isinstance(error, SystemExit):
        remedy = 'Put code of a script below `if __name__ == "__main__":`'
        return BadSetting(f"{where} ends the program when it is imported: {described(error)}", remedy=remedy)
    return BadSetting(f"{where} cannot be imported: {described(error)}")


def _twice(what: str, name: str, first: str, second: str) -> BadSetting:
    return BadSetting(f"two {what} are called {name!r}: {first} and {second}", remedy="Rename one of them")


def _hint(name: str, known: Iterable[str]) -> str:
    hint = nearest(name, known)
    return hint[:1].upper() + hint[1:]
