"""Which kernel the settings name, and whether it is asked with TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.policy.certificates import certificate
from windlass.app.judging_kernel import kernel_of, kernel_place
from windlass.app.settings import Settings, load
from windlass.core.errors import BadSetting

OPA = "https://opa.internal:8181/v1/data/windlass/verdict"


def place(address: str, **given: Any) -> tuple[bool, bool]:
    found = kernel_place(Settings(safety_kernel_addr=address, **given))
    assert found is not None
    return found.is_opa, found.has_tls


@pytest.mark.covers("COR-71", "COR-74")
def test_the_settings_have_the_names_of_the_documents(tmp_path: Path) -> None:
    environ = {
        "POLICY_CHECK_FAIL_MODE": "open",
        "SAFETY_KERNEL_ADDR": "kernel.internal:50051",
        "SAFETY_KERNEL_TLS_CA": "ca.pem",
        "SAFETY_KERNEL_TLS_REQUIRED": "true",
        "SAFETY_KERNEL_INSECURE": "false",
    }
    found = load(environ=environ, folder=tmp_path)
    assert (found.policy_check_fail_mode, found.safety_kernel_addr) == ("open", "kernel.internal:50051")
    assert found.safety_kernel_tls_ca == tmp_path / "ca.pem"
    assert (found.safety_kernel_tls_required, found.safety_kernel_insecure) == (True, False)


def test_the_name_with_the_prefix_of_windlass_wins(tmp_path: Path) -> None:
    environ = {"POLICY_CHECK_FAIL_MODE": "open", "WINDLASS_POLICY_CHECK_FAIL_MODE": "closed"}
    assert load(environ=environ, folder=tmp_path).policy_check_fail_mode == "closed"


@pytest.mark.covers("COR-74")
def test_nothing_is_set_by_default(tmp_path: Path) -> None:
    found = load(environ={}, folder=tmp_path)
    assert kernel_of(found) is None
    assert (found.policy_check_fail_mode, found.safety_kernel_tls_ca) == (None, None)
    assert (found.safety_kernel_tls_required, found.safety_kernel_insecure) == (False, False)


def test_a_bad_fail_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="POLICY_CHECK_FAIL_MODE"):
        load(environ={"POLICY_CHECK_FAIL_MODE": "ajar"}, folder=tmp_path)


@pytest.mark.parametrize(
    ("address", "given", "expected"),
    [
        ("kernel.internal:50051", {}, (False, True)),
        ("kernel.internal:50051", {"safety_kernel_insecure": True}, (False, False)),
        ("localhost:50051", {}, (False, False)),
        ("[::1]:50051", {}, (False, False)),
        ("127.0.0.1:50051", {"safety_kernel_tls_required": True}, (False, True)),
        ("127.0.0.1:50051", {"safety_kernel_tls_ca": Path("ca.pem")}, (False, True)),
        (OPA, {}, (True, True)),
        ("https://127.0.0.1:8181/v1/data/windlass/verdict", {}, (True, True)),
        ("http://127.0.0.1:8181/v1/data/windlass/verdict", {}, (True, False)),
        ("http://opa.internal/v1/data/x", {"safety_kernel_insecure": True}, (True, False)),
    ],
)
def test_when_a_kernel_is_asked_with_tls(address: str, given: dict[str, Any], expected: tuple[bool, bool]) -> None:
    assert place(address, **given) == expected


@pytest.mark.parametrize(
    ("address", "given"),
    [
        ("kernel.internal", {}),
        ("kernel.internal:0", {}),
        ("kernel.internal:99999", {}),
        ("ftp://opa/v1/data/x", {}),
        ("https://opa.internal:8181/", {}),
        ("https://opa.internal:8181/v1/data/", {}),
        ("https://user:pw@opa.internal/v1/data/x", {}),
        ("https://opa.internal:x/v1/data/x", {}),
        ("http://opa.internal/v1/data/x", {}),
        ("http://127.0.0.1/v1/data/x", {"safety_kernel_tls_required": True}),
        (OPA, {"safety_kernel_insecure": True}),
        ("kernel.internal:1", {"safety_kernel_insecure": True, "safety_kernel_tls_required": True}),
        ("kernel.internal:1", {"safety_kernel_insecure": True, "safety_kernel_tls_ca": Path("ca.pem")}),
    ],
)
def test_an_address_that_cannot_be_used_safely_is_refused(address: str, given: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        place(address, **given)


@pytest.mark.parametrize("text", [None, "", "no certificate"])
@pytest.mark.parametrize("address", ["kernel.internal:50051", OPA])
def test_certificates_that_cannot_be_read_are_refused(tmp_path: Path, address: str, text: str | None) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadSetting, match="safety_kernel_tls_ca"):
        kernel_of(Settings(safety_kernel_addr=address, safety_kernel_tls_ca=path))


async def test_a_kernel_is_made_as_the_settings_say(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(certificate("kernel.internal")[1])
    for address, name in (("kernel.internal:50051", "safety_kernel"), (OPA, "opa")):
        kernel = kernel_of(Settings(safety_kernel_addr=address, safety_kernel_tls_ca=path))
        assert kernel is not None
        assert (kernel.name, kernel.is_remote) == (name, True)
        await kernel.close()
