"""The demo of `windlass up` on the wire."""

from __future__ import annotations

from uuid import UUID

from windlass.api.wire.wire import Told


class KilledWorker(Told):
    """The worker that was killed. Its steps run elsewhere when its lease expires."""

    worker: UUID
    pid: int
