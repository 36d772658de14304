"""The recipes that Windlass is measured with: handlers that only count themselves."""

import windlass as wl
from bench.counter import tick
from bench.system import slow_body


@wl.step
async def body(n: int) -> int:
    """Do no work but a tick."""
    tick()
    return n


@wl.step
async def numbers(width: int) -> list[int]:
    """Return the list of a fan-out, known only at run time."""
    return list(range(width))


@wl.step
async def length(values: list[int]) -> int:
    """Join a fan-out: it needs the result of every step."""
    return len(values)


@wl.step
async def wait_for_release() -> None:
    """Run until the measurement releases it."""
    await slow_body()


@wl.step
async def render_elsewhere() -> wl.Parked:
    """Wait for an external answer, for longer than the measurement."""
    return wl.Parked("a provider")


@wl.recipe
def one(n: int):
    return body(n)


@wl.recipe
def three(n: int):
    return body(body(body(n)))


@wl.recipe
def fan(width: int):
    return length(body.map(numbers(width)))


@wl.recipe
def slow():
    return wait_for_release()


@wl.recipe
def parked():
    return render_elsewhere()


@wl.recipe
def elsewhere(n: int):
    return wl.call("elsewhere", model="any", input={"n": n})
