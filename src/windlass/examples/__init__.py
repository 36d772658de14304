"""The bundled examples, which `windlass up` serves and `windlass demo` runs."""

from windlass.examples.first_minute import ask_weather, choose_photos, develop, first_minute, put_together
from windlass.examples.hello import greet, hello
from windlass.examples.nightly_report import add_up, nightly_report, read_orders, region_report, write_report
from windlass.examples.storyboard import bind, draw, storyboard, write_scenes
from windlass.examples.trailer import publish, render, stitch, trailer, write_script

__all__ = [
    "add_up",
    "ask_weather",
    "bind",
    "choose_photos",
    "develop",
    "draw",
    "first_minute",
    "greet",
    "hello",
    "nightly_report",
    "publish",
    "put_together",
    "read_orders",
    "region_report",
    "render",
    "stitch",
    "storyboard",
    "trailer",
    "write_report",
    "write_scenes",
    "write_script",
]
