"""Files of requests: their contents and names, and their translations until clients download them."""

import asyncio
import secrets
from pathlib import PurePosixPath

from ..files import EXTENSIONS, FILE_FORMATS, decode
from .api_error import ApiError


def content_of(name: str, content: bytes) -> tuple[str | bytes, str]:
    """
    Returns the content of a file, as text if its format is text, and the format.

    Raises:
        ApiError: the extension of the name belongs to no known format.
        ValueError: a file in a text format is not text.
    """
    extension = PurePosixPath(name).suffix.lower()
    if extension not in EXTENSIONS:
        raise ApiError(400, f"Unsupported format. Supported extensions: {' '.join(EXTENSIONS)}.")
    format = EXTENSIONS[extension]
    binary = format != "text" and FILE_FORMATS[format].binary
    return content if binary else decode(content), format


def translated_name(name: str, target: str) -> str:
    """Names a translated file after its source, with the language added.

    >>> translated_name("C:\\\\letters\\\\to Ann.docx", "de")
    'to Ann.de.docx'
    """
    path = PurePosixPath(name.replace("\\", "/"))
    return f"{path.stem}.{target}{path.suffix}"


class TranslatedFiles:
    """
    Keeps files in memory under names that nobody can guess. New files displace the oldest ones.

    Args:
        max_bytes: size of all files together; a single one may be larger.
        max_seconds: seconds for which a file is kept.
    """

    def __init__(self, max_bytes: int = 200_000_000, max_seconds: float = 1800):
        self.max_bytes, self.max_seconds = max_bytes, max_seconds
        self._files: dict[str, tuple[str, bytes]] = {}

    def add(self, name: str, content: bytes) -> str:
        """Keeps a file, and returns its token. Needs a running event loop, which removes the file in time."""
        token = secrets.token_urlsafe(24)
        self._files[token] = name, content
        while len(self._files) > 1 and sum(len(kept) for _, kept in self._files.values()) > self.max_bytes:
            del self._files[next(iter(self._files))]
        asyncio.get_running_loop().call_later(self.max_seconds, self._files.pop, token, None)
        return token

    def get(self, token: str) -> tuple[str, bytes] | None:
        """Returns name and content of the file of a token, if it is still kept."""
        return self._files.get(token)
