"""What the process says of itself."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from windlass.api.wire.wire import Time, Told


class Health(Told):
    """The process runs and answers; nothing else is asked."""

    status: Literal["ok"] = "ok"


class MissingHandler(Told):
    """A handler that queued steps need and no live worker of their queue has."""

    queue: str
    handler: str
    since: Time | None = Field(
        description="When the last worker that had it left or was last heard of, else when a job that waits was made."
    )
    worker: UUID | None = Field(description="The worker that had it last, if any did in the last 30 days.")


class Readiness(Told):
    """Whether the process can do its work now."""

    status: Literal["ready", "not_ready"]
    parts: dict[str, str] = Field(
        description="Each part that was looked at: `ok`, or what is wrong with it. `migrations` may also be `newer "
        "than this release, compatible`: another release has migrated the database, and this one goes on working.",
        examples=[{"database": "ok", "migrations": "ok", "loops": "ok"}],
    )
    engines: int | None = Field(
        description="Processes whose engine loops turned in the last 30 s, here or elsewhere. Without any, jobs are "
        "accepted and wait."
    )
    missing_handlers: list[MissingHandler] = Field(
        default=[],
        description="Handlers that queued steps need and no live worker has. The process is ready all the same: the "
        "steps wait until a worker that has the handler starts.",
    )


class Version(Told):
    """The release that answers."""

    version: str = Field(examples=["0.1.0"])
    console: Literal["full", "lite"] = Field(description="Which console is served at /console/.")
    console_build: str = Field(description="Another one for every build of the console.", examples=["5f2c0b1f9a77"])
