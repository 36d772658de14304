"""The console's session on the wire."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from windlass.api.wire.wire import Asked, Time, Told, storable

Credential = Annotated[str, Field(min_length=1, max_length=4_096), AfterValidator(storable)]


class SignIn(Asked):
    """Either the token of a link, which is valid once, or a key."""

    token: Credential | None = Field(default=None, description="The token in the URL of a link.")
    key: Credential | None = Field(default=None, description="An API key.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.token is None) == (self.key is None):
            raise ValueError("give either a token or a key")
        return self


class Demo(Told):
    """The example job of `windlass up`."""

    job_id: UUID | None = Field(description="The newest example job, if there is one.")
    can_kill: bool = Field(description="Whether a demo worker runs that may be killed.")


class ConsolePage(Told):
    """A page of an extension."""

    title: str
    icon: str = Field(description="The name of an icon. For an unknown name the console shows a piece of a puzzle.")
    path: str = Field(description="The path of the page in the console.", examples=["/x/notes"])
    module: str = Field(description="The ES module that renders the page.", examples=["/console/x/notes/notes.js"])


class SessionDocument(Told):
    """The signed-in caller, and the facts that the page needs about the server."""

    caller: str
    role: Literal["admin", "caller"]
    scopes: list[str] = Field(description="As `Scope`; a Membership service may name others.")
    csrf: str = Field(description="Send it as `X-Windlass-CSRF` with every change that uses the cookie.")
    expires_at: Time = Field(description="The time at which an unused session ends.")
    version: str = Field(examples=["0.1.0"])
    console: Literal["full", "lite"]
    pages: list[ConsolePage] = Field(description="The pages of extensions.")
    demo: Demo | None = Field(description="For admins of `windlass up`; null otherwise.")
