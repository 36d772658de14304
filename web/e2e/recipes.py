"""What the browser tests run: recipes that end at once, that wait to be told, and that fail until they are mended."""

# ruff: noqa: D103 (steps as a newcomer would write them)

import asyncio
import os
from pathlib import Path
from typing import Literal

import windlass as wl


@wl.step
def greet(name: str, times: int, tone: str) -> list:
    return [f"{tone}: hello, {name}" for _ in range(times)]


@wl.recipe
def greeting(name: str, times: int = 1, tone: Literal["warm", "cool"] = "warm", is_public: bool = False):
    """Greet somebody, several times if need be."""
    return {"greetings": greet(name, times, tone), "is_public": is_public}


@wl.step
async def prepare(pace: float) -> list:
    await asyncio.sleep(pace)
    return list(range(8))


@wl.step
async def paint(ctx: wl.Context, tile: int, pace: float) -> int:
    for quarter in range(4):
        ctx.progress(25 * quarter, f"tile {tile}")
        await asyncio.sleep(pace / 4 * (1 + tile % 3))
    return tile


@wl.step
async def frame(tiles: list) -> int:
    return len(tiles)


@wl.recipe
def mosaic(pace: float = 0.5):
    """Eight tiles side by side, then a frame."""
    return frame(paint.map(prepare(pace), pace=pace))


@wl.recipe
def errand(place: str = "town"):
    """Waits until it is told to go."""
    return {"place": place, "told": wl.wait_for("go")}


@wl.step
def draft(topic: str) -> dict:
    return {"topic": topic, "text": f"All about {topic}"}


@wl.step
def publish(page: dict, verdict: dict) -> str:
    return f"{page['text']} (approved by {verdict['by']})"


@wl.recipe
def article(topic: str = "tides"):
    """The recipe of the guide on waiting for people, to the letter."""
    page = draft(topic)
    verdict = wl.wait_for("approved", match={"topic": topic}, timeout="2d").after(page)
    return publish(page, verdict).when(verdict["by"] != "")


@wl.recipe
def nap():
    """Sleeps for as long as anybody looks."""
    return wl.sleep("1h")


@wl.step(cost=5)
def spend() -> str:
    return "spent"


@wl.recipe
def dear():
    """A step that is dear: a small budget holds it."""
    return spend()


@wl.step
def choose() -> list:
    raise RuntimeError("there is nothing to choose from")


@wl.recipe
def hopeless():
    """A fan-out that can never begin, and what needs it."""
    return frame(paint.map(choose(), pace=0.1))


@wl.step
def buy(item: str) -> str:
    return item


@wl.step(retry=wl.Retry(max_attempts=2, base_s=0.1))
def open_shop(item: str) -> str:
    try:
        Path(os.environ["E2E_MENDED"]).read_text(encoding="utf-8")
    except OSError as error:
        raise RuntimeError(f"the shop that sells {item} is closed") from error
    return f"{item} sold"


@wl.step
def wrap(sold: str) -> str:
    return f"{sold}, wrapped"


@wl.recipe
def shopping(item: str = "tea"):
    """Fails until somebody mends the shop."""
    return wrap(open_shop(buy(item)))


@wl.step
def measure(cloth: str) -> dict:
    return {"cloth": cloth, "length": 3}


@wl.step
def cut(measured: dict, colour: str) -> str:
    return f"{colour} {measured['cloth']}, {measured['length']} m"


@wl.step
def sew(cut: str) -> str:
    return f"a coat of {cut}"


@wl.recipe
def coat(cloth: str = "wool", colour: str = "blue"):
    """Three steps in a row, to be run again from any of them."""
    return sew(cut(measure(cloth), colour))


@wl.step
def numbers(count: int) -> list:
    return list(range(count))


@wl.step
async def tick(no: int, pace: float) -> int:
    await asyncio.sleep(pace * (1 + no))
    return no


@wl.recipe
def ticking(count: int = 60, pace: float = 0.3):
    """Steps that end one after the other, so that something happens all the while."""
    return tick.map(numbers(count), pace=pace)


@wl.step
def release(page: dict, verdict: dict) -> str:
    return f"{page['text']} (approved by {', '.join(verdict['by'])})"


@wl.recipe
def reviewed(topic: str = "tides"):
    """Asks people before it publishes."""
    page = draft(topic)
    return release(page, wl.approve("Publish the page?", show={"page": page}, expires="2d"))
