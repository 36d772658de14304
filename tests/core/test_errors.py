"""Errors say what is wrong, where, and what to do next."""

from __future__ import annotations

from windlass.core.errors import (
    BadPolicy,
    BadRecipe,
    Denied,
    Forbidden,
    NotFound,
    SafetyUnavailable,
    Transient,
    Unavailable,
    WindlassError,
)


def test_an_error_ends_with_its_remedy() -> None:
    assert str(NotFound("there is no job 7", remedy="List them")) == "there is no job 7. List them"
    assert str(WindlassError("no remedy")) == "no remedy"


def test_a_recipes_error_begins_with_its_place() -> None:
    assert str(BadRecipe("unknown name", place="steps.a")) == "steps.a: unknown name"
    assert str(BadRecipe("unknown name")) == "unknown name"


def test_a_policys_error_names_its_place_and_its_line() -> None:
    assert str(BadPolicy("unknown key", place="rules[0]", line=7)) == "rules[0]: unknown key (line 7)"
    assert str(BadPolicy("too large")) == "too large"


def test_a_transient_error_may_ask_for_a_wait() -> None:
    assert Transient("busy", after_s=9).after_s == 9
    assert Transient("busy").after_s is None


def test_every_error_has_a_code_of_its_own() -> None:
    def below(kind: type[WindlassError]) -> list[type[WindlassError]]:
        return [kind, *(one for child in kind.__subclasses__() for one in below(child))]

    kinds = {kind for kind in below(WindlassError) if kind.__module__ == "windlass.core.errors"}
    assert len({kind.code for kind in kinds}) == len(kinds)


def test_a_denied_job_is_named_with_its_rule() -> None:
    error = Denied("the policy denies it", job_id="job", rule="no-mail")
    assert (error.job_id, error.rule, error.code) == ("job", "no-mail", "safety_denied")
    assert isinstance(error, Forbidden)


def test_an_error_of_a_kernel_says_whether_it_was_silent() -> None:
    error = SafetyUnavailable("no answer within 2 s", is_silent=True)
    assert (error.is_silent, error.code) == (True, "safety_unavailable")
    assert isinstance(error, Unavailable)
