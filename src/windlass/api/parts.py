"""What the handlers of the service are given. All of it is made by `app/http.py`; here is only what it must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute

from windlass.access.audit import Audit
from windlass.access.callbacks import Callbacks
from windlass.access.depth import Depth
from windlass.access.keys import Keys
from windlass.access.limiter import Limiter
from windlass.access.secret import Secret
from windlass.access.sessions import Sessions
from windlass.access.tickets import Tickets
from windlass.access.verifier import Verifier
from windlass.api.looks import JobLooks
from windlass.api.static import File
from windlass.api.topics import Wanted
from windlass.core.caller import CallerContext
from windlass.core.template import Resolver
from windlass.engine.installation import Installation
from windlass.engine.recipes import NamedPlans
from windlass.engine.submitter import Submitter
from windlass.outbound.send import Sender
from windlass.providers.receiver import Receiver
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.migrate import Folder
from windlass.telemetry.exposition import Exposition
from windlass.telemetry.meters import Meters
from windlass.views.read import Waiter


class Settings(Protocol):
    """The settings that the service goes by; `app/settings.py` says what each is for."""

    @property
    def listen(self) -> str: ...  # noqa: D102
    @property
    def membership_url(self) -> str | None: ...  # noqa: D102
    @property
    def queue_depth_max(self) -> int: ...  # noqa: D102
    @property
    def priority_max(self) -> int: ...  # noqa: D102
    @property
    def body_max_bytes(self) -> int: ...  # noqa: D102
    @property
    def head_max_bytes(self) -> int: ...  # noqa: D102
    @property
    def head_timeout_s(self) -> float: ...  # noqa: D102
    @property
    def body_timeout_s(self) -> float: ...  # noqa: D102
    @property
    def keep_alive_s(self) -> int: ...  # noqa: D102
    @property
    def connections_max(self) -> int | None: ...  # noqa: D102
    @property
    def connections_per_address_max(self) -> int | None: ...  # noqa: D102
    @property
    def streams_max(self) -> int: ...  # noqa: D102
    @property
    def streams_per_caller_max(self) -> int: ...  # noqa: D102
    @property
    def public_url(self) -> str | None: ...  # noqa: D102
    @property
    def proxies(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def inline_max_bytes(self) -> int: ...  # noqa: D102
    @property
    def internal_callers(self) -> tuple[str, ...]: ...  # noqa: D102


class NewIds(Protocol):
    """Where ids come from."""

    def new(self) -> UUID:
        """The next id."""
        ...


class Follows(Protocol):
    """The hub, as far as routes need it; see `api/hub.py`."""

    async def follow_caller(self, caller: str, after: str | None, *, of: str | None = None) -> Any:
        """Every event of the caller's jobs, or of another's, after a position of the feed."""
        ...

    async def follow_job(self, job_id: UUID, caller: str, after: int) -> Any:
        """Every event of one job, after a sequence number."""
        ...

    async def follow_topics(self, caller: CallerContext, topics: Sequence[Wanted]) -> Any:
        """Several topics in one stream, told as a console needs it."""
        ...

    async def stop(self) -> None:
        """Send every follower away."""
        ...


class Demo(Protocol):
    """The demo of `windlass up`; see `app/demo/demo.py`. `job_id` is the newest demo job."""

    job_id: UUID | None

    @property
    def recipe(self) -> str:
        """The recipe of the demo job."""
        ...

    @property
    def can_kill(self) -> bool:
        """Whether there is a worker to kill."""
        ...

    async def kill(self) -> tuple[UUID, int]:
        """Send SIGKILL to the worker; who it was, and its process id."""
        ...


@dataclass(frozen=True, slots=True)
class ExtraPage:
    """A page of the console that an extension brings: its path below `/console/x/NAME`, and its module."""

    title: str
    icon: str
    path: str
    module: str


@dataclass(frozen=True, slots=True)
class Extra:
    """What an extension adds to the API: its routes, and what they are handed. `where` is its package and version."""

    name: str
    where: str
    routes: Sequence[BaseRoute]
    parts: Any
    pages: Sequence[ExtraPage] = ()
    files: Mapping[str, File] = field(default_factory=dict)


@dataclass(slots=True)
class Parts:
    """Everything that a route may need."""

    db: Database
    artifacts: Artifacts
    resolver: Resolver
    waiter: Waiter
    looks: JobLooks
    submitter: Submitter
    plans: NamedPlans
    ids: NewIds
    verifier: Verifier
    # None when Membership knows the keys.
    keys: Keys | None
    limiter: Limiter
    depth: Depth
    tickets: Tickets
    sessions: Sessions
    audit: Audit
    secret: Secret
    callbacks: Callbacks
    chance: Callable[[], float]
    receiver: Receiver
    sender: Sender
    hub: Follows
    registry: CollectorRegistry
    meters: Meters
    exposition: Exposition
    settings: Settings
    installation: Installation
    # `ok` or what is wrong, for each service of the process.
    states: Callable[[], dict[str, str]]
    # Set when the process is asked to end: it is ready for nothing new.
    is_draining: bool = False
    # What extensions add, and which of their migrations the database must have.
    extras: Sequence[Extra] = ()
    folders: Sequence[Folder] = ()
    # In `windlass up` only.
    demo: Demo | None = None
