"""Files of requests, and their translations until download."""

import asyncio
import secrets
from pathlib import PurePosixPath

from starlette.exceptions import HTTPException

from ..files import EXTENSIONS, FILE_FORMATS, decode


def content_of(name: str, content: bytes) -> tuple[str | bytes, str]:
    """
    Returns the content of a file, decoded for text formats, and its format.

    Raises:
        HTTPException: the extension is unsupported.
        ValueError: a file in a text format cannot be decoded.
    """
    extension = PurePosixPath(name).suffix.lower()
    if extension not in EXTENSIONS:
        raise HTTPException(400, f"Unsupported format. Supported extensions: {' '.join(EXTENSIONS)}.")
    format = EXTENSIONS[extension]
    binary = format != "text" and FILE_FORMATS[format].binary
    return content if binary else decode(content), format


def translated_name(name: str, target: str) -> str:
    """
    Adds the target language to the name of a file.

    >>> translated_name("C:\\\\letters\\\\to Ann.docx", "de"), translated_name("../../etc/a.b.txt", "de")
    ('to Ann.de.docx', 'a.b.de.txt')
    """
    path = PurePosixPath(name.replace("\\", "/"))
    return f"{path.stem}.{target}{path.suffix}"


class TranslatedFiles:
    """
    Stores files in memory under random tokens. New files displace the oldest ones.

    Args:
        max_bytes: maximum total size; a single file may be larger.
        max_seconds: maximum seconds of storage.
    """

    def __init__(self, max_bytes: int = 200_000_000, max_seconds: float = 1800):
        self.max_bytes, self.max_seconds = max_bytes, max_seconds
        self._files: dict[str, tuple[str, bytes]] = {}

    def add(self, name: str, content: bytes) -> str:
        """Stores a file, and returns its token. The running event loop removes the file after `max_seconds`."""
        token = secrets.token_urlsafe(24)
        self._files[token] = name, content
        while len(self._files) > 1 and sum(len(stored) for _, stored in self._files.values()) > self.max_bytes:
            del self._files[next(iter(self._files))]
        asyncio.get_running_loop().call_later(self.max_seconds, self._files.pop, token, None)
        return token

    def get(self, token: str) -> tuple[str, bytes] | None:
        return self._files.get(token)
