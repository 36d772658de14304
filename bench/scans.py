"""Scans ordinary and hostile contents with all built-in scanners: `python -m bench.scans SECONDS`.

Prints one line of JSON for each kind of content and each engine: the megabytes scanned in a second of CPU time. Scans
wait for nothing, so CPU time is wall time on a quiet machine.
"""

import base64
import json
import random
import sys
import sysconfig
import time
from pathlib import Path

from windlass.policy.content import ScanWants
from windlass.policy.scan.scanners import Scanners

WANTS = ScanWants(frozenset({"secret", "pii", "injection"}))
SIZE = 1 << 20
SMALL = 1_000
_WORDS = ("key", "token", "job", "step", "user", "status", "attempt", "duration", "queue", "worker")


def code() -> bytes:
    """The installed standard library."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return b"".join(path.read_bytes() for path in paths)[:SIZE]


def logs() -> bytes:
    """Lines of logs."""
    rng = random.Random(1)
    lines = []
    while len(lines) < SIZE // 100:
        lines.append(
            f"2026-11-18T20:41:07.{rng.randrange(1000):03} INFO {rng.choice(_WORDS)} {rng.choice(_WORDS)}="
            f"{rng.randrange(10**6)} id={rng.randbytes(8).hex()} took {rng.random() * 900:.2f} ms"
        )
    return "\n".join(lines).encode()[:SIZE]


def records() -> bytes:
    """JSON: an output of many small records."""
    rng = random.Random(2)
    rows = [
        {
            "id": rng.randrange(10**9),
            "title": " ".join(rng.choices(_WORDS, k=6)),
            "status": "done",
            "score": rng.random(),
            "tags": rng.choices(_WORDS, k=3),
            "text": "It was a plain day, and nothing happened.\nThe next one was the same.",
        }
        for _ in range(SIZE // 260)
    ]
    return json.dumps({"rows": rows}).encode()


def floods() -> dict[str, bytes]:
    """Contents made to be slow."""
    noise = random.Random(3).randbytes(SIZE * 3 // 4)

    def many(text: bytes) -> bytes:
        return text * (SIZE // len(text))

    return {
        "base64": base64.b64encode(noise),
        "noise": noise,
        "one letter": many(b"a"),
        "digits": many(b"1234567890123456 "),
        "names": many(b"key=secretvalue12 "),
        "quotes": many(b'"\\"'),
        "addresses": many(b"ada@mail.dev "),
        "begins of keys": many(b"-----BEGIN PRIVATE KEY-----"),
        "begins of tokens": many(b"eyJ"),
        "phrases": many(b"ignore all previous "),
        "nested JSON": b"[" * (SIZE // 2) + b"]" * (SIZE // 2),
        "small values": b"[" + b",".join([b'"a"'] * (SIZE // 4)) + b"]",
        "JSON of addresses": b"[" + b",".join([b'{"mail":"ada@mail.dev"}'] * (SIZE // 24)) + b"]",
        "archives": many(base64.b64encode(b"PK\x03\x04" + bytes(32)) + b" "),
        "escapes": b'"' + many(b"\\u0061") + b'"',
        "wide letters": many("ａ".encode()),
    }


def measure(scanners: Scanners, content: bytes, seconds: float) -> float:
    """Return megabytes a second of CPU time."""
    scanners.scan(content[:SMALL], WANTS)
    count, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < seconds or not count:
        scanners.scan(content, WANTS)
        count += 1
    return len(content) * count / spent / 1e6


def main(seconds: float) -> None:
    """Measure everything with both engines."""
    ordinary = {"code": code(), "logs": logs(), "json": records()}
    for engine, with_hyperscan in (("hyperscan", True), ("re2", False)):
        begun = time.process_time()
        scanners = Scanners(with_hyperscan=with_hyperscan)
        scanners.scan(b"", WANTS)
        prepare_s = time.process_time() - begun
        found = {name: measure(scanners, content, seconds) for name, content in (ordinary | floods()).items()}
        small = measure(scanners, ordinary["json"][: ordinary["json"].rindex(b"}, {", 0, SMALL)] + b"}]}", seconds)
        worst = min(floods(), key=lambda name: found[name])
        kinds = {name: found[name] for name in ordinary} | {"small": small, "worst": found[worst]}
        for kind, speed in kinds.items():
            told = {"engine": engine, "kind": kind, "mb_s": speed, "prepare_s": prepare_s}
            print(json.dumps(told | ({"flood": worst, "floods": found} if kind == "worst" else {})), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
