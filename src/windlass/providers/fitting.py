"""What a provider made, as a row can hold it."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from windlass.core.external import Said
from windlass.store.artifact import REFERENCE_KEY, Artifacts


async def fitting(artifacts: Artifacts, said: Said, max_bytes: int) -> Said:
    """The same statement; an output that is too big for a row goes to the artifact store, and a reference stays.

    So does one that looks like a reference itself: whoever is outside must not name what others have stored.

    Call it before `answer`, never inside a transaction. Raises what the store raises: then nothing was settled, and
    the provider is asked again.
    """
    if said.output is None:
        return said
    is_reference = _is_reference(said.output)
    if not is_reference and len(said.output) <= max_bytes // 4:
        return said
    body = said.output.encode()
    if not is_reference and len(body) <= max_bytes:
        return said
    ref = await artifacts.put(body)
    return replace(said, output=msgspec.json.encode(ref.as_json()).decode())


def _is_reference(text: str) -> bool:
    try:
        return list(msgspec.json.decode(text, type=dict[str, msgspec.Raw])) == [REFERENCE_KEY]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # No map, or no JSON at all: that is found out by whoever stores it.
        return False
