"""A job at one moment, read for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from rich.text import Text

from windlass.cli.graph import Box
from windlass.cli.screen import headline, one_line
from windlass.cli.wire import seconds_between
from windlass.core.states import JobState
from windlass.engine import read

INPUT_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The job, one box per node of its plan, and when it was read."""

    job: read.JobView
    boxes: list[Box]
    now: datetime

    @property
    def state(self) -> JobState:
        """Where the job stands."""
        return self.job.state

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.job.is_finished

    def headline(self) -> Text:
        """The line above the picture."""
        seconds = seconds_between(self.job.created_at, self.job.finished_at or self.now)
        text = headline(self.job.recipe, self.job.id, str(self.state), seconds)
        if self.job.is_paused:
            text.append("  paused", style="magenta")
        return text

    def facts(self) -> Iterator[tuple[str, str]]:
        """What else is known, leaving out what is not."""
        job = self.job
        labels, error = job.labels or {}, job.error or {}
        inputs = msgspec.json.encode(job.input).decode()
        known: dict[str, Any] = {
            "input": inputs if len(inputs) <= INPUT_SHOWN else inputs[:INPUT_SHOWN] + "…",
            "labels": " ".join(f"{name}={value}" for name, value in labels.items()),
            "key": job.idempotency_key,
            "priority": job.priority or None,
            "created": job.created_at.astimezone().isoformat(sep=" ", timespec="seconds"),
            "deadline": job.deadline_at and job.deadline_at.astimezone().isoformat(sep=" ", timespec="seconds"),
            "parent": job.parent_job,
            "retry of": job.retry_of,
            "error": ": ".join(str(error[k]) for k in ("step", "code", "message") if error.get(k)),
        }
        for name, value in known.items():
            if value:
                yield name, one_line(str(value))
