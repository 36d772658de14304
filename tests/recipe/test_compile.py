"""Drafts that neither Python nor a document would make are refused all the same."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.core.errors import BadRecipe
from windlass.core.plan import Node, NodeKind
from windlass.core.retry import Retry
from windlass.recipe.asks import Asks
from windlass.recipe.compile import compile_plan
from windlass.recipe.draft import RecipeDraft, StepDraft


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((StepDraft("a", run="f"), StepDraft("b", run="f"), StepDraft("a", run="g")), "steps.a: two steps have this"),
        ((StepDraft("a", NodeKind.TIMER, with_={"seconds": 1.0}, each="[1]"),), "steps.a.each: a timer cannot be"),
        ((StepDraft("a", run="f", asks=Asks(timeout_s=0)),), "steps.a.timeout: a timeout must be more than 0"),
        ((StepDraft("a", run="f", with_={1: 2}),), "steps.a.with: the key 1 is not text"),
    ],
)
def test_a_wrong_draft_is_refused(steps: tuple[StepDraft, ...], reason: str) -> None:
    with pytest.raises(BadRecipe) as caught:
        compile_plan(RecipeDraft("r", steps))
    assert reason in str(caught.value)


def test_a_timer_carries_nothing_that_a_worker_would_ask_for() -> None:
    draft = StepDraft("a", NodeKind.TIMER, with_={"seconds": 1.0}, asks=Asks(queue="q", retry=Retry(9), timeout_s=1.0))
    (node,) = compile_plan(RecipeDraft("r", (draft,))).nodes
    assert (node.queue, node.retry, node.timeout_s) == (Node("").queue, Retry(), Node("").timeout_s)


def test_numbers_have_the_type_of_their_json() -> None:
    policy: Any = Retry(max_attempts=2, base_s=1, factor=2, cap_s=60, jitter=0)
    whole = compile_plan(RecipeDraft("r", (StepDraft("a", run="f", asks=Asks(retry=policy, timeout_s=60)),)))
    exact = Retry(max_attempts=2, base_s=1.0, factor=2.0, cap_s=60.0, jitter=0.0)
    same = RecipeDraft("r", (StepDraft("a", run="f", asks=Asks(retry=exact, timeout_s=60.0)),))
    assert whole.hash == compile_plan(same).hash
