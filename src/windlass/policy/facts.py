"""A question in the form in which rules compare it. A part is made when the first rule needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from windlass.policy.question import Question, fold
from windlass.policy.when import Reads, Undecided, activation_of

T = TypeVar("T")

_YES = frozenset({"true", "1", "yes"})
_MCP_FIELDS = ("server", "tool", "resource", "action")
_REPO_HOST, _REPO_URL = "repo_host", "repo_url"


class Once(Generic[T]):
    """A property that is made once. Python 3.11's own takes a lock, which is the larger part of its cost."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        # The next access finds the value in the instance, and does not come here.
        value = self._make(instance)
        instance.__dict__[self._name] = value
        return value


class Facts:
    """A question, and its names without case and surrounding spaces."""

    def __init__(self, question: Question, default_tenant: str, reads: Reads) -> None:
        self.question = question
        self.tenant = fold(question.tenant) or default_tenant
        self._reads = reads

    @Once
    def capability(self) -> str:
        """The capability."""
        return fold(self.question.capability)

    @Once
    def pack_id(self) -> str:
        """The pack."""
        return fold(self.question.pack_id)

    @Once
    def actor_id(self) -> str:
        """The actor."""
        return fold(self.question.actor_id)

    @Once
    def actor_type(self) -> str:
        """The actor's type."""
        return fold(self.question.actor_type)

    @Once
    def agent_risk_tier(self) -> str:
        """The agent's risk tier."""
        return fold(self.question.agent_risk_tier)

    @Once
    def agent_data_classifications(self) -> frozenset[str]:
        """The agent's data classifications."""
        return _folded(self.question.agent_data_classifications)

    @Once
    def risk_tags(self) -> frozenset[str]:
        """The risk tags."""
        return _folded(self.question.risk_tags)

    @Once
    def requires(self) -> frozenset[str]:
        """What the request requires."""
        return _folded(self.question.requires)

    @Once
    def has_secrets(self) -> bool:
        """Whether the request declares that it contains secrets."""
        return fold(self.question.labels.get("secrets_present", "")) in _YES or "secrets" in self.risk_tags

    @Once
    def mcp(self) -> Mapping[str, str] | None:
        """The MCP call by field, in lower case; None if the request is no MCP call."""
        labels = self.question.labels
        found = {
            name: next(
                (
                    fold(labels[key])
                    for key in (f"mcp.{name}", f"mcp_{name}", f"mcp{name.capitalize()}")
                    if key in labels
                ),
                "",
            )
            for name in _MCP_FIELDS
        }
        return found if any(found.values()) else None

    @Once
    def repo_host(self) -> str:
        """The host of the request's repository, or no text. Raises Undecided for an address that has none."""
        labels = self.question.labels
        if _REPO_HOST in labels:
            return fold(labels[_REPO_HOST])
        if _REPO_URL not in labels:
            return ""
        try:
            host = urlsplit(labels[_REPO_URL].strip()).hostname
        except ValueError:
            host = None
        if not host:
            raise Undecided(f"the label {_REPO_URL} is not an address with a host")
        return host.casefold()

    @Once
    def activation(self) -> Any:
        """The values for conditions in CEL. Raises Undecided for inputs that are too large."""
        return activation_of(self.question, self.tenant, self._reads)


def _folded(names: Iterable[str]) -> frozenset[str]:
    return frozenset(fold(name) for name in names)
