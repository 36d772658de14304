"""A frame of server-sent events as text."""

from __future__ import annotations


def frame(event: str, frame_id: str | None, data: bytes, retry_ms: int | None = None) -> bytes:
    """Encode one frame; every receiver gets the same bytes. `data` is one line or more."""
    if retry_ms is None and frame_id is not None and b"\n" not in data:
        return b"event: %b\nid: %b\ndata: %b\n\n" % (event.encode(), frame_id.encode(), data)
    lines = [f"retry: {retry_ms}\n".encode()] if retry_ms is not None else []
    lines.append(f"event: {event}\n".encode())
    if frame_id is not None:
        lines.append(f"id: {frame_id}\n".encode())
    lines.extend(b"data: %b\n" % line for line in data.split(b"\n"))
    return b"%b\n" % b"".join(lines)
