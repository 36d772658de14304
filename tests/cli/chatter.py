"""An app whose steps log."""

from __future__ import annotations

import logging

import windlass as wl

log = logging.getLogger("chatter")


@wl.step
def list_words(text: str, ctx: wl.Context) -> list:
    ctx.log.info("there are %d words", len(text.split()))
    return text.split()


@wl.step
def speak(word: str) -> str:
    log.warning("I say %s\nand mean it\x1b[31m", word)
    return word


@wl.step
def end(words: list) -> int:
    return len(words)


@wl.recipe
def chatter(text: str = "one two"):
    return end(speak.map(list_words(text)))
