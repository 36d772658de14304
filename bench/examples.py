"""Scans the examples of gitleaks: `python -m bench.examples CHECKOUT`.

gitleaks keeps texts that its rules must find and texts that they must not find, as Go code. The texts that are plain
literals are read; examples made by Go functions are not. The checkout is given, because none of it is part of this
repository.
"""

import re
import sys
from pathlib import Path

from windlass.policy.content import ScanWants
from windlass.policy.scan.scanners import Scanners

SECRET = ScanWants(frozenset({"secret"}))
LISTS = {name: re.compile(rf"{name}\s*:?=\s*\[\]string\{{(.*?)\n\t\}}", re.DOTALL) for name in ("tps", "fps")}
LITERAL = re.compile(r'`([^`]*)`|"((?:[^"\\]|\\.)*)"')
CALLS = ("utils.", "secrets.", "fmt.", "strings.")


def examples(source: str, name: str) -> list[str]:
    """Return the literals of a list in a Go file."""
    found = []
    for body in LISTS[name].findall(source):
        lines = [line for line in body.splitlines() if not line.strip().startswith("//")]
        text = "\n".join(
            re.sub(r"(?<=[,`\"])\s*//.*$", "", line) for line in lines if not any(call in line for call in CALLS)
        )
        for raw, quoted in LITERAL.findall(text):
            found.append(raw or quoted.encode().decode("unicode_escape"))
    return found


def main(checkout: Path) -> None:
    """Print the counts, and the examples that were judged otherwise than by gitleaks."""
    scanners = Scanners()
    for name, what in (("tps", "true"), ("fps", "false")):
        texts = [
            (path.stem, text)
            for path in sorted((checkout / "cmd/generate/config/rules").glob("*.go"))
            for text in examples(path.read_text(encoding="utf-8"), name)
        ]
        found = [bool(scanners.scan(text.encode(), SECRET).findings) for _, text in texts]
        print(f"{what} examples: {sum(found)} of {len(texts)} are found")
        for (stem, text), is_found in zip(texts, found, strict=True):
            if is_found != (name == "tps"):
                print(f"  {stem}: {text[:100]!r}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
