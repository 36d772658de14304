"""What the API's tests submit."""

from __future__ import annotations

import windlass as wl


@wl.step
def greet(name: str) -> str:
    return f"Hello, {name}!"


@wl.recipe
def hello(name: str = "world"):  # type: ignore[no-untyped-def]
    """Greets somebody by name."""
    return greet(name)


@wl.step
def fill(size: int) -> str:
    """An output of this many characters; above the inline limit it is an artifact."""
    return "0123456789"[: size % 10] + "0123456789" * (size // 10)


@wl.recipe
def large(size: int):  # type: ignore[no-untyped-def]
    return fill(size)


@wl.step(retry=wl.Retry(max_attempts=1))
def break_down(reason: str) -> str:
    raise wl.Permanent(reason)


@wl.recipe
def failing(reason: str = "no reason"):  # type: ignore[no-untyped-def]
    return break_down(reason)


@wl.step
def count(many: int) -> list:  # type: ignore[type-arg]
    return list(range(many))


@wl.step
def double(number: int) -> int:
    return 2 * number


@wl.step
def total(numbers: list) -> int:  # type: ignore[type-arg]
    return sum(numbers)


@wl.step
def boast(sum_: int) -> str:
    return f"{sum_}!"


@wl.recipe
def fan(many: int = 3, limit: int = 100):  # type: ignore[no-untyped-def]
    doubled = double.map(count(many))
    summed = total(doubled)
    boasted = boast(summed).when(summed > limit)
    return {"total": summed, "boast": boasted}


app = wl.App()
app.add([hello, large, failing, fan])
