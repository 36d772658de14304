"""A provider that accepts all work at once and never does it: any job API, but for the first call."""

from windlass.providers.adapter import Started, StartRequest
from windlass.providers.adapters.generic import HttpAdapter


class NowhereAdapter(HttpAdapter):
    """Uses the request's key as the external id, so that the test can report the end of a known job."""

    async def start_job(self, request: StartRequest) -> Started:
        """Accept the work."""
        return Started(request.key)
