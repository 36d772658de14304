"""Recipes as large as they may be: what grows with the square of the steps would not end here."""

from __future__ import annotations

import pytest

from windlass.core.birth import births
from windlass.core.errors import TooLarge
from windlass.core.plan import Plan, plan_from_json
from windlass.core.template import plan_templates
from windlass.recipe.compile import STEPS_MAX, compile_plan
from windlass.recipe.draft import RecipeDraft, StepDraft


def _chain(count: int) -> RecipeDraft:
    first = StepDraft("s0", run="f")
    rest = (StepDraft(f"s{no}", run="f", with_={"x": f"${{steps.s{no - 1}.outputs}}"}) for no in range(1, count))
    return RecipeDraft("chain", (first, *rest), output=f"${{steps.s{count - 1}.outputs}}")


def _star(count: int) -> RecipeDraft:
    rest = (StepDraft(f"s{no}", run="f", after=("s0",)) for no in range(1, count))
    return RecipeDraft("star", (StepDraft("s0", run="f"), *rest))


@pytest.fixture(scope="module")
def chain() -> Plan:
    return plan_from_json(compile_plan(_chain(STEPS_MAX)).canonical)


def test_a_chain_may_have_ten_thousand_steps(chain: Plan) -> None:
    assert [node.name for node in chain.nodes[-2:]] == [f"s{STEPS_MAX - 2}", f"s{STEPS_MAX - 1}"]
    assert births(chain)[-1].unmet == 1
    assert plan_templates(chain).nodes[STEPS_MAX - 1].with_.steps == {f"s{STEPS_MAX - 2}"}


def test_what_comes_after_a_step_is_not_kept_for_all_of_them(chain: Plan) -> None:
    assert [len(chain.descendants[no]) for no in range(0, STEPS_MAX, 1000)] == list(range(STEPS_MAX - 1, 0, -1000))
    assert sum(map(len, chain.descendants._kept.values())) <= chain.descendants.KEPT_MAX


def test_a_step_may_have_as_many_after_it() -> None:
    star = compile_plan(_star(STEPS_MAX))
    assert len(star.successors[0]) == len(star.descendants[0]) == STEPS_MAX - 1


def test_more_steps_are_refused() -> None:
    with pytest.raises(TooLarge, match="10,001 steps; at most 10,000"):
        compile_plan(_star(STEPS_MAX + 1))
