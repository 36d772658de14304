"""Writes the client that blocks from the one for programs on a loop, so that the two cannot differ.

python scripts/unasync.py            write the files
python scripts/unasync.py --check    say which are stale, and exit 1 if any is
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "src" / "windlass" / "client"
# The source of each file that is made.
MADE = {
    "client.py": "async_client.py",
    "deciding.py": "async_deciding.py",
    "sync_line.py": "async_line.py",
    "sync_policing.py": "async_policing.py",
    "submitting.py": "async_submitting.py",
}
_RULES = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"  # noqa: ASYNC109  .*", ""),
        (r'^"""The client for programs on a loop: `async with (.*?)"""', r'"""The client: `with \1"""'),
        (r"\basync (def|with|for)\b", r"\1"),
        (r"\bawait ", ""),
        (r"\bimport asyncio\b", "import time"),
        (r"\basyncio\.sleep\b", "time.sleep"),
        (r"\basync_line\b", "sync_line"),
        (r"\basync_policing\b", "sync_policing"),
        (r"\basync_submitting\b", "submitting"),
        (r"\basync_deciding\b", "deciding"),
        (r"\bAsync(?=[A-Z])", ""),
        (r"\b__a(enter|exit)__\b", r"__\1__"),
        (r"\ba(close|next|read|iter_bytes)\b", r"\1"),
        (r"\bpush_async_callback\b", "callback"),
    )
]
_HEAD = "# Made from {source} by scripts/unasync.py: edit that file, then run the script.\n"


def made(source: str) -> str:
    """The text of the twin of a source file."""
    lines = [_ruled(line) for line in (CLIENT / source).read_text(encoding="utf-8").splitlines()]
    text = _HEAD.format(source=source) + "\n".join(lines) + "\n"
    for command in (("check", "--select", "I", "--fix-only"), ("format",)):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(CLIENT / "client.py"), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def _ruled(line: str) -> str:
    for pattern, text in _RULES:
        line = pattern.sub(text, line)
    return line


def stale() -> dict[Path, str]:
    """The files that are not what their sources say now, with what they say."""
    wanted = {CLIENT / name: made(source) for name, source in MADE.items()}
    return {path: text for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text}


def main() -> int:
    """Write what is stale, or only name it."""
    found = stale()
    for path, text in found.items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        print(path.name)
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
