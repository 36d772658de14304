"""What a provider made, as a row can hold it."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from windlass.core.external import Said
from windlass.store.artifact import Artifacts


async def fitting(artifacts: Artifacts, said: Said, max_bytes: int) -> Said:
    """The same statement; an output that is too big for a row goes to the artifact store, and a reference stays.

    Call it before `answer`, never inside a transaction. Raises what the store raises: then nothing was settled, and
    the provider is asked again.
    """
    if said.output is None or len(said.output) <= max_bytes // 4:
        return said
    body = said.output.encode()
    if len(body) <= max_bytes:
        return said
    ref = await artifacts.put(body)
    return replace(said, output=msgspec.json.encode(ref.as_json()).decode())
