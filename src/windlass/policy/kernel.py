"""The port of kernels: the parts that judge a question, in this process or outside of it.

    question ─► Kernel.check ─► Verdict                    an answer, also a refusal
                            └─► SafetyUnavailable          no verdict; the question is asked again later

`kernels/` has the adapters: `local` (the policy of the installation), `safety_kernel` (gRPC) and `opa` (HTTP).
`windlass.testing.kernel_conformance` tests the promises below against each of them.
"""

from __future__ import annotations

from typing import Protocol

from windlass.core.verdict import Verdict
from windlass.policy.question import Question

# The time of one check, from the first byte sent to the last byte read.
CHECK_WITHIN_S = 2.0
# Inputs above this size are not sent: a kernel that sees a part cannot judge the rest.
INPUT_BYTES_MAX = 2 << 20
ANSWER_BYTES_MAX = 1 << 20


class Kernel(Protocol):
    """Judges questions. An adapter keeps these promises.

    1. `check` returns a verdict or raises SafetyUnavailable, and nothing else, within `within_s` seconds.
    2. It is closed. A missing decision, an unknown word, and limits that Windlass does not know deny.
    3. Silence is told apart from an error: `is_silent` is true if the kernel could not be reached or did not answer in
       time, and false if it answered with an error.
    4. A refusal is an answer.
    5. A verdict from outside of the process names the kernel. Its texts can be stored and have a bounded length.
    6. Checks may run at the same time, and no check waits for another. A cancelled check ends at once.
    7. Every check is one request: it is not repeated, not redirected and not answered from a cache.
    8. Checks after an outage reach the kernel again, without a restart of this process.
    9. `close` may be called twice. A check after it raises SafetyUnavailable.
    """

    # The name in verdicts, metrics and the breaker's row.
    name: str
    # Whether a check leaves this process. Such a kernel is not asked in the commit of a job.
    is_remote: bool
    within_s: float

    async def check(self, question: Question) -> Verdict:
        """Return the verdict about a question. Raises SafetyUnavailable."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
