"""Finds where an exception was raised in the code of an app's author: file, line and frames."""

from __future__ import annotations

import os
import traceback

FRAMES_MAX = 5
_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
# Code that ships with Windlass but is written like an app.
_APPS = os.path.join(_OURS, "examples") + os.sep


def user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an exception that belong neither to Windlass nor to the import machinery."""
    return [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]


def described(error: BaseException) -> str:
    """Describe an exception by its class and the author's file and line: `KeyError: 'data' (pipeline.py, line 12)`."""
    frames = user_frames(error)
    at = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{at}"


def frames_text(error: BaseException | None) -> str:
    """Return the last frames of the author's code, as Python prints them."""
    return "" if error is None else "".join(traceback.format_list(user_frames(error)[-FRAMES_MAX:]))


def _is_machinery(filename: str) -> bool:
    return "importlib" in filename or (filename.startswith(_OURS) and not filename.startswith(_APPS))
