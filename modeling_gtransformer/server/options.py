"""Options of a server and its command."""

from dataclasses import dataclass
from typing import Literal

from ..cli.model_options import ModelOptions
from ..translation_options import option


@dataclass(frozen=True)
class ServerOptions(ModelOptions):
    """Options of a server: translation, address, and limits of requests. Raises `ValueError` for one out of bounds."""

    splitter: Literal["line", "sentencex"] | None = option(
        "sentencex", "One sentence per line, or split running text with the package sentencex."
    )
    host: str = option("127.0.0.1", "Address to listen on; 0.0.0.0 listens on all addresses.")
    port: int = option(5000, "Port to listen on.", 1, 65535)
    page: bool = option(True, "Show a page at / for texts and files, if gradio is installed.")
    api_keys: str | None = option(None, "File with one API key per line; default: clients need no key.")
    allow_origins: list[str] | None = option(
        None, "Allow scripts of pages from this origin, e.g. https://example.org; an asterisk allows all origins."
    )
    lists: Literal["texts", "document"] = option(
        "texts", "Treat lists as independent texts or as one document, a sentence per item."
    )
    max_bytes: int = option(10_000_000, "Maximum bytes of a request.", 1)
    max_characters: int = option(
        100_000, "Maximum characters in the sentences of a request; markup may add nine times as many.", 1
    )
    max_texts: int = option(1000, "Maximum number of texts or sentences in the list of a request.", 1)
    max_waiting: int = option(256, "Maximum number of requests in the queue or in translation.", 1)
    max_per_client: int = option(64, "Maximum number of concurrent requests per API key or, without keys, address.", 1)
    max_seconds: float = option(300.0, "Maximum seconds of computation per request, without time in the queue.", 0)
    read_seconds: float = option(
        30.0, "Maximum seconds to receive a request, and for a client to read a part of the response.", 0
    )
