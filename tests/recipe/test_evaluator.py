"""Expressions in a process of their own: right values, honest failures, and hostile expressions that do no harm."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import psutil
import pytest

from windlass.core.errors import BadExpression, Unavailable
from windlass.core.template import compile_template
from windlass.recipe import evaluator as module
from windlass.recipe.evaluator import Evaluator, _context

SCOPE: dict[str, Any] = {
    "inputs": {"n": 7, "half": 0.5, "word": "sea", "list": [1, 2, 3], "none": None, "flag": True},
    "steps": {"a": {"outputs": {"score": 9, "big": "x" * 200_000, "odd-key": {"in": 1}}}},
}


@pytest.fixture(scope="module")
def cel() -> Iterator[Evaluator]:
    evaluator = Evaluator()
    yield evaluator
    evaluator.close()


def pid_of(evaluator: Evaluator) -> int:
    child = evaluator._next("")
    assert child is not None
    return child.process.pid


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("inputs.n > 5 && steps.a.outputs.score > 5", True),
        ("inputs.n + 1", 8),
        ("inputs.half * 2.0", 1.0),
        ("inputs.word + '!'", "sea!"),
        ("inputs.list.filter(x, x > 1)", [2, 3]),
        ("inputs.list.map(x, {'n': x})", [{"n": 1}, {"n": 2}, {"n": 3}]),
        ("inputs.none == null", True),
        ("has(inputs.nope)", False),
        ("has(steps.a.outputs.nope) || inputs.flag", True),
        ("2 in inputs.list", True),
        ("size(inputs.list) == 3", True),
        ("steps.a.outputs['odd-key']['in'] == 1", True),
        ("inputs.word.matches('^s')", True),
        ("inputs.n > 5 ? 'big' : 'small'", "big"),
        ("timestamp('2025-01-02T03:04:05Z')", "2025-01-02T03:04:05Z"),
        ("duration('90s')", 90.0),
        ("null", None),
        ("inputs", SCOPE["inputs"]),
    ],
)
def test_expressions_have_values(cel: Evaluator, expression: str, value: Any) -> None:
    assert cel.evaluate(expression, SCOPE) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("inputs.nope > 1", "Key not found in map"),
        ("1 / 0", "divide by zero"),
        ("inputs.word > 1", "No matching overloads"),
        ("item.x", "No value with name"),
        ("1.0 / 0.0", "which JSON cannot hold"),
        ("{1: 2}", "keys that are not strings"),
        ("b'x'", "bytes or a type"),
        ("type(1)", "bytes or a type"),
        ("inputs.n +", "Syntax error"),
        ("frob(1)", "undeclared reference to 'frob' (at character 5)"),
        ("topic", "`topic` is not known here"),
        ("steps.a.outputs.big + ''", "an expression may read 65,536"),
    ],
)
def test_an_error_is_a_failure_and_never_a_value(cel: Evaluator, expression: str, reason: str) -> None:
    with pytest.raises(BadExpression) as caught:
        cel.evaluate(expression, SCOPE)
    assert reason in str(caught.value)


def test_only_what_is_referred_to_is_handed_over() -> None:
    def context(text: str) -> Any:
        return _context(module.parse_expression(text), SCOPE)

    assert context("steps.a.outputs.score > inputs.n") == {
        "steps": {"a": {"outputs": {"score": 9}}},
        "inputs": {"n": 7},
    }
    assert context("inputs.list[0] > size(inputs.list)") == {"inputs": {"list": [1, 2, 3]}}
    assert context("has(inputs.zzz.y)") == {"inputs": {}}
    assert context("size(inputs) > inputs.n")["inputs"] is SCOPE["inputs"]
    assert context("inputs.n < size(inputs)")["inputs"] is SCOPE["inputs"]
    assert context("inputs.word.x == item") == {"inputs": {"word": "sea"}}


def test_many_are_evaluated_in_one_round_trip_and_fail_alone(cel: Evaluator) -> None:
    answers = cel.evaluate_many([("inputs.n + 1", SCOPE), ("1 / 0", SCOPE), ("nope", SCOPE), ("inputs.n * 2", SCOPE)])
    assert (answers[0], answers[3]) == (8, 14)
    assert isinstance(answers[1], BadExpression)
    assert isinstance(answers[2], BadExpression)
    assert cel.evaluate_many([]) == []
    assert cel.evaluate_many([("inputs.n + 1", SCOPE)] * 200) == [8] * 200


def test_checks_do_not_evaluate(cel: Evaluator) -> None:
    number, anything, condition, wrong = cel.check(["1 / 0", "inputs.x", "inputs.x > 1", "1 + 'a'"])
    assert (number.type, anything.type, condition.type) == ("INT", "DYN", "BOOL")
    assert "no matching overload" in wrong.error


def test_templates_are_resolved(cel: Evaluator) -> None:
    template = compile_template({"a": "${inputs.n + 1}", "b": "${inputs.word} ${inputs.n + 1}", "c": "${inputs.list}"})
    expected = {"a": 8, "b": "sea 8", "c": [1, 2, 3]}
    assert cel.resolve(template, SCOPE) == expected
    assert asyncio.run(cel.resolve_async(template, SCOPE)) == expected
    with pytest.raises(BadExpression, match=r"^output\.a: `1 / 0` failed"):
        cel.resolve(compile_template({"a": "${1 / 0}"}, "output"), SCOPE)


def test_plain_paths_start_no_process() -> None:
    evaluator = Evaluator()
    template = compile_template({"a": "${inputs.n}"})
    assert evaluator.resolve(template, SCOPE) == {"a": 7}
    assert asyncio.run(evaluator.resolve_async(template, SCOPE)) == {"a": 7}
    assert evaluator._idle == []
    evaluator.close()


# Each of these uses up time or memory. The linter refuses some of them, so they are handed to the child directly: what
# must hold is that the child dies of them and nothing else does.
BOMBS = [
    "[inputs.s]" + ".map(a, a + a)" * 28,
    "[inputs.s]" + ".map(a, [a, a])" * 24,
    "inputs.l.all(x, inputs.l.all(y, (inputs.s + inputs.s + inputs.s + inputs.s).size() > 0))",
    "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" + ".map(a, [a, a, a, a, a, a, a, a, a, a])" * 6,
    "inputs.l.map(x, inputs.l.map(y, inputs.l.map(z, [x, y, z])))",
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_hostile_expression_is_killed_and_the_process_lives_on(cel: Evaluator, bomb: str) -> None:
    assert cel.evaluate("1 + 1", {}) == 2
    before = psutil.Process().memory_info().rss
    frame = msgspec.json.encode(["evaluate", bomb, {"inputs": {"s": "x" * 50_000, "l": list(range(1000))}}])
    ((is_ok, reason),) = cel._ask([frame])
    assert not is_ok
    assert any(word in reason for word in ("more than 100 ms", "more than 600 MB", "budget", "ended the process"))
    assert psutil.Process().memory_info().rss - before < 50 << 20
    assert cel.evaluate("1 + 1", {}) == 2


def test_a_hostile_expression_in_a_batch_harms_no_other(cel: Evaluator) -> None:
    bomb = "[inputs.word]" + ".map(a, [a, a])" * 26
    answers = cel.evaluate_many([("inputs.n + 1", SCOPE), (bomb, SCOPE), ("inputs.n + 2", SCOPE)])
    assert (answers[0], answers[2]) == (8, 9)
    assert isinstance(answers[1], BadExpression)


def test_a_hostile_expression_is_refused_where_recipes_are_checked(cel: Evaluator) -> None:
    (deep,) = cel.check(["(" * 500 + "1" + ")" * 500])
    assert "recursion" in deep.error


def test_memory_is_bounded() -> None:
    evaluator = Evaluator()
    assert evaluator.evaluate("1 + 1", {}) == 2
    limit = psutil.Process(pid_of(evaluator)).rlimit(psutil.RLIMIT_AS)
    assert limit == (600 << 20, 600 << 20)
    evaluator.close()


def test_an_expression_that_needs_too_much_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # With time to spare, memory is what runs out.
    monkeypatch.setattr(module, "_COMMAND", [*module._COMMAND[:3], "20", "20", str(module.MEMORY_BYTES)])
    monkeypatch.setattr(module, "WALL_S", 20.0)
    evaluator = Evaluator()
    bomb = msgspec.json.encode(["evaluate", BOMBS[0], {"inputs": {"s": "x" * 50_000}}])
    fine = msgspec.json.encode(["evaluate", "1 + 1", {}])
    assert evaluator._ask([bomb]) == [[False, "it needs more than 600 MB"]]
    assert evaluator._ask([fine, bomb, fine]) == [[True, 2], [False, "it needs more than 600 MB"], [True, 2]]
    evaluator.close()


def test_an_expression_that_always_ends_the_child_fails_after_a_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = r"""
import os
os.write(1, b"\0\0\0\x10[[true,\"ready\"]]")
os.read(0, 4)
os.kill(os.getpid(), 11)
"""
    monkeypatch.setattr(module, "_COMMAND", [sys.executable, "-c", ready])
    evaluator = Evaluator()
    with pytest.raises(BadExpression, match=r"ended the process that evaluates expressions \(signal 11\)"):
        evaluator.evaluate("1 + 1", {})
    evaluator.close()


def test_a_child_that_was_killed_is_replaced(cel: Evaluator) -> None:
    assert cel.evaluate("1 + 1", {}) == 2
    first = pid_of(cel)
    os.kill(first, signal.SIGKILL)
    assert cel.evaluate("2 + 2", {}) == 4
    assert pid_of(cel) != first


def test_a_child_that_was_stopped_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WALL_S", 0.3)
    evaluator = Evaluator()
    assert evaluator.evaluate("1 + 1", {}) == 2
    os.kill(pid_of(evaluator), signal.SIGSTOP)
    assert evaluator.evaluate("2 + 2", {}) == 4
    evaluator.close()


def test_a_stalled_child_cannot_block_a_large_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WALL_S", 0.3)
    evaluator = Evaluator()
    scope = {"inputs": {"s": "x" * 60_000}}
    requests = [("size(inputs.s)", scope)] * 8
    assert evaluator.evaluate_many(requests) == [60_000] * 8
    os.kill(pid_of(evaluator), signal.SIGSTOP)
    assert evaluator.evaluate_many(requests) == [60_000] * 8
    evaluator.close()


def test_the_event_loop_goes_on_while_an_expression_is_evaluated(cel: Evaluator) -> None:
    async def main() -> tuple[Any, int]:
        ticks = 0
        bomb = asyncio.create_task(cel.evaluate_many_async([("[inputs.word]" + ".map(a, [a, a])" * 26, SCOPE)]))
        while not bomb.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return (await bomb)[0], ticks

    answer, ticks = asyncio.run(main())
    assert isinstance(answer, BadExpression)
    assert ticks >= 5


def test_it_may_be_used_from_many_threads_and_loops(cel: Evaluator) -> None:
    async def several() -> list[Any]:
        return await asyncio.gather(*(cel.evaluate_async("inputs.n + 1", SCOPE) for _ in range(20)))

    with ThreadPoolExecutor(4) as pool:
        plain = [pool.submit(cel.evaluate, "inputs.n + 1", SCOPE) for _ in range(40)]
        loops = [pool.submit(asyncio.run, several()) for _ in range(3)]
        assert [future.result() for future in plain] == [8] * 40
        assert [future.result() for future in loops] == [[8] * 20] * 3


def test_closing_ends_the_child_and_refuses_more() -> None:
    evaluator = Evaluator()
    evaluator.evaluate("1 + 1", {})
    pid = pid_of(evaluator)
    evaluator.close()
    assert not psutil.pid_exists(pid)
    with pytest.raises(Unavailable, match="closed"):
        evaluator.evaluate("1 + 1", {})
    evaluator.close()


def test_closing_ends_what_is_under_way() -> None:
    evaluator = Evaluator()
    evaluator.evaluate("1 + 1", {})
    os.kill(pid_of(evaluator), signal.SIGSTOP)
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            evaluator.evaluate("1 + 1", {})
        except Unavailable as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    evaluator.close()
    thread.join(10)
    assert len(caught) == 1


def test_a_child_that_cannot_start_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    evaluator = Evaluator()
    with pytest.raises(Unavailable, match="did not start"):
        evaluator.evaluate("1 + 1", {})
    evaluator.close()


def test_a_fork_has_a_child_of_its_own(cel: Evaluator) -> None:
    cel.evaluate("1 + 1", {})
    before = pid_of(cel)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            value = cel.evaluate("20 + 1", {})
            os.write(writer, f"{value} {pid_of(cel) != before}".encode())
            cel.close()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert answer.read() == "21 True"
    os.waitpid(pid, 0)
    assert pid_of(cel) == before
    assert cel.evaluate("1 + 2", {}) == 3


def test_the_child_dies_with_its_parent() -> None:
    code = (
        "import os, signal\nfrom windlass.recipe.evaluator import Evaluator\ne = Evaluator()\n"
        "e.evaluate('1 + 1', {})\nprint(e._idle[0].process.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    parent = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
    child = int(parent.stdout)
    until = time.monotonic() + 60
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the child outlived its parent"
        time.sleep(0.01)


EXPENSIVE = "[inputs.word]" + ".map(a, [a, a])" * 26


def test_a_caller_with_expensive_expressions_holds_up_nobody_else() -> None:
    """The other caller's expressions are evaluated while the first has most of its own ahead of it."""
    evaluator = Evaluator()
    bomb, cheap = compile_template({"a": f"${{{EXPENSIVE}}}"}), compile_template({"a": "${inputs.n + 1}"})

    async def main() -> int:
        crowd = [asyncio.create_task(evaluator.resolve_async(bomb, SCOPE, "crowd")) for _ in range(20)]
        await asyncio.wait(crowd, return_when=asyncio.FIRST_COMPLETED)
        for _ in range(3):
            assert await evaluator.resolve_async(cheap, SCOPE, "ada") == {"a": 8}
        under_way = sum(not task.done() for task in crowd)
        for task in crowd:
            task.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
        return under_way

    assert asyncio.run(main()) >= 10
    evaluator.close()


