"""The policy of a process, as the settings say: which signatures it takes, and whether it may be missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from windlass.app.settings import Settings
from windlass.engine.policies import Policies
from windlass.policy.texts import LoadedPolicy, PolicyText, load_policy

# Compiling more than this takes so long that other requests would notice it.
THREAD_OVER_BYTES = 16 * 1024


def policies_of(settings: Settings) -> Policies:
    """Return the policy of a process with these settings. Nothing is read yet."""
    check = None
    if settings.policy_keys:
        # Only here, because it needs the extra `service`.
        from windlass.policy.signing import signature_check

        check = signature_check(settings.policy_keys)
    return Policies(time.monotonic, check=check, is_required=settings.policy_required, loading=loaded)


async def loaded(texts: Sequence[PolicyText]) -> LoadedPolicy:
    """Read and compile documents, long ones in a thread."""
    if sum(len(one.text) for one in texts) <= THREAD_OVER_BYTES:
        return load_policy(texts)
    return await asyncio.to_thread(load_policy, texts)
