"""A refusal on the wire: RFC 9457, and what a program needs besides."""

from __future__ import annotations

from pydantic import Field

from windlass.api.wire.wire import Told


class FieldError(Told):
    """One thing that does not fit."""

    pointer: str = Field(description="Where: a JSON pointer into the body, or `?name` for a query parameter.")
    message: str


class Problem(Told):
    """What went wrong, and what to do next."""

    type: str = Field(description="A page of this server about this kind of problem.", examples=["/problems/not_found"])
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path that was asked for.")
    code: str = Field(description="A stable word for programs.", examples=["not_found"])
    request_id: str
    hint: str = Field(description="What to do next.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    errors: list[FieldError] = Field(default_factory=list)
