"""Types that people write by hand as a recipe's inputs: checked at submit, and given to handlers as instances."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

import windlass as wl
from windlass.core.errors import BadInput, BadRecipe
from windlass.recipe.schema import check_inputs
from windlass.testing import harness


class Author(pydantic.BaseModel):
    """Who wrote it."""

    name: str
    age: int = pydantic.Field(ge=0, alias="years")


class Doc(pydantic.BaseModel):
    """A text, and the texts that answer it."""

    title: str = pydantic.Field(min_length=2)
    author: Author
    answers: list[Doc] = []


@dataclass
class Size:
    """Two numbers."""

    width: int
    height: int = 10


class Place(msgspec.Struct):
    """A struct."""

    city: str


class Options(TypedDict):
    """A dictionary with known keys."""

    quality: int


ADA = Author(name="Ada", years=36)


@wl.step
def describe(doc: Doc, others: list[Doc], size: Size, place: Place | None, options: Options, by: Author) -> list[Any]:
    kinds = [type(one).__name__ for one in (doc, doc.author, *others, size, place, by)]
    return [*kinds, doc.title, size.height, options["quality"], by.age]


@wl.recipe
def read(
    doc: Doc,
    size: Size,
    options: Options,
    others: list[Doc] = [],  # noqa: B006
    place: Place | None = None,
    by: Author = ADA,
):
    return describe(doc, others, size, place, options, by)


GIVEN: dict[str, Any] = {
    "doc": {"title": "sea", "author": {"name": "Grace", "years": 85}},
    "size": {"width": 3},
    "options": {"quality": 9},
}


def refusal(inputs: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        check_inputs(read.plan, inputs)
    return str(caught.value)


async def test_handlers_get_instances_of_all_of_them(dsn: str) -> None:
    async with harness(dsn) as h:
        doc = Doc(title="fog", author=ADA, answers=[Doc(title="mist", author=ADA)])
        options: Options = {"quality": 5}
        job = await h.submit(read, doc=doc, others=[doc], size=Size(1, 2), place=Place("Rome"), options=options)
        assert await h.run(job) == "COMPLETED"
        kinds = ["Doc", "Author", "Doc", "Size", "Place", "Author"]
        assert await job.result() == [*kinds, "fog", 2, 5, 36]


def test_instances_and_json_are_the_same_inputs() -> None:
    doc = Doc.model_validate(GIVEN["doc"])
    given = check_inputs(read.plan, {"doc": doc, "size": Size(3, 10), "options": {"quality": 9}})
    assert given["doc"] == {**GIVEN["doc"], "answers": []}
    assert given["by"] == {"name": "Ada", "years": 36}, "a model as a default"


def test_inputs_that_do_not_fit_a_model_are_refused_before_anything_is_written() -> None:
    assert "inputs.doc.title" in refusal(GIVEN | {"doc": {"title": "x", "author": {"name": "a", "years": 1}}})
    assert "inputs.doc.author.years" in refusal(GIVEN | {"doc": {"title": "xy", "author": {"name": "a", "years": -1}}})
    assert '"author" is a required property' in refusal(GIVEN | {"doc": {"title": "xy"}})
    deep = {"title": "xy", "author": {"name": "a", "years": 1}, "answers": [{"title": "zz"}]}
    assert "inputs.others[0].answers[0]" in refusal(GIVEN | {"others": [deep]})
    assert "inputs.size" in refusal(GIVEN | {"size": {}})
    assert "inputs.options" in refusal(GIVEN | {"options": {"quality": "high"}})


def test_two_types_of_one_name_are_refused() -> None:
    other = pydantic.create_model("Author", nick=(str, ...))
    holder = pydantic.create_model("Holder", author=(other, ...))

    def both(doc: Doc, holder: Any):
        return describe(doc, [], {}, None, {}, {})

    both.__annotations__["holder"] = holder
    with pytest.raises(BadRecipe, match="two types are called Author"):
        wl.recipe(both).plan  # noqa: B018


def test_a_type_without_a_schema_is_refused_with_what_to_write() -> None:
    def odd(thing: SimpleNamespace):
        return describe(thing, [], {}, None, {}, {})

    with pytest.raises(
        BadRecipe, match=r"inputs\.thing: the type hint .*SimpleNamespace.* has no JSON Schema"
    ) as caught:
        wl.recipe(odd).plan  # noqa: B018
    assert "Pydantic model" in str(caught.value)


def test_pydantic_is_not_imported_by_recipes() -> None:
    code = "import sys, windlass.recipe.schema, windlass.recipe.recipe; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
