"""The state of the process."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from windlass.api.wire.wire import Time, Told


class Health(Told):
    """The process runs and responds. This checks nothing more."""

    status: Literal["ok"] = "ok"


class MissingHandler(Told):
    """A handler that queued steps need and that no live worker of their queue has."""

    queue: str
    handler: str
    since: Time | None = Field(
        description="The last sign of a worker with the handler. If there was none: the creation of a waiting job."
    )
    worker: UUID | None = Field(description="The worker that had it last, if any did in the last 30 days.")


class Readiness(Told):
    """Whether the process can work now."""

    status: Literal["ready", "not_ready"]
    parts: dict[str, str] = Field(
        description="Each part that was checked: `ok`, or the problem. `migrations` may also be `newer than this "
        "release, compatible`: another release has migrated the database, and this release continues to work.",
        examples=[{"database": "ok", "migrations": "ok", "loops": "ok"}],
    )
    engines: int | None = Field(
        description="Processes of the installation whose engine loops ran in the last 30 s. With 0, jobs are "
        "accepted and wait."
    )
    missing_handlers: list[MissingHandler] = Field(
        default=[],
        description="Handlers that queued steps need and no live worker has. The process is still ready: the "
        "steps wait until a worker that has the handler starts.",
    )


class Version(Told):
    """The release that responds."""

    version: str = Field(examples=["0.1.0"])
    console: Literal["full", "lite"] = Field(description="Which console is served at /console/.")
    console_build: str = Field(
        description="An id that changes with every build of the console.", examples=["5f2c0b1f9a77"]
    )
