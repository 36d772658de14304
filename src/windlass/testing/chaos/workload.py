"""The app that the workers of a chaos run serve: every kind of handler and of graph, small enough to run by hundreds.

A handler's result depends on its arguments alone, so the expected result of a job is known (`answers.py`). Whether an
attempt fails is random, and the attempt seeds the randomness.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import zlib
from typing import Any

import windlass as wl
from windlass.testing.chaos.journal import journal
from windlass.worker.context import Context

BULK = 300 * 1024
WIDE = 120
PATIENT = wl.Retry(max_attempts=25, base_s=0.1, factor=1.5, cap_s=1.0)
PARKED_WITHIN_S = 2.0
APPROVED = "approved"


def luck(ctx: Context, sides: int) -> int:
    """Roll a die; the same attempt always rolls the same number."""
    return zlib.crc32(f"{ctx.key}#{ctx.attempt}".encode()) % sides


@wl.step(retry=PATIENT)
async def quick(n: int, ctx: Context) -> int:
    """Add one."""
    with journal(ctx):
        return n + 1


@wl.step(retry=PATIENT)
def threaded(n: int, ctx: Context) -> int:
    """Double the number, in a thread, after a short wait."""
    with journal(ctx):
        time.sleep(0.02)
        return n * 2


@wl.step(cpu=True, retry=PATIENT, timeout="30s")
def crunch(n: int, ctx: Context) -> int:
    """Keep a separate process busy."""
    with journal(ctx):
        value = n
        for _ in range(20_000):
            value = (value * 31 + 7) % 1_000_003
        return value


@wl.step(retry=PATIENT)
async def flaky(n: int, ctx: Context) -> int:
    """Fail one attempt in three."""
    with journal(ctx):
        if luck(ctx, 3) == 0:
            raise wl.Transient("bad luck")
        return n + 10


@wl.step(retry=PATIENT)
async def slow(n: int, ctx: Context) -> int:
    """Take one to three seconds, and report progress."""
    with journal(ctx):
        for part in range(4):
            ctx.progress(25 * part, "on the way")
            await asyncio.sleep((1 + n % 3) / 4)
        return n + 100


@wl.step(retry=PATIENT)
def slow_threaded(n: int, ctx: Context) -> int:
    """Take one or two seconds, in a thread."""
    with journal(ctx):
        time.sleep(1 + n % 2)
        return n + 1000


@wl.step(retry=PATIENT)
async def snoozing(n: int, ctx: Context) -> Any:
    """Snooze once or twice, then return."""
    with journal(ctx):
        times = int(ctx.checkpoint or 0)
        if times < 1 + n % 2:
            ctx.save(times + 1)
            return wl.Snooze(0.3)
        return n + 5


@wl.step(parks=True)
async def parking(n: int, ctx: Context) -> wl.Parked:
    """Wait for a signal that never comes."""
    with journal(ctx):
        return wl.Parked(f"word {n}", within_s=PARKED_WITHIN_S)


@wl.step
async def hopeless(n: int, ctx: Context) -> int:
    """Fail for good."""
    with journal(ctx):
        raise wl.Permanent(f"{n} can never be")


@wl.step(retry=PATIENT)
async def bulky(n: int, ctx: Context) -> dict[str, Any]:
    """Return an output too big for a row."""
    with journal(ctx):
        return {"n": n, "text": "x" * BULK}


@wl.step(retry=PATIENT)
async def measure(bulk: dict[str, Any], ctx: Context) -> int:
    """Measure the output of `bulky`."""
    with journal(ctx):
        return len(bulk["text"]) + int(bulk["n"])


@wl.step(retry=PATIENT)
async def items(n: int, ctx: Context) -> list[int]:
    """Return a list to fan out over."""
    with journal(ctx):
        return list(range(n, n + 3 + n % 6))


@wl.step(retry=PATIENT)
def add_up(numbers: list[int], ctx: Context) -> int:
    """Join a fan-out."""
    with journal(ctx):
        return sum(numbers)


@wl.step(provider="painter", retry=PATIENT, wait="40s", timeout="30s", places=2, concurrency="studio", limit=5, takes=2)
async def painted(n: int, ctx: Context) -> Any:
    """Use a provider, with two of its slots. Two of these steps run at once, and one unit of the key is left."""
    with journal(ctx):
        return await ctx.provider.start(model="paint", input=errand(n))


@wl.step(retry=PATIENT)
async def told(made: dict[str, Any], ctx: Context) -> int:
    """Read a provider's output."""
    with journal(ctx):
        return int(made["echo"]["n"])


