"""The link that `windlass up` prints: it opens the console, signed in with the key of this home."""

from __future__ import annotations

import secrets

from windlass.access.keys import Keys
from windlass.access.sessions import Sessions
from windlass.app.first_key import first_key, secret_of
from windlass.app.windlass import Windlass


async def console_token(windlass: Windlass) -> str | None:
    """Create a token that signs in once, within ten minutes. It goes into an address of the console as `?token=`.

    Return None with Membership: Windlass has no key there, and a person signs in with a Membership key.
    """
    secret = secret_of(windlass.settings)
    path = await first_key(windlass, secret)
    if path is None:
        return None
    keys = Keys(windlass.db, secret, entropy=secrets.token_bytes)
    caller = await keys.verify(path.read_text(encoding="utf-8").strip())
    token, _ = await Sessions(windlass.db, secret, keys, entropy=secrets.token_bytes).make_token(caller)
    return token
