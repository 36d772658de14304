"""The kernel of this process: the policy that is in force, judged here."""

from __future__ import annotations

from collections.abc import Callable

from windlass.core.verdict import Verdict
from windlass.policy.judge import judge
from windlass.policy.kernel import CHECK_WITHIN_S
from windlass.policy.question import Question
from windlass.policy.rules import Policy


class LocalKernel:
    """Judges by the policy that `policy` returns at that moment. Only a commit counts requests for `velocity`."""

    name = "local"
    is_remote = False
    within_s = CHECK_WITHIN_S

    def __init__(self, policy: Callable[[], Policy | None]) -> None:
        self._policy = policy

    async def check(self, question: Question) -> Verdict:
        """Return the verdict about a question."""
        return judge(self._policy(), question).verdict

    async def close(self) -> None:
        """Do nothing: there is no connection."""
