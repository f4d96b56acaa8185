"""A translation on the page, the tasks of its readers, and errors."""

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

import gradio as gr

from ..files import ALIGNED_FORMATS
from ..pipeline_gtransformer import DocumentTranslationPipeline
from .api_error import as_http_error
from .attention_view import attended_sentences, attention_html
from .document_files import content_of, translated_name
from .request_languages import Pair


PAIRS = ("tmx", "jsonl")  # downloads of sentence pairs


@dataclass(frozen=True)
class Translation:
    """
    The translation of a document.

    Attributes:
        name: name of its file.
        pairs: sentences of the pipeline's result, with confidence.
        segments: number of sentences per segment.
        document: the translation in the format of the document.
    """

    name: str
    pairs: list[dict[str, Any]]
    segments: list[int]
    document: str | bytes
    languages: Pair
    warnings: list[str]

    def segment(self, sentence: int) -> slice:
        boundaries = [0, *accumulate(self.segments)]
        after = bisect_right(boundaries, sentence)
        return slice(boundaries[after - 1], boundaries[after])

    def downloads(self) -> dict[str, tuple[str, bytes]]:
        """Returns names and contents of downloads by label: the document, and the pairs as TMX and JSONL."""
        contents = {Path(self.name).suffix: self.document}
        codes = (self.languages.src_lang or self.languages.source, self.languages.tgt_lang or self.languages.target)
        contents |= {f".{format}": ALIGNED_FORMATS[format](self.pairs, *codes) for format in PAIRS}
        return {
            f"Download {extension.lstrip('.').upper()}": (
                translated_name(str(Path(self.name).with_suffix(extension)), self.languages.target),
                content.encode("utf-8") if isinstance(content, str) else content,
            )
            for extension, content in contents.items()
        }


def read(text: str, file: str | None) -> tuple[str, str | bytes, str]:
    """
    Returns name, content and format of a file or, without a file, of a text.

    Raises:
        HTTPException, ValueError: the format is unsupported, or the file has expired or cannot be decoded.
    """
    if file is None:
        return "text.txt", text, "text"
    name = Path(file).name
    if not Path(file).is_file():
        raise ValueError(f"The server no longer stores {name}: choose it again.")
    return name, *content_of(name, Path(file).read_bytes())


@contextmanager
def errors_on_page() -> Iterator[None]:
    """Shows errors until the reader closes them, without details of unexpected errors."""
    try:
        yield
    except Exception as error:
        raise gr.Error(escape(as_http_error(error).detail), duration=None, print_exception=False) from error


class Readers:
    """The tasks of the readers of a page."""

    def __init__(self) -> None:
        self._tasks: defaultdict[str | None, set[asyncio.Task[Any]]] = defaultdict(set)

    @contextmanager
    def owned(self, request: gr.Request, task: "asyncio.Task[Any]") -> Iterator[None]:
        """Assigns a task to a reader, and cancels it at the end of the block. Raises `ValueError` if the reader
        cancelled it."""
        tasks = self._tasks[request.session_hash]
        tasks.add(task)
        try:
            yield
        except asyncio.CancelledError as error:
            if not task.cancelled():
                raise
            raise ValueError("The translation was cancelled.") from error
        finally:
            task.cancel()
            tasks.discard(task)
            if not tasks:
                self._tasks.pop(request.session_hash, None)

    async def cancel(self, request: gr.Request) -> None:
        """Cancels the tasks of a reader who cancels them or leaves."""
        for task in self._tasks.get(request.session_hash, ()):
            task.cancel()


def attention_of(pipeline: DocumentTranslationPipeline, translation: Translation | None, sentence: int) -> str:
    if translation is None:
        raise ValueError("The server no longer stores this translation: translate the document again.")
    if not pipeline.model.config.has_global_attention:
        return "<p>Every sentence attends only to itself.</p>"
    segment = translation.segment(sentence)
    pairs, inside = translation.pairs[segment], sentence - segment.start
    attention = attended_sentences(pipeline.model, pipeline.processor, pairs, inside)
    sources = [pair["source_text"] for pair in pairs]
    return attention_html(attention, sources, translation.languages.source, segment.start + 1, inside)
