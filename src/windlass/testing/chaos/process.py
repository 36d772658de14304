"""Runs `windlass` with batches so small that a run of a minute fills several of them."""

from __future__ import annotations

import runpy

from windlass.core import route

FAN_BATCH = 40

if __name__ == "__main__":
    route.FAN_BATCH_MAX = FAN_BATCH
    runpy.run_module("windlass.cli.main", run_name="__main__")
