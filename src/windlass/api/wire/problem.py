"""Problems on the wire: RFC 9457, with more fields for programs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from windlass.api.wire.wire import Told
from windlass.pure.problem import KINDS

Code = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "enum": sorted(KINDS),
            "description": "A stable word for programs.",
            "examples": ["not_found"],
        }
    ),
]


class FieldError(Told):
    """One fault of the request."""

    pointer: str = Field(description="The place: a JSON pointer into the body, or `?name` for a query parameter.")
    message: str


class Problem(Told):
    """An error, and what to do next."""

    type: str = Field(description="A page of this server about this kind of problem.", examples=["/problems/not_found"])
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path of the request.")
    code: Code
    request_id: str
    hint: str = Field(description="What to do next.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    errors: list[FieldError] = Field(default_factory=list)


class Denial(Problem):
    """The policy does not allow a job. The job is kept in the state DENIED."""

    job_id: str = Field(description="The denied job.")
    rule: str = Field(description="The rule of the policy that denies it.")
