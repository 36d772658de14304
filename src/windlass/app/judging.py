"""The policy of a process, as the settings say: which signatures it takes, and whether it may be missing."""

from __future__ import annotations

import asyncio
import time

from windlass.app.settings import Settings
from windlass.engine.policies import Policies


def policies_of(settings: Settings) -> Policies:
    """Return the policy of a process with these settings. Nothing is read yet."""
    check = None
    if settings.policy_keys:
        # Only here, because it needs the extra `service`.
        from windlass.policy.signing import signature_check

        check = signature_check(settings.policy_keys)
    # A policy of a thousand rules takes about 0.3 s to compile.
    return Policies(time.monotonic, check=check, is_required=settings.policy_required, aside=asyncio.to_thread)
