"""What is asked of a job."""

from __future__ import annotations

from windlass.api.wire.wire import Asked, LongText


class CancelRequest(Asked):
    """Why a job is cancelled; it is in its events."""

    reason: LongText = ""
