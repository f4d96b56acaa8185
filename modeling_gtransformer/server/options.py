"""Options of a server, each of which is an option of its command."""

from dataclasses import dataclass
from typing import Literal

from ..cli.model_options import ModelOptions
from ..translation_options import option


@dataclass(frozen=True)
class ServerOptions(ModelOptions):
    """
    Options of a server: how it translates, where it listens, and which requests it accepts.

    Raises:
        ValueError: a number is out of bounds.
    """

    splitter: Literal["line", "sentencex"] | None = option(
        "sentencex", "Sentences are lines, or found in running text by the package sentencex."
    )
    host: str = option("127.0.0.1", "Address to listen on; 0.0.0.0 listens on all addresses.")
    port: int = option(5000, "Port to listen on.", 1, 65535)
    page: bool = option(True, "Show a page at / for texts and files, if gradio is installed.")
    api_keys: str | None = option(None, "File of API keys, one a line; default: clients need no key.")
    allow_origins: list[str] | None = option(
        None, "Origin of pages whose scripts may use the server, e.g. https://example.org; an asterisk allows all."
    )
    lists: Literal["texts", "document"] = option(
        "texts", "Treat lists as independent texts or as one document, a sentence per item."
    )
    max_bytes: int = option(10_000_000, "Maximum bytes of a request.", 1)
    max_characters: int = option(
        100_000, "Maximum characters of a request; with markup, of its sentences, and ten times as many in all.", 1
    )
    max_texts: int = option(1000, "Maximum number of texts or sentences in the list of a request.", 1)
    max_waiting: int = option(256, "Maximum number of requests that wait or are being translated.", 1)
    max_per_client: int = option(64, "Maximum number of such requests per API key or, without keys, per address.", 1)
    max_seconds: float = option(300.0, "Maximum seconds of computing for a request, without its time in the queue.", 0)
    read_seconds: float = option(30.0, "Maximum seconds until the body of a request has arrived.", 0)
