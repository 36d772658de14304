"""Settings: flags over environment over `windlass.toml` over defaults, each checked before any of them is used.

`KEYS` is the complete list. A key has the same name in the file; in the environment it is `WINDLASS_` and the name in
capitals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from windlass.app.setting_sources import FILE_NAME as FILE_NAME
from windlass.app.setting_sources import PREFIX as PREFIX
from windlass.app.setting_sources import from_environment, from_file
from windlass.core.errors import BadSetting
from windlass.core.queue import is_queue_name
from windlass.pure.label import check_indexed
from windlass.pure.redact import masked as masked

HOME_DEFAULT = Path(".windlass")
LISTEN_DEFAULT = "127.0.0.1:8420"
SECRET_LENGTH_MIN = 32
# Never shown, not even in the message about a bad value.
SECRET_KEYS = {"api_key", "safety_kernel_token", "secret"}
PROVIDERS_FILE = "providers.yaml"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of this process. Paths are absolute."""

    database_url: str | None = None
    home: Path = HOME_DEFAULT
    artifacts: str | None = None
    queues: tuple[str, ...] = ()
    concurrency: int | None = None
    lease_s: float = 15.0
    drain_s: float = 30.0
    inline_max_bytes: int = 256 * 1024
    retention_days: float = 30.0
    caller: str = "local"
    listen: str = LISTEN_DEFAULT
    server: str | None = None
    api_key: str | None = None
    secret: tuple[str, ...] = ()
    membership_url: str | None = None
    internal_callers: tuple[str, ...] = ()
    limit_capacity: int = 1_000_000
    limit_floor: int = 10_000
    limit_burst: float = 1.5
    limit_window_s: int = 3600
    tiers: tuple[tuple[str, int], ...] = ()
    queue_depth_max: int = 100_000
    caller_depth_max: int = 25_000
    fan_out_max: int = 100_000
    priority_max: int = 10
    body_max_bytes: int = 1024 * 1024
    head_max_bytes: int = 32 * 1024
    head_timeout_s: float = 10.0
    body_timeout_s: float = 120.0
    keep_alive_s: int = 75
    connections_max: int | None = None
    connections_per_address_max: int | None = None
    streams_max: int = 2_000
    streams_per_caller_max: int = 20
    webhook_loopback: bool = False
    approval_webhook: str | None = None
    approval_webhook_secret: str | None = field(default=None, repr=False)
    expose_tracebacks: bool = False
    log_format: str = "console"
    log_level: str = "warning"
    traces: str | None = None
    metrics_listen: str | None = None
    public_url: str | None = None
    proxies: tuple[str, ...] = ()
    providers: Path | None = None
    demo: bool | None = None
    indexed_labels: tuple[str, ...] = ()
    policy_required: bool = False
    policy_check_fail_mode: str | None = None
    safety_kernel_addr: str | None = None
    safety_kernel_tls_ca: Path | None = None
    safety_kernel_tls_required: bool = False
    safety_kernel_insecure: bool = False
    safety_kernel_token: str | None = None
    policy_keys: tuple[str, ...] = ()
    starter_policy: bool = True
    extensions: tuple[str, ...] | None = None
    # By extension and key: the source of the value and its raw text (`app/extending.py` parses it).
    of_extensions: Mapping[str, Mapping[str, tuple[str, Any]]] = field(default_factory=dict)

    @property
    def artifacts_place(self) -> str:
        """The store of outputs too big for a row: the setting, or a folder of the home."""
        return self.artifacts or str(self.home / "artifacts")

    @property
    def database_path(self) -> Path:
        """The folder of the embedded server's data."""
        return self.home / "pg"


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its parser for text and TOML values, its description, an example, and its further variable."""

    parse: Callable[[Any], Any]
    about: str
    example: str
    variable: str = ""


def _url(value: Any) -> str:
    text = _text(value)
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("it must start with postgresql://")
    return text


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        raise ValueError("it must be text")
    return value.strip()


def _place(value: Any) -> str:
    text = _text(value)
    scheme = re.match(r"([a-z0-9+]+)://", text)
    if scheme and scheme[1] not in ("s3", "file"):
        raise ValueError("it must be a folder or s3://bucket/prefix")
    return text.removeprefix("file://")


def _names(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("it must be names, separated by commas")
    found = tuple(name.strip() for name in names if name.strip())
    if not found:
        raise ValueError("it must name at least one")
    return found


def _queues(value: Any) -> tuple[str, ...]:
    names = [name for name in value.split(",") if name.strip()] if isinstance(value, str) else value
    for name in names if isinstance(names, list | tuple) else ():
        if not isinstance(name, str) or not is_queue_name(name.strip()):
            raise ValueError(f"{name!r} is not a queue's name: letters, digits, _, dots and dashes")
    return _names(list(names) if isinstance(names, tuple) else names)


def _labels(value: Any) -> tuple[str, ...]:
    return tuple(map(check_indexed, _names(value)))


def _extensions(value: Any) -> tuple[str, ...]:
    if value == []:
        return ()
    found = _names(value)
    return () if found == ("none",) else found


def _number(least: float, most: float) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        if isinstance(value, bool):
            raise ValueError("it must be a number")
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError("it must be a number") from None
        if not least <= number <= most:
            raise ValueError(f"it must be from {least:g} to {most:g}")
        return number

    return parse


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        number = _number(least, most)(value)
        if number != int(number):
            raise ValueError("it must be a whole number")
        return int(number)

    return parse


def _http_url(value: Any) -> str:
    text = _text(value).rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it must start with http:// or https://")
    return text


def _address(value: Any) -> str:
    text = _text(value)
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError("it must be HOST:PORT")
    return text


def _secrets(value: Any) -> tuple[str, ...]:
    found = _names(value)
    if any(len(text) < SECRET_LENGTH_MIN for text in found):
        raise ValueError(f"each must have at least {SECRET_LENGTH_MIN} characters")
    return found


def _tiers(value: Any) -> tuple[tuple[str, int], ...]:
    pairs = value.items() if isinstance(value, dict) else (name.split("=", 1) for name in _names(value))
    found: dict[str, int] = {}
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError("it must be TIER=REQUESTS, separated by commas")
        found[str(pair[0]).strip()] = _whole(1, 1_000_000_000)(pair[1])
    return tuple(found.items())


def _one_of(*words: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        text = _text(value).lower()
        if text not in words:
            raise ValueError(f"it must be one of {', '.join(words)}")
        return text

    return parse


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = _text(value).lower()
    if text not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
        raise ValueError("it must be true or false")
    return text in ("true", "1", "yes", "on")


KEYS: dict[str, Key] = {
    "database_url": Key(_url, "The PostgreSQL to use. Default: the embedded server.", "postgresql://user:pw@host/name"),
    "home": Key(lambda v: Path(_text(v)), "The folder of the embedded PostgreSQL and of artifacts.", "./.windlass"),
    "artifacts": Key(
        _place, "The store for large outputs: a folder that all workers share, or a bucket.", "s3://bucket/prefix"
    ),
    "queues": Key(
        _queues,
        "The queues that a worker serves. Default: all default queues.",
        "main_processing,fast",
    ),
    "concurrency": Key(_whole(1, 10_000), "The number of steps that a worker runs at once.", "100"),
    "lease_s": Key(_number(2, 3600), "The seconds without a heartbeat after which a worker counts as dead.", "15"),
    "drain_s": Key(
        _number(0, 86_400),
        "The seconds that a stopping worker gives its handlers before it hands their steps back.",
        "30",
    ),
    "inline_max_bytes": Key(
        _whole(1024, 64 * 1024 * 1024), "An output above this size goes to the artifact store.", "262144"
    ),
    "retention_days": Key(_number(0, 36_500), "The time for which finished jobs are kept; 0 keeps them forever.", "30"),
    "caller": Key(_text, "The caller that submits; idempotency keys are unique per caller.", "local"),
    "listen": Key(_address, "The address that the API listens on; port 0 takes any free port.", LISTEN_DEFAULT),
    "server": Key(_http_url, "The server that the command line and the client use.", "https://windlass.example"),
    "api_key": Key(_text, "The key that the command line and the client send.", "wl_…"),
    "secret": Key(
        _secrets,
        "The installation's secret. Of several, the first signs, and all are accepted.",
        "$(openssl rand -hex 32)",
    ),
    "membership_url": Key(
        _http_url, "The Membership service that verifies keys. Default: built-in keys.", "https://members"
    ),
    "internal_callers": Key(_names, "Internal callers; their limit is twenty times the floor.", "indexer,nightly"),
    "limit_capacity": Key(_whole(1, 10**9), "Requests per window that all callers share fairly.", "1000000"),
    "limit_floor": Key(_whole(1, 10**9), "Requests per window that every caller has at least.", "10000"),
    "limit_burst": Key(_number(1, 100), "The burst that a caller may use above its share.", "1.5"),
    "limit_window_s": Key(_whole(1, 86_400), "The length of the sliding window.", "3600"),
    "tiers": Key(_tiers, "Requests per window by tier.", "free=1000,pro=100000"),
    "queue_depth_max": Key(_whole(1, 10**9), "The number of queued steps above which submits are refused.", "100000"),
    "caller_depth_max": Key(
        _whole(1, 10**9),
        "The number of waiting steps of one caller above which its submits are refused.",
        "25000",
    ),
    "fan_out_max": Key(_whole(1, 10**7), "A fan-out over more items than this fails.", "100000"),
    "priority_max": Key(
        _whole(-100, 100), "The highest priority that a key without the scope priority:high may ask for.", "10"
    ),
    "body_max_bytes": Key(_whole(1024, 64 * 1024 * 1024), "The largest request body.", "1048576"),
    "head_max_bytes": Key(
        _whole(4096, 1024 * 1024), "The largest head of a request; its URL may have half of it.", "32768"
    ),
    "head_timeout_s": Key(_number(0.5, 3600), "The seconds within which a request's head must arrive.", "10"),
    "body_timeout_s": Key(
        _number(1, 86_400), "The seconds within which a body must arrive, at 1 KB a second or faster.", "120"
    ),
    "keep_alive_s": Key(_whole(1, 3600), "The idle seconds after which a connection is closed.", "75"),
    "connections_max": Key(
        _whole(1, 1_000_000), "Open connections per process. Default: 4,000, or the limit of open files.", "4000"
    ),
    "connections_per_address_max": Key(
        _whole(1, 1_000_000), "Open connections per address, except for `proxies`. Default: half of all.", "2000"
    ),
    "streams_max": Key(_whole(1, 100_000), "Open streams per process.", "2000"),
    "streams_per_caller_max": Key(_whole(1, 100_000), "Open streams per caller and process.", "20"),
    "webhook_loopback": Key(_switch, "For development only: webhooks may go to this machine.", "true"),
    "approval_webhook": Key(
        _http_url, "The address to notify of waiting approvals. Default: none.", "https://x.example"
    ),
    "approval_webhook_secret": Key(_text, "The secret that signs these notices.", "whsec_$(openssl rand -base64 32)"),
    "expose_tracebacks": Key(
        _switch, "Whether callers and webhooks get tracebacks of failed steps. Admins always get them.", "true"
    ),
    "log_format": Key(_one_of("console", "json"), "The format of log lines.", "json"),
    "log_level": Key(_one_of("debug", "info", "warning", "error"), "The lowest level that is logged.", "info"),
    "traces": Key(_http_url, "The receiver of traces (OTLP over HTTP). Default: none.", "http://127.0.0.1:4318"),
    "metrics_listen": Key(_address, "The address at which a worker or an engine serves its metrics.", "127.0.0.1:9464"),
    "public_url": Key(
        _http_url,
        "The public URL of the server, if clients use another address than `listen`.",
        "https://windlass.example",
    ),
    "providers": Key(
        lambda v: Path(_text(v)),
        "The file of the providers. Default: `providers.yaml` in the current folder, if it exists.",
        "./providers.yaml",
    ),
    "demo": Key(_switch, "Whether `up` starts a demo job. Default: yes, if it serves the examples.", "false"),
    "indexed_labels": Key(
        _labels,
        "Labels with an index, which keeps lists filtered by them fast among any number of jobs.",
        "team,project",
    ),
    "policy_check_fail_mode": Key(
        _one_of("closed", "open"),
        "Jobs while the safety kernel is silent: `closed` (they wait) or `open` (they run, and are judged afterwards). "
        "Default: `input_policy.fail_mode` of the policy, else closed.",
        "closed",
        "POLICY_CHECK_FAIL_MODE",
    ),
    "safety_kernel_addr": Key(
        _text,
        "The kernel that judges every job: HOST:PORT of a gRPC SafetyKernel, or the URL of a document of OPA; "
        "`none` takes it away.",
        "https://opa:8181/v1/data/windlass/verdict",
        "SAFETY_KERNEL_ADDR",
    ),
    "safety_kernel_tls_ca": Key(
        lambda v: Path(_text(v)), "The certificates that a kernel may have.", "./ca.pem", "SAFETY_KERNEL_TLS_CA"
    ),
    "safety_kernel_tls_required": Key(
        _switch, "Whether a kernel on this machine needs TLS too.", "true", "SAFETY_KERNEL_TLS_REQUIRED"
    ),
    "safety_kernel_insecure": Key(
        _switch, "Whether a kernel on another machine may be asked without TLS.", "true", "SAFETY_KERNEL_INSECURE"
    ),
    "safety_kernel_token": Key(_text, "The bearer token that a kernel wants.", "s3cret", "SAFETY_KERNEL_TOKEN"),
    "policy_required": Key(_switch, "Whether every job is denied until a policy is published.", "true"),
    "policy_keys": Key(
        _names, "Public keys (Ed25519, base64), one of which must have signed every policy. Default: none.", "mM0L…="
    ),
    "starter_policy": Key(_switch, "Whether `up` publishes a policy that allows every job, if there is none.", "false"),
    "extensions": Key(_extensions, "The extensions to load, or `none`. Default: all installed extensions.", "notes"),
    "proxies": Key(_names, "Addresses of proxies whose X-Forwarded-For is trusted.", "10.0.0.7"),
}


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    folder: str | Path | None = None,
) -> Settings:
    """Read the settings that apply here. A flag of None was not given."""
    start = Path(folder) if folder is not None else Path.cwd()
    values: dict[str, Any] = {}
    added: dict[str, dict[str, tuple[str, Any]]] = {}
    for source, key, value in (
        *from_file(environ, start, KEYS),
        *from_environment(environ, KEYS),
        *((f"--{name.replace('_', '-')}", name, value) for name, value in (flags or {}).items() if value is not None),
    ):
        if isinstance(key, tuple):
            added.setdefault(key[0], {})[key[1]] = (source, value)
        else:
            values[key] = _parsed(source, key, value)
    home = Path(values.pop("home", HOME_DEFAULT)).expanduser()
    artifacts = values.pop("artifacts", None)
    if "providers" not in values and (start / PROVIDERS_FILE).is_file():
        values["providers"] = Path(PROVIDERS_FILE)
    if "providers" in values:
        values["providers"] = (start / values["providers"].expanduser()).absolute()
    if "safety_kernel_tls_ca" in values:
        values["safety_kernel_tls_ca"] = (start / values["safety_kernel_tls_ca"].expanduser()).absolute()
    if artifacts is not None and "://" not in artifacts:
        artifacts = str((start / Path(artifacts).expanduser()).absolute())
    return Settings(home=(start / home).absolute(), artifacts=artifacts, of_extensions=added, **values)


def flag(name: str, key: str, value: Any) -> Any:
    """Return the value of a command's own flag, checked like the setting of that key; None if it was not given."""
    return None if value is None else _parsed(name, key, value)


def _parsed(source: str, key: str, value: Any) -> Any:
    known = KEYS[key]
    try:
        return known.parse(value)
    except ValueError as error:
        shown = masked(str(value)) if key == "database_url" else str(value)
        shown = "…" if key in SECRET_KEYS else shown
        raise BadSetting(f"{source}={shown!r}: {error}", remedy=f"For example: {known.example}") from None
