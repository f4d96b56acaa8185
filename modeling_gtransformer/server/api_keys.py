"""API keys, which say who may use a server."""

import hashlib
import hmac
from pathlib import Path

from ..usage_error import UsageError, user_message
from .api_error import ApiError


class ApiKeys:
    """
    Checks the keys of requests, each in the same time however much of it matches a valid key.

    Args:
        file: file with one key per line; blank lines and those that begin with # do not count. Without a file, nobody
            needs a key.

    Raises:
        UsageError: the file cannot be read, or has no keys.
    """

    def __init__(self, file: str | None):
        self.required = file is not None
        self._digests = [_digest(key) for key in _read(file)] if file else []

    def check(self, key: str | None) -> None:
        """
        Refuses requests without a valid key, if the server has keys.

        Raises:
            ApiError: a key is needed, and this is not a valid one.
        """
        if not self.required:
            return
        if not key:
            raise ApiError(403, "This server needs an API key: send it as api_key.")
        digest = _digest(key)
        # All are compared, as any() alone would stop at the right one.
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        if not any(matches):
            raise ApiError(403, "The API key is not valid.")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _read(file: str) -> list[str]:
    try:
        lines = [line.strip() for line in Path(file).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, ValueError) as error:
        raise UsageError(f"The API keys {file} cannot be read: {user_message(error)}") from error
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise UsageError(f"The file {file} has no API keys: write one on each line.")
    return keys
