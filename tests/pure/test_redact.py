"""No password of a database is shown, wherever it stands."""

from __future__ import annotations

import pytest

from windlass.pure.redact import masked, text_without_frames, without_frames


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ana:pw@db.example/windlass", "postgresql://ana:***@db.example/windlass"),
        ("postgresql://h/d", "postgresql://h/d"),
        ("postgresql://h:5432/d?sslmode=require", "postgresql://h:5432/d?sslmode=require"),
        ("postgresql://ana@h/d?password=pw", "postgresql://ana@h/d?password=***"),
        ("postgresql://ana@h/d?a=1&password=pw&b=2", "postgresql://ana@h/d?a=1&password=***&b=2"),
        ("postgresql://h/d?user=ana&PassWord=pw", "postgresql://h/d?user=ana&PassWord=***"),
        ("postgresql://h/d?p%61ssword=pw&sslpassword=pw", "postgresql://h/d?p%61ssword=***&sslpassword=***"),
        ("postgresql://ana:p@w:x/y?z@h/d", "postgresql://ana:***@h/d"),
        ("postgresql:///d?host=/tmp&port=5432", "postgresql:///d?host=/tmp&port=5432"),
        ("host=h password=pw user=ana", "host=h password=*** user=ana"),
        ("host=h password = 'p w' user=ana", "host=h password = *** user=ana"),
        ("invalid DSN postgres://a:pw@h/d?password=pw: no", "invalid DSN postgres://a:***@h/d?password=*** no"),
        ("mysql://a:pw@h", "mysql://a:***@h"),
        ("nothing to hide = here", "nothing to hide = here"),
    ],
)
def test_a_password_is_never_shown(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_an_error_is_shown_without_its_traceback() -> None:
    error = {"code": "failed", "message": "no", "kind": "ValueError", "detail": '  File "/srv/app.py", line 3, in f\n'}
    assert without_frames(error) == {"code": "failed", "message": "no", "kind": "ValueError"}
    other = {"code": "child_failed", "message": "no", "detail": "0190"}
    assert without_frames(other) is other
    assert without_frames(None) is None


def test_a_log_line_is_shown_without_its_traceback() -> None:
    frames = 'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in f\n    raise no\n    ^^^^^^^^\n'
    assert text_without_frames(f"it failed\n{frames}ValueError: no") == "it failed\nValueError: no"
    assert text_without_frames("    indented") == "    indented"
