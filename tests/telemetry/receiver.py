"""A receiver of spans, in a process of its own: `python -m tests.telemetry.receiver answers|hangs FILE`.

Writes each span to FILE as a JSON line and says its URL. With `hangs` it takes connections and never answers.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ROOT = Path(__file__).parents[2]


class Receiver:
    """A receiver that runs."""

    def __init__(self, process: subprocess.Popen[str], url: str, file: Path) -> None:
        self.process = process
        self.url = url
        self._file = file

    @property
    def spans(self) -> list[dict[str, Any]]:
        """What it has taken so far."""
        return [json.loads(line) for line in self._file.read_text().splitlines()] if self._file.exists() else []


@contextmanager
def receiving(folder: Path, how: str = "answers") -> Iterator[Receiver]:
    """A receiver while the block lasts."""
    file = folder / f"spans-{how}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.telemetry.receiver", how, str(file)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        yield Receiver(process, process.stdout.readline().strip(), file)
    finally:
        process.kill()
        process.communicate()


def _spans(body: bytes) -> Iterator[dict[str, Any]]:
    request = ExportTraceServiceRequest.FromString(body)
    for of_resource in request.resource_spans:
        facts = {one.key: one.value.string_value for one in of_resource.resource.attributes}
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield {
                    "service": facts["service.name"],
                    "name": span.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "is_error": span.status.code == 2,
                    "links": [link.trace_id.hex() for link in span.links],
                    "facts": {one.key: one.value.string_value or one.value.int_value for one in span.attributes},
                    "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
                }


def main(how: str, file: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if how == "hangs":
                threading.Event().wait()
            assert self.path == "/v1/traces"
            with open(file, "a", encoding="utf-8") as out:
                out.writelines(json.dumps(span) + "\n" for span in _spans(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
