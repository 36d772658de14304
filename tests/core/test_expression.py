"""Expressions: how they are read, what is refused, and what they are found to refer to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadExpression
from windlass.core.expression import (
    BRACKET_DEPTH_MAX,
    EXPRESSION_CHARS_MAX,
    closing_brace,
    lint,
    literal,
    nearest,
    parse_expression,
    path_text,
    tokens,
)


def refusal(text: str, **options: bool) -> str:
    with pytest.raises(BadExpression) as caught:
        parse_expression(text, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("inputs.topic", ("inputs", "topic")),
        ("inputs", ("inputs",)),
        ("steps.a.outputs", ("steps", "a", "outputs")),
        ("steps.a.outputs.scenes[0].id", ("steps", "a", "outputs", "scenes", 0, "id")),
        ("steps['a'].outputs", ("steps", "a", "outputs")),
        ('inputs["content-type"]', ("inputs", "content-type")),
        ("inputs.`content-type`", ("inputs", "content-type")),
        ("inputs . topic // a comment", ("inputs", "topic")),
        ("item", ("item",)),
        ("index", ("index",)),
    ],
)
def test_a_plain_path_needs_no_evaluator(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_expression(text).path == path


@pytest.mark.parametrize(
    "text", ["inputs.a > 1", "inputs.list.size()", "inputs.list[inputs.n]", "!inputs.a", "(inputs.a)", "1 + 2", "'x'"]
)
def test_anything_else_needs_one(text: str) -> None:
    assert parse_expression(text).path is None


@pytest.mark.parametrize(
    ("text", "steps", "inputs"),
    [
        ("steps.a.outputs.x > inputs.limit", {"a"}, {"limit"}),
        ("size(steps.a.outputs) == size(steps.b.outputs.list)", {"a", "b"}, set()),
        ("'steps.a.outputs' == inputs.x", set(), {"x"}),
        (r"'\'' + inputs.x + '\''", set(), {"x"}),
        (r"r'\' + inputs.x + r'\'", set(), {"x"}),
        ('"""it\'s "inputs.no" """ + inputs.yes', set(), {"yes"}),
        ("inputs.list.all(x, x > inputs.low)", set(), {"list", "low"}),
        ("has(steps.a.outputs.x) ? steps.a.outputs.x : inputs.y", {"a"}, {"y"}),
        ("{'inputs': steps.a.outputs}", {"a"}, set()),
        ("inputs.a // inputs.b\n + inputs.c", set(), {"a", "c"}),
        ("inputs.list[int(inputs.n)]", set(), {"list", "n"}),
        ("type(inputs.a) == string", set(), {"a"}),
        ("inputs[inputs.key]", set(), {"key"}),
    ],
)
def test_references_are_found_and_text_is_not_taken_for_one(text: str, steps: set[str], inputs: set[str]) -> None:
    found = parse_expression(text)
    assert (found.steps, found.inputs) == (steps, inputs)


def test_item_and_index_are_seen() -> None:
    found = parse_expression("item.size > index")
    assert found.uses("item")
    assert found.uses("index")
    assert not found.uses("steps")


def test_a_path_ends_where_it_is_not_known_before_evaluation() -> None:
    assert parse_expression("steps.a.outputs.list[inputs.n].x").paths == (
        ("steps", "a", "outputs", "list"),
        ("inputs", "n"),
    )


def test_a_key_with_escapes_is_left_to_the_evaluator() -> None:
    found = parse_expression(r"inputs['it\'s']")
    assert (found.path, found.paths) == (None, (("inputs",),))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("steps.a.outputs.score>5", "steps.a.outputs.score > 5"),
        ("  inputs.a   &&inputs.b ", "inputs.a && inputs.b"),
        ("inputs['a']", "inputs.a"),
        ("inputs.a=='x'", 'inputs.a == "x"'),
        ("size( inputs.a )>=- 1", "size(inputs.a) >= -1"),
        ("inputs.a in[1,2 , 3]", "inputs.a in [1, 2, 3]"),
        ("! inputs.a||inputs.b-1<0", "!inputs.a || inputs.b - 1 < 0"),
        ("inputs.l.exists( x,x==1 )", "inputs.l.exists(x, x == 1)"),
        ("(inputs.a) [0]", "(inputs.a)[0]"),
        ("{'a':1}", '{"a": 1}'),
        ("inputs.a // why\n == 1", "inputs.a == 1"),
        (r"inputs.a == 'it\'s'", r"inputs.a == 'it\'s'"),
    ],
)
def test_an_expression_has_one_spelling(text: str, canonical: str) -> None:
    assert parse_expression(text.strip()).text == canonical
    assert parse_expression(canonical).text == canonical


_ATOMS = st.sampled_from(["inputs.a", "steps.b.outputs.c", "1", "-2", "1.5", "'x y'", '"q"', "true", "null", "item[0]"])
_OPERATORS = st.sampled_from(["+", "-", "*", "==", "!=", "<=", ">", "&&", "||", " in "])
_GAPS = st.sampled_from(["", " ", "  ", "\n", "\t"])


def _longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, _GAPS, _OPERATORS, _GAPS, inner).map("".join),
        inner.map("({})".format),
        inner.map("!{}".format),
        inner.map("size( {} )".format),
        st.lists(inner, max_size=3).map(lambda parts: "[" + " ,".join(parts) + "]"),
    )


@given(st.recursive(_ATOMS, _longer, max_leaves=8))
def test_the_canonical_spelling_has_the_same_tokens_and_is_final(text: str) -> None:
    found = parse_expression(text)
    again = parse_expression(found.text)
    assert again == found
    if found.path is None:
        before, after = ([t.text.strip("'\"") for t in tokens(x)] for x in (text, found.text))
        assert before == after


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_expression(text)
    except BadExpression as error:
        assert error.message


