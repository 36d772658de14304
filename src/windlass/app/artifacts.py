"""Opens the artifact store that the setting names: a folder, or a bucket."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from windlass.core.errors import BadSetting
from windlass.store.artifact import Artifacts, FolderArtifacts


def open_artifacts(place: str, environ: Mapping[str, str] = os.environ) -> Artifacts:
    """Open a folder by its path, or `s3://bucket/prefix` with the usual AWS variables for region and endpoint."""
    if not place.startswith("s3://"):
        return FolderArtifacts(place)
    # Few installations need the client, and its parts (http, hmac, ssl) take a while to import.
    from windlass.store.artifact_s3 import Credentials, S3Artifacts

    parts = urlsplit(place)
    if not parts.netloc:
        raise BadSetting(f"artifacts={place!r} names no bucket", remedy="It looks like s3://bucket/prefix")
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or "https://s3.amazonaws.com"
    prefix = parts.path.strip("/")
    return S3Artifacts(
        parts.netloc,
        credentials=Credentials.from_environment(environ),
        endpoint=endpoint,
        region=region,
        prefix=f"{prefix}/" if prefix else "windlass/",
    )
