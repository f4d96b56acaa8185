"""What a server accepts, and how much of it."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Limits:
    """
    Bounds on requests. Each becomes an option of the command.

    Attributes:
        max_bytes: bytes of the body of a request.
        max_characters: characters of the texts of a request; of the sentences in one with markup, which may be ten
            times as long as a whole.
        max_texts: texts, or sentences of a document, in the list of a request.
        max_waiting: requests that wait or are being translated.
        max_per_client: those of them that come from one client.
        max_seconds: time until the answer, waiting included.
        read_seconds: time until the body of a request has arrived.
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
        api_keys: file of API keys, one a line; without it everybody is served.
        allow_origins: addresses of the pages whose scripts may use the server; `*` for all.
        lists: what a list of texts in a request is: "texts" that have nothing to do with each other, or the sentences
            of a "document".
    """

    limits: Limits = Limits()
    api_keys: str | None = None
    allow_origins: tuple[str, ...] = ()
    lists: Literal["texts", "document"] = "texts"
