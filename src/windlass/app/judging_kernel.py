"""The kernel outside of the process that the settings name.

    address                        asked with TLS
    https://…                      yes
    http://…                       no; on another machine only with `safety_kernel_insecure`
    HOST:PORT on this machine      no, unless certificates are given or TLS is required
    HOST:PORT elsewhere            yes, unless `safety_kernel_insecure` is set

`safety_kernel_tls_ca` has the certificates to trust, in place of those of the machine.

Settings that contradict each other are refused: a kernel without TLS could be impersonated, and could allow everything.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from windlass.app.settings import Settings
from windlass.core.errors import BadSetting
from windlass.engine.kernels import GuardedKernel, KernelGate, announce
from windlass.engine.policies import Policies
from windlass.policy.kernel import Kernel
from windlass.store.database import Database

NO_KERNEL = "none"
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_OPA_PATH = "/v1/data/"


@dataclass(frozen=True, slots=True)
class KernelPlace:
    """Where a kernel is: a gRPC address, or the URL of a document of OPA; and whether it is asked with TLS."""

    address: str
    host: str
    is_opa: bool
    has_tls: bool


async def use_kernel(
    db: Database, policies: Policies, settings: Settings, count: Callable[[str, str], None] | None = None
) -> GuardedKernel | None:
    """Give a process the kernel of its settings, and tell all processes to hold new jobs for it. Raises BadSetting.

    A process whose settings name no kernel changes nothing: otherwise a forgotten setting would open the gate. Only the
    address `none` takes the kernel away.
    """
    if settings.safety_kernel_addr == NO_KERNEL:
        await announce(db, None)
        return None
    kernel = kernel_of(settings)
    if kernel is None:
        return None
    guard = GuardedKernel(db, kernel, clock_s=time.monotonic)
    policies.kernel = KernelGate(guard, settings.policy_check_fail_mode, count)
    await announce(db, kernel.name)
    return guard


def kernel_place(settings: Settings) -> KernelPlace | None:
    """Return where the configured kernel is, or None. Raises BadSetting."""
    if settings.safety_kernel_addr in (None, NO_KERNEL):
        return None
    text = settings.safety_kernel_addr or ""
    if "://" in text:
        return _opa(settings, text)
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) <= 65535:
        raise _bad(text, "it must be HOST:PORT, or a URL with the path /v1/data/…")
    host = found["host"].strip("[]")
    return KernelPlace(text, host, is_opa=False, has_tls=_has_tls(settings, host))


def kernel_of(settings: Settings) -> Kernel | None:
    """Return the configured kernel outside of the process, or None. Raises BadSetting."""
    place = kernel_place(settings)
    if place is None:
        return None
    certificates = _certificates(settings)
    if place.is_opa:
        return _opa_kernel(settings, place, certificates)
    try:
        from windlass.policy.kernels.safety_kernel import SafetyKernel, trusting
    except ImportError:
        raise _missing("grpc") from None
    tls = trusting(certificates) if place.has_tls else None
    return SafetyKernel(place.address, tls=tls, token=settings.safety_kernel_token)


def _opa_kernel(settings: Settings, place: KernelPlace, certificates: bytes | None) -> Kernel:
    try:
        from windlass.policy.kernels.opa import OpaKernel
    except ImportError:
        raise _missing("service") from None
    trusted = None if certificates is None else certificates.decode()
    try:
        context = ssl.create_default_context(cadata=trusted) if place.has_tls else None
    except (ssl.SSLError, ValueError) as error:
        raise _bad_certificates(settings, error) from error
    return OpaKernel(place.address, token=settings.safety_kernel_token, tls=context)


def _opa(settings: Settings, text: str) -> KernelPlace:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise _bad(text, "it is not a URL") from None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        raise _bad(text, "it must start with http:// or https://, and name a host")
    if not _names_document(parts):
        raise _bad(text, "its path must be /v1/data/ and the document with the decision")
    has_tls = parts.scheme == "https"
    wants_tls = _has_tls(settings, host, is_plain=not has_tls)
    if (wants_tls and not has_tls) or (has_tls and settings.safety_kernel_insecure):
        raise _bad(text, "its scheme and the settings for TLS contradict each other")
    return KernelPlace(text, host, is_opa=True, has_tls=has_tls)


def _names_document(parts: SplitResult) -> bool:
    return parts.path.startswith(_OPA_PATH) and len(parts.path) > len(_OPA_PATH) and not parts.query + parts.fragment


def _has_tls(settings: Settings, host: str, *, is_plain: bool = False) -> bool:
    wants_tls = settings.safety_kernel_tls_required or settings.safety_kernel_tls_ca is not None
    if settings.safety_kernel_insecure:
        if wants_tls:
            raise BadSetting(
                "safety_kernel_insecure contradicts safety_kernel_tls_ca and safety_kernel_tls_required",
                remedy="Unset safety_kernel_insecure, or the others",
            )
        return False
    if wants_tls:
        return True
    if _is_local(host):
        return False
    if is_plain:
        raise BadSetting(
            f"the safety kernel at {host} would be asked without TLS",
            remedy="Use https://, or set safety_kernel_insecure if the network is trusted",
        )
    return True


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _certificates(settings: Settings) -> bytes | None:
    path = settings.safety_kernel_tls_ca
    if path is None:
        return None
    try:
        found = path.read_bytes()
    except OSError as error:
        raise _bad_certificates(settings, error) from error
    if b"-----BEGIN CERTIFICATE-----" not in found:
        raise _bad_certificates(settings, "it has no certificate in the form PEM")
    return found


def _bad(text: str, reason: str) -> BadSetting:
    return BadSetting(
        f"safety_kernel_addr={text!r}: {reason}",
        remedy="For example: kernel.internal:50051, or https://opa:8181/v1/data/windlass/verdict",
    )


def _bad_certificates(settings: Settings, error: object) -> BadSetting:
    path = settings.safety_kernel_tls_ca
    return BadSetting(f"safety_kernel_tls_ca={str(path)!r} cannot be used: {error}", remedy="Name a file with PEM")


def _missing(extra: str) -> BadSetting:
    return BadSetting(
        "the packages for the configured safety kernel are not installed", remedy=f"Install windlass[{extra}]"
    )
