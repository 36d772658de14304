"""A provider without a dedicated adapter: paths, field names and status words come from the configuration.

```yaml
providers:
  render:
    adapter: http
    base_url: https://render.example/api
    credential_env: RENDER_KEY
    options:
      submit: POST /jobs                    # {model} may be part of a path
      status: GET /jobs/{id}
      result: GET /jobs/{id}/result         # if the status does not contain it
      cancel: DELETE /jobs/{id}             # omit if work cannot be cancelled
      find: GET /jobs?key={key}             # omit if work cannot be looked up
      list: GET /jobs?since={since}         # seconds since 1970
      body: {model: "{model}", input: "{input}", webhook_url: "{webhook_url}"}
      fields: {id: id, status: status, output: output, error: error, progress: progress}
      statuses: {baking: RUNNING, baked: SUCCEEDED}
      auth: Bearer                          # or `X-Api-Key`: the name of a header
      key_header: Idempotency-Key
      honours_keys: true
```

A path in `fields` is one name, or several joined by full stops; an empty path is the whole answer. An answer to
`submit` with a terminal status ends the work at once, which is enough for a synchronous service.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote

from windlass.core.errors import BadSetting
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Cost
from windlass.providers.adapter import LIST_MAX, Listed, ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import BadAnswer, NotFound, NotSupported, shown
from windlass.providers.http import Answer, Line, message_in, path_parts
from windlass.providers.price import Usage, count_of, decimal_of
from windlass.providers.words import (
    STATUSES,
    cancelled,
    codes_in,
    failed,
    json_text,
    percent_of,
    status_of,
    succeeded,
    unknown,
)

_OPTIONS = (
    "submit", "status", "result", "cancel", "find", "list", "body", "fields", "statuses", "auth", "key_header",
    "honours_keys", "headers",
)  # fmt: skip
_BODY = {"model": "{model}", "input": "{input}", "webhook_url": "{webhook_url}"}
_FIELDS = {
    "id": "id", "status": "status", "output": "output", "error": "error", "progress": "progress",
    "message": "message", "preview": "preview", "key": "key", "model": "model", "created_at": "created_at",
    "items": "jobs", "seconds": "usage.seconds", "tokens_in": "usage.tokens_in", "tokens_out": "usage.tokens_out",
    "cost": "cost", "event": "event_id",
}  # fmt: skip
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class _Route(NamedTuple):
    method: str
    path: str

    def at(self, **parts: str) -> str:
        """Return the path with its parameters filled in."""
        path = self.path
        for name, text in parts.items():
            filled = path_parts(text) if name == "model" and text else quote(text, safe="")
            path = path.replace(f"{{{name}}}", filled)
        return path


class HttpAdapter(ProviderAdapter):
    """Any job API over HTTP."""

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.only_options(*_OPTIONS)
        self._submit = self._route("submit", "POST /jobs")
        self._status = self._route("status", "GET /jobs/{id}")
        self._result = self._route("result")
        self._cancel = self._route("cancel")
        self._find = self._route("find")
        self._list = self._route("list")
        self.can_cancel = self._cancel is not None
        self.can_find = self._find is not None
        self.can_list = self._list is not None
        self.honours_keys = self.option("honours_keys", bool, True)
        self._body = self.option("body", dict, _BODY)
        self._fields = {**_FIELDS, **self._texts("fields", known=_FIELDS)}
        self._statuses = {**STATUSES, **self._own_statuses()}
        self._key_header = self.option("key_header", str, "Idempotency-Key")
        self._line = Line(config, headers={**self._texts("headers"), **self._auth()})

    async def start_job(self, request: StartRequest) -> Started:
        """Submit the work."""
        route = self._need(self._submit, "submit")
        given = {
            "{model}": request.model or None,
            "{input}": request.input,
            "{webhook_url}": self.webhook_url(request),
            "{key}": request.key,
            "{metadata}": dict(request.metadata) or None,
        }
        filled = {name: _filled(value, given) for name, value in self._body.items()}
        body = {name: value for name, value in filled.items() if value is not None or name == "input"}
        headers = {self._key_header: request.key} if self._key_header else {}
        document = (
            await self._line.take(route.method, route.at(model=request.model), json=body, headers=headers)
        ).table()
        said = self._said(document)
        id = self._id(document)
        if said.status.is_terminal:
            return Started(id, await self._with_result(id, said) if id else said)
        if id is None:
            raise BadAnswer(f"the answer to a submit has no {self._fields['id']!r}")
        return Started(id)

    async def get_job_status(self, external_id: str) -> Said:
        """Poll the work, and fetch its result if the status does not contain it."""
        route = self._need(self._status, "status")
        try:
            document = (await self._line.take(route.method, route.at(id=external_id))).table()
        except NotFound:
            return unknown("the provider does not know this work")
        return await self._with_result(external_id, self._said(document))

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Ask the provider to stop the work."""
        route = self._need(self._cancel, "cancel")
        try:
            answer = await self._line.take(route.method, route.at(id=external_id))
        except NotFound:
            return ProviderStatus.UNKNOWN
        if not answer.body:
            return ProviderStatus.CANCELLED
        status = status_of(_at(answer.table(), self._fields["status"]), self._statuses)
        return ProviderStatus.CANCELLED if status is ProviderStatus.UNKNOWN else status

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """Parse a webhook, which has the shape of the status answer."""
        document = Answer(200, headers, body).table()
        event = _at(document, self._fields["event"])
        said, id = self._said(document), self._id(document)
        is_elsewhere = said.status is ProviderStatus.SUCCEEDED and self._result is not None
        if is_elsewhere and _at(document, self._fields["output"]) is None:
            return WebhookNews(
                _text(event), id, Said(ProviderStatus.RUNNING), query.get("key"), needs_look=id is not None
            )
        return WebhookNews(_text(event), id, said, query.get("key"))

    async def find_job(self, key: str) -> str | None:
        """Look up the work by its key."""
        route = self._need(self._find, "find")
        try:
            document = (await self._line.take(route.method, route.at(key=key))).json()
        except NotFound:
            return None
        for one in self._items(document):
            # A service that ignores the query lists everything, so the key must be in the entry.
            if _at(one, self._fields["key"]) == key and (id := self._id(one)) is not None:
                return id
        return None

    async def list_jobs(self, since: datetime) -> list[Listed]:
        """List the provider's work."""
        route = self._need(self._list, "list")
        document = (await self._line.take(route.method, route.at(since=f"{since.timestamp():.3f}"))).json()
        found = []
        for one in self._items(document):
            created_at, id = _time(_at(one, self._fields["created_at"])), self._id(one)
            if id is not None and (created_at is None or created_at >= since):
                status = status_of(_at(one, self._fields["status"]), self._statuses)
                found.append(Listed(id, status, created_at, _text(_at(one, self._fields["key"])) or None))
        return found[:LIST_MAX]

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close()

    # Answers

    async def _with_result(self, id: str, said: Said) -> Said:
        if said.status is not ProviderStatus.SUCCEEDED or self._result is None:
            return said
        answer = await self._line.take(self._result.method, self._result.at(id=id))
        return Said(said.status, output=json_text(answer.json()), cost=said.cost)

    def _said(self, document: Mapping[str, Any]) -> Said:
        word = _at(document, self._fields["status"])
        status = status_of(word, self._statuses)
        match status:
            case ProviderStatus.SUCCEEDED:
                return succeeded(_at(document, self._fields["output"]), self._cost(document))
            case ProviderStatus.FAILED:
                error = _at(document, self._fields["error"])
                message = self._line.clean(message_in(error))
                return failed(message, codes=[*codes_in(error), error], cost=self._cost(document))
            case ProviderStatus.CANCELLED:
                return cancelled(self._line.clean(message_in(_at(document, self._fields["error"]))))
            case ProviderStatus.UNKNOWN:
                return unknown(f"the provider says {str(word)[:40]!r}")
        preview = _at(document, self._fields["preview"])
        return Said(
            status,
            progress_pct=percent_of(_at(document, self._fields["progress"])),
            message=shown(self._line.clean(_text(_at(document, self._fields["message"])))) or None,
            preview=None if preview is None else json_text(preview),
        )

    def _cost(self, document: Mapping[str, Any]) -> Cost:
        usage = Usage(
            seconds=decimal_of(_at(document, self._fields["seconds"])) or Decimal(0),
            tokens_in=count_of(_at(document, self._fields["tokens_in"])),
            tokens_out=count_of(_at(document, self._fields["tokens_out"])),
        )
        amount = decimal_of(_at(document, self._fields["cost"]))
        if amount is not None:
            return self.cost(amount, usage)
        return self.calculate_cost(_text(_at(document, self._fields["model"])), usage)

    def _id(self, document: Any) -> str | None:
        id = _at(document, self._fields["id"])
        return str(id) if isinstance(id, str | int) and not isinstance(id, bool) and str(id) else None

    def _items(self, document: Any) -> list[Any]:
        items = document if isinstance(document, list) else _at(document, self._fields["items"])
        if not isinstance(items, list):
            raise BadAnswer(f"the list of work has no {self._fields['items']!r}")
        return items

    # Configuration

    def _need(self, route: _Route | None, name: str) -> _Route:
        if route is None:
            raise NotSupported(f"{self.config.name} has no {name} path", code="not_supported")
        return route

    def _route(self, name: str, default: str = "") -> _Route | None:
        text = self.option(name, str, default)
        if not text:
            return None
        method, _, path = text.strip().partition(" ")
        path = path.strip()
        if method not in _METHODS or not path.startswith("/"):
            raise self._bad(name, f"{text!r} is not a method and path", "Write it as `GET /jobs/{id}`")
        wanted = {"status": "{id}", "result": "{id}", "cancel": "{id}", "find": "{key}"}.get(name, "")
        if wanted not in path:
            raise self._bad(name, f"the path must contain {wanted}")
        return _Route(method, path)

    def _texts(self, name: str, known: Mapping[str, str] | None = None) -> dict[str, str]:
        found = self.option(name, dict, {})
        for key, value in found.items():
            if not isinstance(value, str):
                raise self._bad(f"{name}.{key}", f"{value!r} is not text")
            if known is not None and key not in known:
                raise self._bad(f"{name}.{key}", "there is no such field", f"Known: {', '.join(known)}")
        return dict(found)

    def _own_statuses(self) -> dict[str, ProviderStatus]:
        found = {}
        for word, status in self._texts("statuses").items():
            if status not in list(ProviderStatus):
                raise self._bad(
                    f"statuses.{word}", f"{status!r} is not a known status", f"Known: {', '.join(ProviderStatus)}"
                )
            found[word.lower()] = ProviderStatus(status)
        return found

    def _auth(self) -> dict[str, str]:
        auth = self.option("auth", str, "Bearer")
        if self.config.credential is None:
            return {}
        credential = self.config.credential.reveal()
        if "-" in auth:
            return {auth: credential}
        return {"authorization": f"{auth} {credential}" if auth else credential}

    def _bad(self, place: str, message: str, remedy: str | None = None) -> BadSetting:
        return BadSetting(f"providers.{self.config.name}.options.{place}: {message}", remedy=remedy)


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    """Fill a value of the body: a whole text such as `{input}` is replaced by its value."""
    if isinstance(value, str):
        return given.get(value, value)
    if isinstance(value, dict):
        return {name: _filled(part, given) for name, part in value.items()}
    return [_filled(part, given) for part in value] if isinstance(value, list) else value


def _at(value: Any, path: str) -> Any:
    """Return the value at a path; None if the path leads nowhere."""
    for part in path.split(".") if path else ():
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
