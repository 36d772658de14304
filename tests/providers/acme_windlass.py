"""An adapter as a third party would write it, with its protocol for the fake provider. It is copied into a package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal

from windlass.core.external import ProviderStatus, Said
from windlass.providers.adapter import ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import BadAnswer, NotFound
from windlass.providers.http import Answer, Line, path_part
from windlass.providers.price import Usage
from windlass.providers.words import cancelled, failed, succeeded, unknown
from windlass.testing.fake_provider.provider import FakeService
from windlass.testing.fake_provider.wire import Reply, Request, reply
from windlass.testing.fake_provider.work import Work


class AcmeAdapter(ProviderAdapter):
    honours_keys = True
    default_profile = "github"

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.only_options()
        assert config.credential is not None
        self._line = Line(config, headers={"authorization": f"Acme {config.credential.reveal()}"})

    async def start_job(self, request: StartRequest) -> Started:
        body = {"what": request.input, "ref": request.key, "tell": self.webhook_url(request)}
        told = (await self._line.take("POST", "paint", json=body)).table()
        if not isinstance(told.get("no"), str):
            raise BadAnswer("Acme took it under no number")
        return Started(told["no"])

    async def get_job_status(self, external_id: str) -> Said:
        try:
            return self._said((await self._line.take("GET", f"paint/{path_part(external_id)}")).table())
        except NotFound:
            return unknown()

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        try:
            told = (await self._line.take("DELETE", f"paint/{path_part(external_id)}")).table()
        except NotFound:
            return ProviderStatus.UNKNOWN
        return self._said(told).status

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        told = Answer(200, headers, body).table()
        if not isinstance(told.get("no"), str):
            raise BadAnswer("Acme speaks of nothing")
        return WebhookNews("", told["no"], self._said(told), query.get("key"))

    async def close(self) -> None:
        await self._line.close()

    def _said(self, told: dict[str, object]) -> Said:
        match told.get("state"):
            case "PAINTING":
                return Said(ProviderStatus.RUNNING)
            case "DRY":
                return succeeded(told.get("picture"), self.calculate_cost("", Usage(seconds=Decimal(2))))
            case "RUINED":
                return failed(str(told.get("why")))
            case "STOPPED":
                return cancelled()
        return unknown()


class AcmeSpeech:
    name = "acme"
    words = {"SUCCEEDED": "DRY", "FAILED": "RUINED", "CANCELLED": "STOPPED"}  # noqa: RUF012

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def answer(self, request: Request, path: str) -> Reply | None:
        if not self._service.is_allowed(request, "Acme"):
            return reply({"error": "no"}, 401)
        act, no = self._service.act, path.removeprefix("paint").strip("/")
        match request.method, path.count("/"):
            case "POST", 0:
                return await act("start", self.name, lambda _: self._paint(request))
            case "GET", 1:
                return await act("status", self.name, lambda lie: self._look(no, lie))
            case "DELETE", 1:
                return await act("cancel", self.name, lambda _: self._stop(no))
        return reply({"error": "no"}, 404)

    def news(self, work: Work, status: ProviderStatus) -> bytes | None:
        return json.dumps(self._told(work, status)).encode() if status.is_terminal else None

    async def _paint(self, request: Request) -> Reply:
        body = request.json()
        work = await self._service.begin(self.name, body["ref"], "", body["what"], body.get("tell") or "")
        return reply({"no": work.id})

    async def _look(self, no: str, lie: str) -> Reply:
        work = self._service.works.get(no)
        if work is None or lie == "forget":
            return reply({"error": "no"}, 404)
        told = self._told(work, self._service.stand(work, lie))
        return reply({**told, "state": "BLUE"} if lie == "nonsense" else told)

    async def _stop(self, no: str) -> Reply:
        work = self._service.works.get(no)
        if work is None:
            return reply({"error": "no"}, 404)
        await self._service.cancel(work)
        return reply(self._told(work, self._service.stand(work)))

    def _told(self, work: Work, status: ProviderStatus) -> dict[str, object]:
        told: dict[str, object] = {"no": work.id, "state": self.words.get(status, "PAINTING")}
        if status is ProviderStatus.SUCCEEDED:
            told["picture"] = work.output()
        if status is ProviderStatus.FAILED:
            told["why"] = work.manner.error
        return told