def test_a_spare_child_is_ready_when_one_has_died() -> None:
    evaluator = Evaluator()
    with pytest.raises(BadExpression):
        evaluator.resolve(compile_template(f"${{{EXPENSIVE}}}"), SCOPE, "crowd")
    (spare,) = evaluator._idle
    assert evaluator._next("crowd") is None, "it is not for the caller whose expression ended the other"
    assert evaluator._next("ada") is spare
    assert evaluator.resolve(compile_template("${inputs.n + 1}"), SCOPE, "ada") == 8
    assert evaluator._next("ada") is spare
    evaluator.close()


def test_nothing_is_evaluated_for_a_value_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template with many expensive expressions costs as much as one with two."""
    evaluator = Evaluator()
    asked: list[int] = []
    exchange = Evaluator._exchange

    def counted(self: Evaluator, batch: list[bytes], caller: str) -> Any:
        asked.append(len(batch))
        return exchange(self, batch, caller)

    monkeypatch.setattr(Evaluator, "_exchange", counted)
    many = {f"k{number}": f"${{{number} == 0 ? [] : {EXPENSIVE}}}" for number in range(40)}
    with pytest.raises(BadExpression, match="more than 100 ms"):
        evaluator.resolve(compile_template(many), SCOPE, "crowd")
    # All at once; then one by one up to the first that fails, which is tried again if the machine stalled.
    assert asked[0] == 40
    assert set(asked[1:]) == {1} and len(asked) <= 5
    evaluator.close()
