"""The parts that the service's handlers get. `app/http.py` makes them; this module has only their interfaces."""

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
from windlass.api.job_reader import JobReader
from windlass.api.static import File
from windlass.api.topics import Wanted
from windlass.core.caller import CallerContext
from windlass.core.template import Resolver
from windlass.engine.installation import Installation
from windlass.engine.policies import Policies
from windlass.engine.recipes import NamedPlans
from windlass.engine.submitter import Submitter
from windlass.outbound.send import Sender
from windlass.providers.receiver import Receiver
from windlass.pure.new_ids import NewIds
from windlass.pure.service import Services
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.migrate import Folder
from windlass.telemetry.exposition import Exposition
from windlass.telemetry.meters import Meters
from windlass.views.read import Waiter


class Settings(Protocol):
    """The settings of the service; `app/settings.py` describes each of them."""

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


class Follows(Protocol):
    """The hub, as far as routes need it; see `api/hub.py`."""

    async def follow_caller(self, caller: str, after: str | None, *, of: str | None = None) -> Any:
        """Follow every event of the jobs of the caller, or of `of`, after a position of the feed."""
        ...

    async def follow_job(self, job_id: UUID, caller: str, after: int) -> Any:
        """Follow every event of one job, after a sequence number."""
        ...

    async def follow_topics(self, caller: CallerContext, topics: Sequence[Wanted]) -> Any:
        """Follow several topics in one stream, in the form that a console needs."""
        ...

    async def stop(self) -> None:
        """End every stream."""
        ...


class Demo(Protocol):
    """The demo of `windlass up`; see `app/demo/demo.py`. `job_id` is the newest demo job."""

    job_id: UUID | None

    @property
    def recipe(self) -> str:
        """Return the recipe of the demo job."""
        ...

    @property
    def can_kill(self) -> bool:
        """Return whether there is a worker to kill."""
        ...

    async def kill(self) -> tuple[UUID, int]:
        """Send SIGKILL to the worker. Return its id and its process id."""
        ...


@dataclass(frozen=True, slots=True)
class ExtraPage:
    """A page of the console that an extension adds: its path below `/console/x/NAME`, and its module."""

    title: str
    icon: str
    path: str
    module: str


@dataclass(frozen=True, slots=True)
class Extra:
    """An extension's additions to the API: its routes and their parts. `where` is its package and version."""

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
    job_reader: JobReader
    submitter: Submitter
    plans: NamedPlans
    ids: NewIds
    verifier: Verifier
    # None when Membership manages the keys.
    keys: Keys | None
    limiter: Limiter
    depth: Depth
    tickets: Tickets
    sessions: Sessions
    audit: Audit
    secret: Secret
    callbacks: Callbacks
    spread: Callable[[], float]
    receiver: Receiver
    sender: Sender
    hub: Follows
    registry: CollectorRegistry
    meters: Meters
    exposition: Exposition
    settings: Settings
    installation: Installation
    # The policy that this process judges by.
    policies: Policies
    # `ok` or the fault of each service of the process.
    services: Services
    # Set when the process is asked to end: it then reports that it is not ready.
    is_draining: bool = False
    # The additions of extensions, and those of their migrations that the database must have.
    extras: Sequence[Extra] = ()
    folders: Sequence[Folder] = ()
    # In `windlass up` only.
    demo: Demo | None = None
