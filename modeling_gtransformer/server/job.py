"""Requests on their way through the model."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..pipeline_gtransformer import NamedDocument, PreparedDocument


class JobSettings(NamedTuple):
    """
    Settings of a translation. Jobs of the same settings share batches.

    Attributes:
        src_lang, tgt_lang: codes of the processor; `None` for its own.
        confidence: whether sentences are scored.
    """

    src_lang: str | None = None
    tgt_lang: str | None = None
    confidence: bool = False


@dataclass(eq=False)
class Job:
    """
    The documents of one request.

    Attributes:
        format: format of the documents, under its name in the pipeline.
        on_sentence: called with every sentence of the single document and its translation, as soon as it is certain.
        result: result of the pipeline for each document, or an error. If it is cancelled, the job stops.
        prepared: the documents, split into sentences.
        tokens: number of source tokens of all documents.
        is_alone: whether it shares no batch, because an earlier batch with it has failed.
        warnings: warnings of the code, for example about a placeholder that a translation lacks.
    """

    documents: list[str | bytes | list[str]]
    settings: JobSettings
    format: str = "text"
    on_sentence: Callable[[dict[str, str]], None] | None = None
    result: "Future[list[dict[str, Any]]]" = field(default_factory=Future)
    prepared: list[PreparedDocument] = field(default_factory=list)
    tokens: int = 0
    is_alone: bool = False
    warnings: list[str] = field(default_factory=list)

    def named(self) -> list[NamedDocument]:
        """The documents with their names in warnings."""
        return [NamedDocument(f"Document {place}", document) for place, document in enumerate(self.documents, 1)]

    def can_share(self, other: "Job") -> bool:
        """Tells whether a batch may hold both jobs."""
        streams = self.on_sentence is not None or other.on_sentence is not None
        return self.settings == other.settings and not (streams or self.is_alone or other.is_alone)

    def finish(self, results: list[dict[str, Any]]) -> None:
        """Passes the results to the caller, if it still waits."""
        self.warnings = [warning for result in results for warning in result["warnings"]]
        if self.result.set_running_or_notify_cancel():
            self.result.set_result(results)

    def fail(self, error: Exception) -> None:
        """Passes an error to the caller, if it still waits."""
        if self.result.set_running_or_notify_cancel():
            self.result.set_exception(error)
