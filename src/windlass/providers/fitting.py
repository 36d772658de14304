"""What a provider made, as a row can hold it."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.external import Said
from windlass.store.artifact import Artifacts, fitted


async def fitting(artifacts: Artifacts, said: Said, max_bytes: int) -> Said:
    """The same statement, with its output as a row may hold it (`store/artifact.py`).

    Call it before `answer`, never inside a transaction. Raises what the store raises: then nothing was settled, and
    the provider is asked again.
    """
    if said.output is None:
        return said
    return replace(said, output=await fitted(artifacts, said.output, max_bytes))
