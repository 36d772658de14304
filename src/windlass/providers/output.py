"""Makes a provider's output fit into a row."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.external import Said
from windlass.store.artifact import Artifacts, fitted


async def fit_output(artifacts: Artifacts, said: Said, max_bytes: int) -> Said:
    """Store an output that is too large for a row as an artifact (`store/artifact.py`).

    Call it before `answer`, never inside a transaction. Raises the store's errors: then nothing was settled, and the
    provider is polled again.
    """
    if said.output is None:
        return said
    return replace(said, output=await fitted(artifacts, said.output, max_bytes))