@wl.step(retry=PATIENT)
async def errands(n: int, ctx: Context) -> list[dict[str, Any]]:
    """Return the inputs for several provider steps."""
    with journal(ctx):
        return [errand(item) for item in range(n, n + 2 + n % 3)]


def errand(n: int) -> dict[str, Any]:
    """Return the input for a provider; some inputs take a while."""
    return {"n": n, "fake": {"seconds": 3.0 if n % 9 == 0 else n % 5 / 4}}


painter = wl.provider("painter", retry=PATIENT, wait="40s", timeout="30s")
singer = wl.provider("singer", retry=PATIENT, wait="40s", timeout="30s")


@wl.recipe
def chain(n: int) -> Any:
    """Three steps, one after the other."""
    return quick(threaded(quick(n)))


@wl.recipe
def diamond(n: int) -> Any:
    """One, then two side by side, then one."""
    first = quick(n)
    return add_up([threaded(first), flaky(first)])


@wl.recipe
def fan(n: int) -> Any:
    """As many steps as a list has items, then the join."""
    return add_up(flaky.map(items(n)))


@wl.recipe
def cpu_fan(n: int) -> Any:
    """As many processes as a list has items, then the join."""
    return add_up(crunch.map(items(n)))


@wl.recipe
def choice(n: int) -> Any:
    """One of two branches, and a step after both."""
    first = quick(n)
    even = threaded(first).when(first % 2 == 0)
    odd = flaky(first).when(first % 2 == 1)
    return {"even": even, "odd": odd, "after": quick(first).after(even, odd)}


@wl.recipe
def patient(n: int) -> Any:
    """A timer, a snooze, long steps."""
    rested = wl.sleep(0.5)
    first = snoozing(n).after(rested)
    return add_up([slow(first), slow_threaded(first)])


@wl.recipe
def bulk(n: int) -> Any:
    """An output that travels by reference."""
    return measure(bulky(n))


@wl.recipe
def family(n: int) -> Any:
    """Jobs as steps of a job: one, and one for each item."""
    return add_up([fan(n), add_up(chain.map(items(n)))])


@wl.recipe
def forsaken(n: int) -> Any:
    """Wait for a signal that never comes; fail."""
    return quick(parking(n))


@wl.recipe
def doomed(n: int) -> Any:
    """Fail one branch, after which nothing can run; the other branch completes."""
    return add_up([hopeless(n), slow(n)])


@wl.recipe
def picture(n: int) -> Any:
    """A provider's output, and the steps after it."""
    return quick(told(painted(n)))


@wl.recipe
def album(n: int) -> Any:
    """Provider steps side by side, without a handler."""
    songs = told.map(singer.map(errands(n), model="choir/sing"))
    return add_up([told(painter(model="cover", input=errand_of(n))), add_up(songs)])


@wl.step(retry=PATIENT)
async def errand_of(n: int, ctx: Context) -> dict[str, Any]:
    """Return the input for one provider step."""
    with journal(ctx):
        return errand(n)


@wl.recipe
def approval(n: int) -> Any:
    """Continue when the event arrives, however early that is."""
    word = wl.wait_for(APPROVED, match={"n": n})
    return quick(n).after(word)


@wl.step(retry=PATIENT)
async def many(n: int, ctx: Context) -> list[int]:
    """Return a list longer than one batch of the router."""
    with journal(ctx):
        return list(range(n, n + WIDE))


@wl.recipe
def wide(n: int) -> Any:
    """A fan-out whose children are created in several batches, while the first children already end."""
    return add_up(quick.map(many(n)))


@wl.step(retry=PATIENT)
async def deadly(n: int, ctx: Context) -> int:
    """Kill the process that runs it."""
    with journal(ctx):
        os.kill(os.getpid(), signal.SIGKILL)
        return n


@wl.recipe
def poison(n: int) -> Any:
    """A job that can never complete, and must not take another job with it."""
    return deadly(n)


# Submitted at fixed positions in the order of jobs, since a few of them are enough for a minute.
POISON = poison
RECIPES = (
    wide,
    chain,
    diamond,
    fan,
    cpu_fan,
    choice,
    patient,
    bulk,
    family,
    picture,
    album,
    approval,
    forsaken,
    doomed,
    poison,
)
