"""Who is signed in at the console, on the wire."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from windlass.api.wire.wire import Asked, Time, Told, storable

Credential = Annotated[str, Field(min_length=1, max_length=4_096), AfterValidator(storable)]


class SignIn(Asked):
    """Either the token of a link, which is good once, or a key."""

    token: Credential | None = Field(default=None, description="What stands in the address of a link.")
    key: Credential | None = Field(default=None, description="An API key.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.token is None) == (self.key is None):
            raise ValueError("give either a token or a key")
        return self


class Demo(Told):
    """The example job of `windlass up`."""

    job_id: UUID | None = Field(description="The newest example job, if there is one.")
    can_kill: bool = Field(description="Whether there is a worker that may be killed to see what happens.")


class ConsolePage(Told):
    """A page of an extension."""

    title: str
    icon: str = Field(description="The name of a drawing; the console shows a piece of a puzzle for one it lacks.")
    path: str = Field(description="Where it is in the console.", examples=["/x/notes"])
    module: str = Field(description="The ES module that draws it.", examples=["/console/x/notes/notes.js"])


class SessionDocument(Told):
    """Who is signed in, and what the page needs to know of the server."""

    caller: str
    role: Literal["admin", "caller"]
    scopes: list[str]
    csrf: str = Field(description="To be sent as `X-Windlass-CSRF` with every change that is made with the cookie.")
    expires_at: Time = Field(description="When the session ends if it is not used until then.")
    version: str = Field(examples=["0.1.0"])
    console: Literal["full", "lite"]
    pages: list[ConsolePage] = Field(description="The pages that extensions bring.")
    demo: Demo | None = Field(description="In `windlass up`, for admins; else null.")
