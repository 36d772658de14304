"""Finding an app by its name, and explaining why it cannot be found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import windlass as wl
from windlass.core.errors import BadRecipe, BadSetting, NotFound, WindlassError
from windlass.recipe.app import App, load

GOOD = """
import windlass as wl

@wl.step
def greet(name: str) -> str:
    return f"Hello, {name}"

@wl.recipe
def hello(name: str = "world"):
    return greet(name)

app = wl.App()
app.add([hello])
number = 3
"""


@pytest.fixture(autouse=True)
def _own_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(name: str, text: str) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return name


def test_a_file_is_an_app() -> None:
    app = load(write("greetings.py", GOOD))
    assert (set(app.steps), set(app.recipes)) == ({"greet"}, {"hello"})
    assert app.recipe().plan.recipe == "hello"
    assert app.targets == ("greetings.py",)
    assert app.recipe("hello").where.endswith("greetings.py:8")


def test_a_module_is_an_app_and_so_is_one_name_of_it() -> None:
    write("pack/__init__.py", "")
    write("pack/greetings.py", GOOD)
    assert set(load("pack.greetings").recipes) == {"hello"}
    assert set(load("pack.greetings:hello").steps) == {"greet"}
    assert set(load("pack.greetings:greet").recipes) == set()
    assert set(load("pack.greetings:app").recipes) == {"hello"}
    assert set(load("pack/greetings.py:hello").recipes) == {"hello"}


def test_a_file_may_import_its_neighbour_and_is_read_anew_each_time() -> None:
    write("sub/words.py", "WORD = 'hi'")
    target = write("sub/speaks.py", "from words import WORD\n" + GOOD.replace("hello", "WORD"))
    with pytest.raises(BadSetting):
        load(write("sub/broken_one.py", "from words import NOPE"))
    write(target, "from words import WORD\n" + GOOD)
    assert set(load(target).recipes) == {"hello"}
    write(target, GOOD.replace("hello", "bye"))
    assert set(load(target).recipes) == {"bye"}


def test_a_file_named_like_a_module_does_not_replace_it() -> None:
    import json

    load(write("json.py", GOOD))
    assert sys.modules["json"] is json


def test_what_a_recipe_uses_is_found_wherever_it_is() -> None:
    write("parts.py", GOOD)
    target = write(
        "whole.py", "import windlass as wl\nimport parts\n@wl.recipe\ndef whole():\n    return parts.hello('x')\n"
    )
    app = load(target)
    assert (set(app.steps), set(app.recipes)) == ({"greet"}, {"hello", "whole"})
    # Without a name, the recipe that no other recipe uses is meant.
    assert app.recipe().name == "whole"


def test_a_document_is_an_app() -> None:
    app = load(write("hello.yaml", "recipe: hello\nsteps: {x: {run: anything}}"))
    assert (app.steps, app.recipe().name, app.recipe().where) == ({}, "hello", "hello.yaml")
    assert app.recipe().parameters.names == ()


def test_a_document_may_use_what_the_other_targets_have() -> None:
    code = write("greetings.py", GOOD)
    first = write("a.yaml", "recipe: a\nsteps: {x: {recipe: b, with: {n: 1}}, y: {recipe: hello}}")
    second = write(
        "b.json", '{"recipe": "b", "inputs": {"n": "integer"}, "steps": {"x": {"run": "greet", "with": {"name": "n"}}}}'
    )
    assert set(load(first, second, code).recipes) == {"a", "b", "hello"}
    with pytest.raises(BadRecipe, match=r"a\.yaml: steps\.x\.recipe: no recipe is called 'b' \(line 2\)"):
        load(first, code)
    wrong = write("c.yaml", "recipe: c\nsteps:\n  x: {run: great}")
    with pytest.raises(
        BadRecipe, match=r"c\.yaml: steps\.x\.run: no handler is called 'great' \(line 3\)\. Did you mean greet"
    ):
        load(wrong, code)


@pytest.mark.parametrize(
    ("files", "target", "error", "reason"),
    [
        ({}, "nope", NotFound, "there is no module 'nope'"),
        ({"nope.py": "x = 1"}, "nope.x", NotFound, "there is no module 'nope.x'"),
        ({}, "nope.py", NotFound, "there is no file nope.py"),
        ({}, "dir/nope", NotFound, "there is no file dir/nope"),
        ({}, "nope.yaml", NotFound, "cannot read nope.yaml: No such file"),
        ({"bad.py": "def f(:"}, "bad.py", BadSetting, "invalid syntax"),
        ({"bad_module.py": "def f(:"}, "bad_module", BadSetting, "invalid syntax"),
        ({"boom.py": "x = 1\n1 / 0"}, "boom.py", BadSetting, "ZeroDivisionError: division by zero"),
        ({"boom2.py": "x = 1\n1 / 0"}, "boom2", BadSetting, "boom2.py, line 2)"),
        ({"lost.py": "import not_installed_xyz"}, "lost.py", BadSetting, "No module named 'not_installed_xyz'"),
        ({"lost2.py": "import not_installed_xyz"}, "lost2", BadSetting, "No module named 'not_installed_xyz'"),
        ({"ends.py": "import sys\nsys.exit(3)"}, "ends.py", BadSetting, "ends the program when it is imported"),
        ({"ends2.py": "import sys\nsys.exit()"}, "ends2", BadSetting, "ends2.py, line 2)"),
        ({"empty.py": "x = 1"}, "empty.py", NotFound, "no steps and no recipes in empty.py"),
        ({"g.py": GOOD}, "g.py:helo", NotFound, "g.py has no 'helo'. Did you mean hello?"),
        ({"g.py": GOOD}, "g.py:number", BadSetting, "g.py:number is a int"),
        ({"w.py": "import windlass as wl\n@wl.recipe\ndef r(): pass"}, "w.py", BadRecipe, "a recipe needs at least"),
        ({"w.py": "import windlass as wl\nwl.step(len)"}, "w.py", BadRecipe, "decorates functions"),
        ({"w3.py": "import windlass as wl\nwl.step(len)"}, "w3", BadRecipe, "decorates functions"),
        ({"b.yaml": "recipe: ["}, "b.yaml", BadRecipe, "b.yaml: the document cannot be read"),
    ],
)
def test_what_cannot_be_loaded_says_why(
    files: dict[str, str], target: str, error: type[WindlassError], reason: str
) -> None:
    for name, text in files.items():
        write(name, text)
    with pytest.raises(error) as caught:
        load(target)
    assert reason in str(caught.value)


def test_a_file_is_offered_for_a_missing_module() -> None:
    write("lib/x.py", GOOD)
    write("there.py", GOOD)
    sys.path[:] = [entry for entry in sys.path if entry not in ("", str(Path.cwd()))]
    with pytest.raises(BadSetting, match="no app is named"):
        load()


def test_two_handlers_with_one_name_are_refused() -> None:
    write("one.py", GOOD)
    write("two.py", GOOD)
    with pytest.raises(BadSetting, match=r"two handlers are called 'greet': .*one\.py:4 and .*two\.py:4"):
        load("one.py", "two.py")


def test_two_recipes_with_one_name_are_refused_unless_they_are_the_same() -> None:
    code = write("one.py", GOOD)
    steps = 'steps: {greet: {run: greet, with: {name: "${inputs.name}"}}}'
    head = "recipe: hello\ninputs: {name: {type: string, default: world}}"
    same = write("same.yaml", f'{head}\n{steps}\noutput: "${{steps.greet.outputs}}"')
    other = write("other.yaml", "recipe: hello\nsteps: {greet: {run: greet, with: {name: x}}}")
    assert set(load(code, same).recipes) == {"hello"}
    with pytest.raises(BadSetting, match="two recipes are called 'hello'"):
        load(code, other)


def test_one_step_under_two_names_is_one_step() -> None:
    assert set(load(write("alias.py", GOOD + "\nagain = greet\nsame = hello\n")).steps) == {"greet"}


def test_a_recipe_is_chosen_by_name() -> None:
    app = load(write("many.py", GOOD + "\n@wl.recipe\ndef bye():\n    return greet('x')\n"))
    assert app.recipe("bye").name == "bye"
    with pytest.raises(NotFound, match=r"no recipe is called 'by'\. Did you mean bye"):
        app.recipe("by")
    with pytest.raises(NotFound, match=r"many\.py has 2 recipes: bye, hello\. Name one of them"):
        app.recipe()
    with pytest.raises(NotFound, match="no recipes in the app"):
        App().recipe()


def test_recipes_that_use_one_another_can_still_be_chosen() -> None:
    text = "import windlass as wl\n@wl.recipe\ndef a():\n    return b()\n@wl.recipe\ndef b():\n    return a()\n"
    with pytest.raises(NotFound, match="has 2 recipes"):
        load(write("round.py", text)).recipe()


def test_the_public_names_are_these() -> None:
    for name in ("step", "recipe", "sleep", "Retry", "Permanent", "Transient", "Parked", "Snooze", "Cancel", "load"):
        assert name in wl.__all__
    assert all(hasattr(wl, name) for name in wl.__all__)
