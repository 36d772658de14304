"""What the process says of itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from windlass.api.wire.wire import Told


class Health(Told):
    """The process runs and answers; nothing else is asked."""

    status: Literal["ok"] = "ok"


class Readiness(Told):
    """Whether the process can do its work now."""

    status: Literal["ready", "not_ready"]
    parts: dict[str, str] = Field(
        description="Each part that was looked at: `ok`, or what is wrong with it.",
        examples=[{"database": "ok", "migrations": "ok", "loops": "ok"}],
    )
    engines: int | None = Field(
        description="Processes whose engine loops turned in the last 30 s, here or elsewhere. Without any, jobs are "
        "accepted and wait."
    )


class Version(Told):
    """The release that answers."""

    version: str = Field(examples=["0.1.0"])
    console: Literal["full", "lite"] = Field(description="Which console is served at /console/.")
    console_build: str = Field(description="Another one for every build of the console.", examples=["5f2c0b1f9a77"])
