"""A film trailer: one script, many shots rendered side by side, one cut; published only if the script is good enough.

    windlass run windlass.examples.trailer --input topic="the sea"

`trailer.yaml` beside this file is the same recipe as a document, with the same content hash.
"""

import hashlib
from typing import Annotated

from msgspec import Meta

import windlass as wl

# The recipe's schema limits the size of a request.
Scenes = Annotated[int, Meta(ge=1, le=200)]


@wl.step(retry=wl.Retry(max_attempts=4, base_s=0.2), timeout="2m")
def write_script(topic: str, scenes: int) -> dict:
    """Write one line per scene. A line names its frame count, so that the shots differ in length."""
    lines = [f"Scene {n + 1}: {topic}, {24 * (n + 1)} frames" for n in range(scenes)]
    return {"title": topic.title(), "scenes": lines, "score": min(10, 2 * len(lines))}


@wl.step(cpu=True, timeout="5m")
def render(scene: str, style: str) -> dict:
    """Draw the frames of a shot; here a chain of hashes stands in for pixels."""
    frame = f"{style}: {scene}".encode()
    for _ in range(20_000):
        frame = hashlib.sha256(frame).digest()
    return {"scene": scene, "last_frame": frame.hex()[:16]}


@wl.step
def stitch(title: str, shots: list) -> dict:
    """Cut the shots together."""
    reel = hashlib.sha256("".join(shot["last_frame"] for shot in shots).encode()).hexdigest()
    return {"title": title, "shots": len(shots), "reel": reel[:16]}


@wl.step
def publish(film: dict, caption: str) -> str:
    """Give the film its address."""
    return f"films/{film['reel']}.mp4 ({caption})"


@wl.recipe
def trailer(topic: str, scenes: Scenes = 4, style: str = "noir"):
    """Fan out over the scenes, join the shots, publish what scored well."""
    script = write_script(topic, scenes)
    shots = render.map(script["scenes"], style=style)
    film = stitch(script["title"], shots)
    caption = wl.text("{title} in {style}", title=script["title"], style=style)
    address = publish(film, caption).when(script["score"] > 5)
    return {"film": film, "address": address}
