"""Callback tokens under the installation's secret, also while that is being changed."""

from __future__ import annotations

from uuid import UUID

import pytest

from windlass.access.callbacks import Callbacks
from windlass.access.secret import Secret
from windlass.core.errors import BadSignature
from windlass.pure.token import Token

OLD, NEW = "an old secret of the tests, long enough", "a new secret of the tests, long enough"
JOB = UUID(int=5)


def callbacks(*secrets: str, at_s: float = 1_000.0) -> Callbacks:
    return Callbacks(Secret.of(secrets), lambda: at_s)


def test_a_token_is_read_by_the_installation_that_made_it() -> None:
    text = callbacks(NEW).sign(JOB, 3, 2, 60)
    assert callbacks(NEW).read(text) == Token(JOB, 3, 2, 1_061)
    with pytest.raises(BadSignature):
        callbacks(OLD).read(text)


def test_a_token_outlives_a_change_of_the_secret() -> None:
    text = callbacks(OLD).sign(JOB, 3, 2, 60)
    assert callbacks(NEW, OLD).read(text).attempt == 2


def test_a_token_ends() -> None:
    text = callbacks(NEW).sign(JOB, 3, 2, 60)
    assert callbacks(NEW, at_s=1_060.0).read(text)
    with pytest.raises(BadSignature):
        callbacks(NEW, at_s=1_061.0).read(text)
