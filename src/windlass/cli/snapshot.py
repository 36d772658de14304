"""A job's view and graph at one moment, formatted for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from rich.text import Text

from windlass.cli.graph import Box
from windlass.cli.marks import seconds_between
from windlass.cli.screen import headline, one_line
from windlass.client.views import JobView
from windlass.core.states import JobState
from windlass.pure.job_failed import fault_text

INPUT_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The job, one box per node of its plan, and the time of the read."""

    job: JobView
    boxes: list[Box]
    now: datetime

    @property
    def status(self) -> JobState:
        """The job's status."""
        return self.job.status

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.job.is_finished

    def headline(self) -> Text:
        """Return the line above the picture."""
        seconds = seconds_between(self.job.created_at, self.job.finished_at or self.now)
        text = headline(self.job.recipe, self.job.job_id, str(self.status), seconds)
        if self.job.is_paused:
            text.append("  paused", style="magenta")
        return text

    def facts(self, given: Any) -> Iterator[tuple[str, str]]:
        """Yield the known facts of the job by name; `given` holds the job's inputs."""
        job = self.job
        labels, error = job.labels or {}, job.error or {}
        inputs = msgspec.json.encode(given).decode()
        known: dict[str, Any] = {
            "input": inputs if len(inputs) <= INPUT_SHOWN else inputs[:INPUT_SHOWN] + "…",
            "labels": " ".join(f"{name}={value}" for name, value in labels.items()),
            "key": job.idempotency_key,
            "priority": job.priority or None,
            "created": _moment(job.created_at),
            "deadline": _moment(job.deadline_at),
            "expires": None if job.is_finished else _moment(job.expires_at),
            "parent": job.parent_job,
            "retry of": job.retry_of,
            "error": ": ".join(str(part) for part in (error.get("step"), error.get("code"), fault_text(error)) if part),
        }
        for name, value in known.items():
            if value:
                yield name, one_line(str(value))

    def frames(self) -> str:
        """Return the last traceback frames of the exception that ended the job."""
        return str((self.job.error or {}).get("detail") or "")


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone().isoformat(sep=" ", timespec="seconds")
