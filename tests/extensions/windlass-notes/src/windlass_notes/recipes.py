"""A recipe whose step reads and writes the extension's own table."""

import windlass as wl
from windlass.extension import parts


@wl.step
async def shorten(note: int) -> str:
    """Cut a note to ten characters."""
    here = parts("notes")
    async with here.transaction() as own:
        [row] = await own.fetch("note_one", note)
        short = row["text"][:10]
        await own.execute("note_change", note, short)
    return short


@wl.recipe
def shorten_note(note: int):
    return shorten(note)
