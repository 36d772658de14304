"""The policy of `windlass up` for the first day: it allows every job, and says so."""

from __future__ import annotations

from windlass.app.windlass import Windlass
from windlass.core.errors import PolicyChanged
from windlass.engine import policies
from windlass.engine.publish import publish
from windlass.policy.shipped import shipped_policy

NAME = "starter"
AUTHOR = "windlass up"
_HOW = "windlass policy example strict"


async def publish_starter(windlass: Windlass) -> None:
    """Publish the starter policy if nothing was ever published. A policy of an operator is never replaced.

    Does nothing where it would not be the operator's wish: on a shared database, where policies must be signed, and
    where jobs must wait for a policy.
    """
    settings = windlass.settings
    is_own = settings.database_url is None and settings.starter_policy
    if not is_own or settings.policy_required or settings.policy_keys:
        return
    if (await policies.read_now(windlass.db)).no:
        return
    try:
        await publish(windlass.db, {NAME: shipped_policy(NAME)}, by=AUTHOR, note="the first day", expected_no=0)
    except PolicyChanged:
        # An operator was faster, whose policy stays.
        return
    windlass.policies.expire()


async def policy_line(windlass: Windlass) -> str:
    """Return one line about the policy in force, for people who start a process."""
    current = await windlass.policies.current(windlass.db)
    if current.problem is not None:
        return f"every job is denied: {current.problem}"
    if not current.is_gated:
        return f"none: every job may run. To change it: {_HOW}"
    head = (await policies.read(windlass.db, current.no)).head
    if head.names == (NAME,) and head.by == AUTHOR:
        return f"version {head.no} (starter): every job may run. To change it: {_HOW}"
    return f"version {head.no}: {', '.join(head.names)}"
