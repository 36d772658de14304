"""The recipes of test M: many plain steps, alone and beside a provider step. Separate, since they compile slowly."""

import windlass as wl
from bench.windlass_app import body

# The independent steps of a job of `plain` or `mixed`.
PLAIN_STEPS = 1_000


@wl.recipe
def plain(n: int):
    return [body(n).named(f"s{i}") for i in range(PLAIN_STEPS)]


@wl.recipe
def mixed(n: int):
    away = wl.call("elsewhere", model="any", input={"n": n})
    return [away, *(body(n).named(f"s{i}") for i in range(PLAIN_STEPS))]
