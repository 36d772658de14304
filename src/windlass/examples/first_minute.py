"""The first minute: a photo book, made slowly enough to be watched.

`windlass up` runs it for whoever opens the console for the first time, with a worker of its own that may be killed. It
has one of everything: a fan-out, a step that fails once and is tried again, a branch that is not taken, and a step that
waits for a person:

    windlass send JOB approved --body '{"by": "ada"}'
"""

import asyncio

import windlass as wl

# Served by the demo's own worker alone: killing that one must stop nobody else's work.
QUEUE = "demo"
BATHS = ("developer", "stop bath", "fixer", "water")


@wl.step(queue=QUEUE)
async def choose_photos(ctx: wl.Context, city: str, photos: int, pace: float) -> list:
    """Look through the holiday's pictures and keep the best."""
    for seen in range(4):
        ctx.progress(25 * seen, f"{40 * seen} of 160 pictures seen")
        await asyncio.sleep(pace * 0.75)
    return [f"{city} {n + 1}" for n in range(photos)]


@wl.step(queue=QUEUE, timeout="5m")
async def develop(ctx: wl.Context, photo: str, pace: float) -> dict:
    """One picture through four baths. It saves where it is, so another worker goes on with the next bath."""
    done = ctx.checkpoint or 0
    for bath in range(done, len(BATHS)):
        ctx.progress(100 * bath / len(BATHS), f"{photo}: in the {BATHS[bath]}")
        await asyncio.sleep(pace * 1.5)
        ctx.save(bath + 1)
    return {"photo": photo, "baths": len(BATHS), "attempt": ctx.attempt}


@wl.step(queue=QUEUE, retry=wl.Retry(max_attempts=4, base_s=2))
async def ask_weather(ctx: wl.Context, city: str, pace: float) -> dict:
    """Ask what the weather was. The line is bad, and the first call is always cut off."""
    ctx.log.info("asking for the weather in %s", city)
    await asyncio.sleep(pace * 2)
    if ctx.attempt == 1:
        raise ConnectionError("the weather service hung up")
    return {"city": city, "is_rainy": False}


@wl.step(queue=QUEUE)
async def add_umbrellas(city: str, pace: float) -> str:
    """Only for a holiday in the rain, which this one was not."""
    await asyncio.sleep(pace)
    return f"umbrellas of {city}"


@wl.step(queue=QUEUE)
async def lay_out(ctx: wl.Context, city: str, photos: list, weather: dict, pace: float) -> dict:
    """Put the pictures on pages, and show a proof to whoever decides."""
    for page, photo in enumerate(photos):
        ctx.progress(100 * page / len(photos), f"page {page + 1}: {photo['photo']}")
        await asyncio.sleep(pace * 4 / len(photos))
    sky = "rain" if weather["is_rainy"] else "sun"
    ctx.preview({"title": f"{city} in the {sky}", "pages": len(photos)})
    return {"title": f"{city} in the {sky}", "pages": len(photos)}


@wl.step(queue=QUEUE)
async def print_book(ctx: wl.Context, book: dict, verdict: dict, pace: float) -> dict:
    """Print what a person has approved."""
    for page in range(book["pages"]):
        ctx.progress(100 * page / book["pages"], f"page {page + 1} of {book['pages']}")
        await asyncio.sleep(pace * 5 / book["pages"])
    return {**book, "approved_by": verdict.get("by", "somebody"), "is_printed": True}


@wl.recipe(name="first-minute")
def first_minute(city: str = "Lisbon", photos: int = 10, pace: float = 1.0):
    """A photo book: every picture by itself, one proof, printed when a person says so. `pace` slows it down."""
    chosen = choose_photos(city, photos, pace)
    pictures = develop.map(chosen, pace=pace)
    weather = ask_weather(city, pace)
    umbrellas = add_umbrellas(city, pace).when(weather["is_rainy"])
    proof = lay_out(city, pictures, weather, pace)
    verdict = wl.wait_for("approved").after(proof)
    return {"book": print_book(proof, verdict, pace), "extras": umbrellas}
