"""The smallest recipe: one step.

windlass run windlass.examples.hello --input name=Ada
"""

import windlass as wl


@wl.step
def greet(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}!"


@wl.recipe
def hello(name: str = "world"):
    """Greet one person."""
    return greet(name)
