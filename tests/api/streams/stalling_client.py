"""A client as a process of its own: it opens a stream, says so, and lives until it is killed.

python -m tests.api.streams.stalling_client PORT PATH CALLER
"""

from __future__ import annotations

import socket
import sys

if __name__ == "__main__":
    port, path, caller = sys.argv[1:]
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\nX-Caller: {caller}\r\n\r\n".encode())
        print(connection.recv(12).decode(), flush=True)
        while connection.recv(65536):
            pass
