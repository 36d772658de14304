from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.caller import (
    LOCAL,
    USER_SCOPES,
    CallerContext,
    Role,
    Scope,
    check_name,
    check_priority,
    context_of,
    is_internal,
    priority_max,
    stranger,
)
from windlass.core.errors import BadInput, Forbidden, Unauthenticated


def caller(*scopes: str, **given: Any) -> CallerContext:
    return CallerContext("ada", scopes=frozenset(scopes), **given)


@pytest.mark.covers("CIX-54")
def test_an_empty_answer_makes_a_user_without_a_name_of_its_own() -> None:
    found = context_of({}, "caller-7")
    assert found == CallerContext("caller-7", "unknown", None, USER_SCOPES)
    assert found.role is Role.USER
    assert not found.has(Scope.ADMIN)


@pytest.mark.covers("CIX-54", "CIX-56")
def test_claims_fill_the_context() -> None:
    claims = {"caller_id": "ada", "caller_type": "service", "tier": "pro", "scopes": ["admin"], "rate_limits": {}}
    found = context_of(claims, "caller-7", "k1")
    assert found == CallerContext("ada", "service", "pro", frozenset({"admin"}), claims, "k1")
    assert found.role is Role.ADMIN


@pytest.mark.parametrize("bad", [None, "", "  ", True, 1.5, [], {}, "a\x00b", "\ud800", "x" * 256, "a\nb"])
def test_a_caller_id_that_cannot_be_read_counts_as_not_given(bad: Any) -> None:
    found = context_of({"caller_id": bad, "tier": bad}, "caller-7")
    assert (found.caller_id, found.tier) == ("caller-7", None)


def test_a_number_may_name_a_caller() -> None:
    assert context_of({"caller_id": 42}, "x").caller_id == "42"


@pytest.mark.parametrize("bad", ["admin", "root", 3, None, ["service"]])
def test_an_unknown_type_is_unknown(bad: Any) -> None:
    assert context_of({"caller_type": bad}, "x").caller_type == "unknown"


@pytest.mark.parametrize(
    ("claimed", "scopes"),
    [
        (None, USER_SCOPES),
        ([], frozenset()),
        (["jobs:read"], {"jobs:read"}),
        (("jobs:read", 3), {"jobs:read"}),
        ("jobs:read audit:read", {"jobs:read", "audit:read"}),
        (7, frozenset()),
        ({"admin": True}, frozenset()),
        (True, frozenset()),
    ],
)
def test_scopes_that_cannot_be_read_allow_nothing(claimed: Any, scopes: frozenset[str]) -> None:
    assert context_of({"scopes": claimed}, "x").scopes == scopes


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ((), set()),
        (("jobs:read",), {Scope.JOBS_READ}),
        (("jobs:write",), {Scope.JOBS_READ, Scope.JOBS_WRITE}),
        (("audit:read",), {Scope.AUDIT_READ}),
        (("admin",), set(Scope)),
        (("jobs:admin", "*"), set()),
    ],
)
def test_what_scopes_allow(scopes: tuple[str, ...], allowed: set[Scope]) -> None:
    assert {scope for scope in Scope if caller(*scopes).has(scope)} == allowed


def test_roles() -> None:
    assert caller(caller_type="service").role is Role.SERVICE
    assert caller("admin", caller_type="service").role is Role.ADMIN
    assert caller().role is Role.USER


def test_only_an_admin_sees_everybodys_jobs() -> None:
    assert caller("jobs:write", "audit:read").owner == "ada"
    assert caller(caller_type="service").owner == "ada"
    assert caller("admin").owner is None
    assert LOCAL.owner is None


def test_internal_is_a_service_or_who_is_named() -> None:
    assert is_internal(caller(caller_type="service"), ())
    assert is_internal(caller(), {"ada"})
    assert not is_internal(caller(), {"bob"})


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.text(), st.integers(), st.lists(st.text()))))
def test_no_claims_make_an_admin_without_saying_so(claims: dict[str, Any]) -> None:
    found = context_of(claims, "x")
    assert (found.role is Role.ADMIN) == ("admin" in (claims.get("scopes") or ()) if found.scopes else False)
    assert hash(found) == hash(found)


def test_what_a_service_said_is_not_shown() -> None:
    assert "s3cret" not in repr(context_of({"api_key": "s3cret"}, "x"))


def test_one_text_for_every_bad_key() -> None:
    assert isinstance(stranger(), Unauthenticated)
    assert str(stranger()) == str(stranger())


def test_a_name_can_be_stored_and_shown() -> None:
    assert check_name("the caller", "ada") == "ada"
    with pytest.raises(BadInput, match="the caller must be 1 to 255 printable"):
        check_name("the caller", "a\x00")


@pytest.mark.parametrize(
    ("scopes", "most"),
    [
        (USER_SCOPES, 10),
        (frozenset({Scope.AUDIT_READ}), 10),
        (USER_SCOPES | {Scope.PRIORITY_HIGH}, 100),
        (frozenset({Scope.ADMIN}), 100),
    ],
)
def test_a_priority_above_the_ceiling_takes_a_scope(scopes: frozenset[str], most: int) -> None:
    ctx = CallerContext("ada", scopes=scopes)
    assert priority_max(ctx, 10) == most
    check_priority(ctx, most, 10)
    check_priority(ctx, -100, 10)
    if most < 100:
        with pytest.raises(Forbidden, match="needs the scope priority:high"):
            check_priority(ctx, most + 1, 10)
