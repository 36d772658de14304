"""Names of queues, and their apart twins."""

from __future__ import annotations

import pytest

from windlass.core.queue import DEFAULT_QUEUES, apart, is_apart, is_queue_name, ordinary


def test_every_queue_has_one_twin() -> None:
    for queue in DEFAULT_QUEUES:
        twin = apart(queue)
        assert is_apart(twin) and not is_apart(queue)
        assert apart(twin) == twin
        assert ordinary(twin) == ordinary(queue) == queue


@pytest.mark.parametrize("name", [*DEFAULT_QUEUES, "gpu", "eu-west.gpu_2"])
def test_a_step_may_wait_in_it(name: str) -> None:
    assert is_queue_name(name)


@pytest.mark.parametrize("name", ["", "a b", " gpu", "2gpu", "a,b", "x" * 200, "gpu\n", apart("gpu")])
def test_no_step_could_ever_wait_in_it(name: str) -> None:
    assert not is_queue_name(name)
