"""Writes the generated parts of the docs: the text between `<!-- generated: NAME -->` and `<!-- end -->`.

    python docs/make.py            write them
    python docs/make.py --check    say which pages are stale, and exit 1 if any is

Each name is a function of `docs/generate.py`, which draws on the code itself. Some files are generated as a whole:
those of `generate.FILES`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import generate  # noqa: E402  (a sibling, found through the path above)

BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Every page that may hold generated parts."""
    return sorted([*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "ARCHITECTURE.md"])


def rendered(text: str) -> str:
    """The page with its generated parts made anew."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{generate.PARTS[block['name']]().strip()}\n\n{block[3]}", text)


def stale() -> list[Path]:
    """The pages whose generated parts are not what the code says now."""
    return [path for path in pages() if rendered(text := path.read_text(encoding="utf-8")) != text]


def stale_files() -> dict[Path, str]:
    """The files that are generated as a whole and are not what the code says now, with what it says."""
    made = {DOCS / name: make() for name, make in generate.FILES.items()}
    return {path: text for path, text in made.items() if not path.is_file() or path.read_text("utf-8") != text}


def main() -> int:
    files = stale_files()
    found = [*stale(), *files]
    for path in found:
        if "--check" not in sys.argv:
            text = files[path] if path in files else rendered(path.read_text(encoding="utf-8"))
            path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
