"""Keeps translated files until they are downloaded."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class TranslatedFile:
    """A file, and the time in seconds at which it was made."""

    name: str
    content: bytes
    since: float


class TranslatedFiles:
    """
    Keeps files in memory under names that nobody can guess. New files displace the oldest ones.

    Args:
        max_bytes: size of all files together; a single one may be larger.
        max_seconds: seconds for which a file is kept.
        clock: returns the time in seconds.
    """

    def __init__(
        self, max_bytes: int = 200_000_000, max_seconds: float = 1800, clock: Callable[[], float] = time.monotonic
    ):
        self.max_bytes, self.max_seconds, self.clock = max_bytes, max_seconds, clock
        self._files: OrderedDict[str, TranslatedFile] = OrderedDict()
        self._bytes = 0

    def add(self, name: str, content: bytes) -> str:
        """Keeps a file, and returns its token."""
        self.forget_old()
        while self._files and self._bytes + len(content) > self.max_bytes:
            self._forget_first()
        token = secrets.token_urlsafe(24)
        self._files[token] = TranslatedFile(name, content, self.clock())
        self._bytes += len(content)
        return token

    def get(self, token: str) -> TranslatedFile | None:
        """Returns the file of a token, if it is still kept."""
        self.forget_old()
        return self._files.get(token)

    def forget_old(self) -> None:
        """Removes the files whose time is over."""
        oldest = self.clock() - self.max_seconds
        while self._files and next(iter(self._files.values())).since <= oldest:
            self._forget_first()

    def _forget_first(self) -> None:
        _, file = self._files.popitem(last=False)
        self._bytes -= len(file.content)
