"""A provider that takes all work at once and never does it: any job API, but for the first call."""

from windlass.providers.adapter import Started, StartRequest
from windlass.providers.adapters.generic import HttpAdapter


class NowhereAdapter(HttpAdapter):
    """What it calls the work is the key that it was asked with, so that whoever knows the job can tell its end."""

    async def start_job(self, request: StartRequest) -> Started:
        """Taken."""
        return Started(request.key)
