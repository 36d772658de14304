"""The first minute: a photo book, made slowly enough to be watched. `windlass up` begins with it.

It fans out, has a step that fails once, a branch that is not taken, and a step that waits until a person sends:

    windlass send JOB approved --body '{"by": "ada"}'
"""

import asyncio

import windlass as wl

QUEUE = "demo"  # a separate worker serves it, so killing that worker stops no other work
BATHS = ("developer", "stop bath", "fixer", "water")


@wl.step(queue=QUEUE)
async def choose_photos(ctx: wl.Context, city: str, photos: int, pace: float) -> list:
    ctx.progress(0, "looking through 160 pictures")
    await asyncio.sleep(pace * 3)
    return [f"{city} {n + 1}" for n in range(min(photos, 200))]


@wl.step(queue=QUEUE, timeout="5m")
async def develop(ctx: wl.Context, photo: str, pace: float) -> dict:
    """Take one picture through four baths. It saves the bath, so another worker continues with the next one."""
    for bath in range(ctx.checkpoint or 0, len(BATHS)):
        ctx.progress(100 * bath / len(BATHS), f"{photo}: in the {BATHS[bath]}")
        await asyncio.sleep(pace * 1.5)
        ctx.save(bath + 1)
    return {"photo": photo, "attempts": ctx.attempt}


@wl.step(queue=QUEUE, retry=wl.Retry(max_attempts=4, base_s=2))
async def ask_weather(ctx: wl.Context, city: str, pace: float) -> dict:
    """Ask for the weather; the first call always fails."""
    ctx.log.info("asking for the weather in %s", city)
    await asyncio.sleep(pace * 2)
    if ctx.attempt == 1:
        raise ConnectionError("the weather service hung up")
    return {"sky": "sun"}


@wl.step(queue=QUEUE)
async def put_together(ctx: wl.Context, title: str, pages: list, pace: float) -> dict:
    for fifth in range(5):
        ctx.progress(20 * fifth, f"{title}: page {fifth * len(pages) // 5 + 1} of {len(pages)}")
        await asyncio.sleep(pace)
    return {"title": title, "pages": len(pages)}


@wl.recipe(name="first-minute")
def first_minute(city: str = "Lisbon", photos: int = 10, pace: float = 1.0):
    """A photo book: develop every picture, lay out a proof, print it when a person approves. `pace` slows it down."""
    pictures = develop.map(choose_photos(city, photos, pace), pace=pace)
    weather = ask_weather(city, pace)
    umbrellas = put_together("Umbrellas", [], pace).named("add_umbrellas").when(weather["sky"] == "rain")
    proof = put_together(city, pictures, pace).named("lay_out").after(weather)
    verdict = wl.wait_for("approved").after(proof)
    book = put_together(city, pictures, pace).named("print_book").after(verdict)
    return {"book": book, "verdict": verdict, "extras": umbrellas}
