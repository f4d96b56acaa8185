"""Settings of a server, and limits on its requests."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Limits:
    """
    Limits on requests, each of which is an option of the command.

    Attributes:
        max_bytes: size of the body of a request in bytes.
        max_characters: characters in the texts of a request; in a text with markup, characters of its sentences, while
            the whole text may be ten times as long.
        max_texts: number of texts, or of sentences of a document, in the list of a request.
        max_waiting: number of requests that wait or are being translated.
        max_per_client: number of such requests from one client.
        max_seconds: seconds until the answer, including the time in the queue.
        read_seconds: seconds until the body of a request has arrived.
    """

    max_bytes: int = field(default=10_000_000, metadata={"help": "Upper bound on the bytes of a request."})
    max_characters: int = field(
        default=100_000,
        metadata={"help": "Upper bound on the characters of a request; with markup, on those of its sentences."},
    )
    max_texts: int = field(
        default=1000, metadata={"help": "Upper bound on the texts or sentences in the list of a request."}
    )
    max_waiting: int = field(
        default=256, metadata={"help": "Upper bound on the requests that wait or are being translated."}
    )
    max_per_client: int = field(
        default=64, metadata={"help": "Upper bound on the requests under way of an API key or, without keys, address."}
    )
    max_seconds: float = field(
        default=300, metadata={"help": "Upper bound on the seconds until the answer, waiting included."}
    )
    read_seconds: float = field(
        default=30, metadata={"help": "Upper bound on the seconds until the body of a request has arrived."}
    )


@dataclass(frozen=True)
class ServerSettings:
    """
    Settings of the server.

    Attributes:
        api_keys: file of API keys, one per line; without it, everybody is served.
        allow_origins: addresses of the pages whose scripts may use the server; `*` for all.
        lists: meaning of a list of texts in a request: independent "texts", or the sentences of a "document".
    """

    limits: Limits = Limits()
    api_keys: str | None = None
    allow_origins: tuple[str, ...] = ()
    lists: Literal["texts", "document"] = "texts"
