"""The five queues that every deployment has. A queue is only a name: a worker says which ones it takes from."""

from __future__ import annotations

RECIPE_EXECUTORS = "recipe_executors"  # graphs, dispatch, templates
BACKGROUND_PROCESSING = "background_processing"  # work that keeps a core busy: images, video
WEBHOOK_LISTENERS = "webhook_listeners"  # what providers report
POLLING_WATCHDOGS = "polling_watchdogs"  # asking providers that do not report
MAIN_PROCESSING = "main_processing"  # everything else

DEFAULT_QUEUES = (RECIPE_EXECUTORS, BACKGROUND_PROCESSING, WEBHOOK_LISTENERS, POLLING_WATCHDOGS, MAIN_PROCESSING)