def test_an_expression_may_not_be_long() -> None:
    assert "at most 1,024" in refusal("1" * (EXPRESSION_CHARS_MAX + 1))


def test_an_expression_may_not_be_empty() -> None:
    assert "empty" in refusal("")
    assert "empty" in refusal("// only a comment")


def test_map_is_refused_in_a_condition_only() -> None:
    assert "`map` is refused" in refusal("inputs.l.map(x, x)", is_condition=True)
    assert parse_expression("inputs.l.map(x, x)").inputs == {"l"}
    assert parse_expression("inputs.map > 1", is_condition=True).inputs == {"map"}


def test_macros_nest_twice_and_no_more() -> None:
    two = "inputs.l.all(x, inputs.l.all(y, {}))"
    assert parse_expression(two.format("x > y")).inputs == {"l"}
    assert "nested deeper than 2" in refusal(two.format("inputs.l.exists(z, z > 0)"))
    # One after another is not one in another.
    assert parse_expression("inputs.l.filter(x, x).filter(x, x).filter(x, x)").inputs == {"l"}


def test_plus_is_refused_inside_a_macro() -> None:
    assert "`+` inside a macro" in refusal("inputs.l.map(x, x + x)")
    assert "`+` inside a macro" in refusal("inputs.l.all(x, size([x + x]) > 0)")
    assert parse_expression("(inputs.l + inputs.m).all(x, x > 0) && 1 + 1 == 2").inputs == {"l", "m"}
    assert parse_expression("inputs.l.all(x, x == '+')").inputs == {"l"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("topic", "`topic` is not known here"),
        ("os.system('x') ", "`os` is not known here"),
        ("inputs.l.all(x, x > 0) && x", "`x` is not known here"),
        ("inputs.l.all(inputs, true)", "cannot be the variable"),
        ("inputs.l.all(in, true)", "cannot be the variable"),
        ("inputs.l.all(x)", "takes a variable and an expression"),
        ("inputs.l.all(1, true)", "takes a variable and an expression"),
        ("steps", "must name a step"),
        ("steps[inputs.a]", "must name a step"),
        ("steps[0].outputs", "must name a step"),
        ("steps.a", "only `outputs`"),
        ("steps.a.state", "only `outputs`"),
        ("inputs[0]", "by name"),
        ("index.x", "has no parts"),
        ("inputs.", "no name after it"),
        ("inputs..a", "no name after it"),
        (".inputs", "nothing in front of it"),
        ("1 + .inputs", "nothing in front of it"),
        ("(inputs.a", "never closed"),
        ("inputs.a)", "closes nothing"),
        ("[inputs.a)", "closes nothing"),
        ("inputs.a == 'x", "does not end"),
        ("inputs.a # 1", "unexpected '#'"),
        ("inputs.a; 1", "unexpected ';'"),
        ("google.protobuf.Int64Value{value: 1}", "not known here"),
        ("int{value: 1}", "constructs a message"),
        ("(" * (BRACKET_DEPTH_MAX + 1), "nested deeper than 32"),
        ("inputs." + "a" * 70 + " $", "…"),
    ],
)
def test_what_is_wrong_is_said(text: str, reason: str) -> None:
    assert reason in refusal(text)


def test_a_stray_comma_is_left_to_the_compiler() -> None:
    assert parse_expression("1, 2").text == "1, 2"


def test_lint_adds_the_place() -> None:
    with pytest.raises(BadExpression) as caught:
        lint(" steps.a ", "steps.b.when")
    assert caught.value.place == "steps.b.when"
    assert str(caught.value).startswith("steps.b.when: a step has only")


@pytest.mark.parametrize(
    ("text", "end"),
    [("a}b", 1), ("'}'}", 3), ("{'a': {}}}", 9), ("a", -1), ("'a}", 2), ("r'\\'}", 4), ("// }", -1), ("§}", 1)],
)
def test_an_expression_ends_at_its_own_brace(text: str, end: int) -> None:
    assert closing_brace(text, 0) == end


def test_paths_are_written_with_dots_where_they_can_be() -> None:
    assert path_text(("inputs", "a", "b c", "in", 3)) == 'inputs.a["b c"]["in"][3]'


def test_literals_are_those_of_json() -> None:
    assert [literal(v) for v in ("é\n", 1, 1.5, True, None)] == ['"é\\n"', "1", "1.5", "true", "null"]


def test_the_nearest_name_is_offered() -> None:
    assert nearest("topc", ["topic", "style"]) == "did you mean topic?"
    assert nearest("zzz", ["b", "a"]) == "there is a, b"
    assert nearest("zzz", []) == "there are none"
    assert nearest("zzz", [f"n{i:02}" for i in range(14)]).endswith("n11 and 2 more")


def test_a_policys_expression_has_other_roots() -> None:
    roots = ("job", "caller")
    found = parse_expression("job.inputs.n > 1 && caller.tier == 'x'", roots=roots)
    assert found.paths == (("job", "inputs", "n"), ("caller", "tier"))
    with pytest.raises(BadExpression, match="Names begin with job, caller"):
        parse_expression("inputs.n > 1", roots=roots)
    with pytest.raises(BadExpression, match="cannot be the variable"):
        parse_expression("job.l.all(job, true)", roots=roots)
    with pytest.raises(BadExpression, match=r'caller\.tier == "gold"'):
        parse_expression("", roots=roots)
