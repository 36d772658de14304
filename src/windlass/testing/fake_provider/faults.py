"""The faults that a test can plant: kind, operation, and how often.

Operations: `start`, `status` (and its result), `cancel`, `list`, `webhook`; `any` is all of them but webhooks.

| kind | at | what happens |
|---|---|---|
| status | any | answers `status`, with `retry_after` if given; `body` replaces the text |
| lose | any | hangs up; the operation was not done |
| lose_after | any | does it, then hangs up: the caller cannot know |
| crash | any | the process ends at once, before it does anything |
| crash_after | any | does it, keeps it, and the process ends before it answers |
| delay | any, webhook | answers (sends) `seconds` later |
| garbage | any | does it, and answers text that is no JSON |
| shape | any | does it, and answers JSON of another shape |
| cut | any | does it, and the answer ends in its middle |
| huge | any | does it, and answers with `size` bytes |
| stale | status | reports that it runs, in any state |
| forget | status | answers 404, as for unknown work |
| nonsense | status | reports an unknown status |
| drop | webhook | does not send it |
| double | webhook | sends it twice, with the same id |
| early | webhook | sends the end before `start` is answered |
| reorder | webhook | sends the webhook of the beginning after the webhook of the end |
| forge | webhook | sends it with a signature that is wrong |
"""

from __future__ import annotations

import random

import msgspec

OPERATIONS = ("start", "status", "cancel", "list", "webhook", "any")
KINDS = (
    "status", "lose", "lose_after", "crash", "crash_after", "delay", "garbage", "shape", "cut", "huge", "stale",
    "forget", "nonsense", "drop", "double", "early", "reorder", "forge",
)  # fmt: skip


class Fault(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A fault happens `times` times (without it, for ever), each time with this `chance`, after `after` skips.

    `protocol` limits it to one of fal, replicate, openai, generic.
    """

    on: str
    kind: str
    times: int | None = None
    chance: float = 1.0
    after: int = 0
    status: int = 503
    retry_after: str = ""
    seconds: float = 0.0
    size: int = 0
    body: str = ""
    protocol: str = ""

    def __post_init__(self) -> None:
        if self.on not in OPERATIONS or self.kind not in KINDS:
            raise ValueError(f"there is no fault {self.kind!r} on {self.on!r}")


class Faults:
    """The faults that are set; picks the fault of each operation."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._set: list[Fault] = []

    def set(self, faults: list[Fault]) -> None:
        """Set these faults, and remove the former ones."""
        self._set = list(faults)

    @property
    def all(self) -> list[Fault]:
        """The faults that can still happen."""
        return self._set

    def pick(self, operation: str, protocol: str, *kinds: str) -> Fault | None:
        """Return the fault that happens now, if any: of these kinds, or of any kind."""
        for fault in self._set:
            if not self._fits(fault, operation, protocol) or (kinds and fault.kind not in kinds):
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            if fault.chance < 1.0 and self._random.random() >= fault.chance:
                continue
            if fault.times is not None:
                fault.times -= 1
                if fault.times <= 0:
                    self._set.remove(fault)
            return fault
        return None

    def _fits(self, fault: Fault, operation: str, protocol: str) -> bool:
        is_here = fault.on == operation or (fault.on == "any" and operation != "webhook")
        return is_here and fault.protocol in ("", protocol)
