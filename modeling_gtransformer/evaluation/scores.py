"""Scores of translated documents: s-BLEU, d-BLEU, chrF, and significance of differences from a baseline."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import check_outputs
from ..translation_options import option
from .metrics import score_documents
from .report import ReportOptions, write_report
from .translations import (
    Translations,
    compare_translations,
    in_common_segments,
    read_sentences,
    read_translations,
    segment_sizes,
)


THIRDS = ("first", "middle", "last")


@dataclass(frozen=True)
class ScoreOptions(ReportOptions):
    """Options of `gtransformer evaluate scores`."""

    translations: str = option(
        MISSING,
        "Translations by any system: JSON lines, or text with a sentence per line and a blank line or <d> between "
        "documents.",
        argument=True,
    )
    reference: str = option(MISSING, "Reference translations of the documents, in these formats.")
    baseline: str | None = option(None, "Translations of these documents by a baseline, to compare with.")
    source: str | None = option(None, "Sources, for tokenizer and train_files; default: the file of the references.")
    source_column: str = option("source", "Column with the source sentences.")
    reference_column: str = option("target", "Column with the references.")
    translation_column: str = option("translation", "Column with the translations.")
    tokenizer: str | None = option(
        None, "Folder or Hub name of a model; its tokenizer cuts segments for d-BLEU as in the paper."
    )
    segment_tokens: int = option(512, "Segments cut with tokenizer have fewer tokens than this.", 1)
    train_files: list[str] = option([], "Training documents: adds the s-BLEU of sentences that are not in them.")
    thirds: bool = option(False, "Add the s-BLEU of the first, middle and last third of every document.")
    tokenize: str = option("13a", "Tokenizer of sacrebleu for BLEU.")

    def __post_init__(self) -> None:
        if self.tokenize not in BLEU.TOKENIZERS:
            raise ValueError(f"tokenize must be one of {', '.join(sorted(BLEU.TOKENIZERS))}, not {self.tokenize}.")
        try:
            BLEU(tokenize=self.tokenize)
        except (ImportError, RuntimeError) as error:
            raise ValueError(f"tokenize {self.tokenize}: {error}") from error


def evaluate_scores(options: ScoreOptions) -> dict[str, dict[str, Any]]:
    """
    Prints and returns the scores by name, each with sacrebleu's signature. With a baseline, approximate randomization
    over documents gives the p-value of a difference, and a paired bootstrap its interval.

    d-BLEU per segment uses the segments of the first system. With `tokenizer`, it uses the segments of the paper, cut
    by the longer of source and reference, for any aligned system. Freely decoded documents only have d-BLEU.

    Raises:
        ValueError: the files have different documents or sentences.
    """
    inputs = [options.translations, options.reference, options.baseline, options.source, *options.train_files]
    check_outputs([options.json], filter(None, inputs))
    files = list(filter(None, (options.translations, options.baseline)))
    systems = [read_translations(file, options.translation_column) for file in files]
    for file, system in zip(files, systems, strict=True):
        if not system.aligned and (options.tokenizer or options.train_files or options.thirds):
            raise ValueError(
                f"{file} was decoded freely, without sentences aligned with the source: omit tokenizer, train_files "
                "and thirds."
            )
    references = read_sentences(options.reference, options.reference_column)
    needs_sources = options.tokenizer or options.train_files
    sources = read_sentences(options.source or options.reference, options.source_column) if needs_sources else []
    if options.tokenizer:
        processor = GTransformerProcessor.from_pretrained(options.tokenizer)
        systems[0] = systems[0].cut(segment_sizes(processor, sources, references, options.segment_tokens))
    scores = _scores_of(references, options.tokenize, *systems)
    parts = _positions_of_thirds(references) if options.thirds else {}
    if options.train_files:
        training = (s for file in options.train_files for s in read_sentences(file, options.source_column))
        parts["unseen"] = positions_of_unseen(sources, training)
        if not any(parts["unseen"]):
            raise ValueError(f"All test sentences are in {', '.join(options.train_files)}.")
    for name, positions in parts.items():
        if not any(positions):  # documents of one or two sentences lack some thirds
            continue
        chosen = [replace(each, documents=at_positions(each.documents, positions), segments=None) for each in systems]
        score = _scores_of(at_positions(references, positions), options.tokenize, *chosen)["s-BLEU"]
        scores[f"s-BLEU/{name}"] = {**score, "unit": f"{name} sentences"}

    print(_table(scores))
    print(systems[0].counts)
    given = {name: getattr(options, name) for name in ("translations", "reference", "baseline")}
    named = {name: Path(file).name for name, file in given.items() if file}
    content = {"scores": scores, "sentences": asdict(systems[0].counts), **named}
    write_report("evaluate scores", options, content)
    return scores


def _scores_of(
    references: list[list[str]], tokenize: str, ours: Translations, theirs: Translations | None = None
) -> dict[str, dict[str, Any]]:
    """Scores the documents. Scores of both systems include the difference to the baseline."""
    compared: dict[str, dict[str, Any]] = {}
    if theirs:  # compare exactly the scores in the table
        ours, theirs = in_common_segments(ours, theirs)
        compared = compare_translations([ours], [theirs], references, tokenize)
    scores = score_documents(ours.documents, references, ours.segments, tokenize, ours.aligned)
    return {name: {**score, **compared.get(name, {})} for name, score in scores.items()}


def _positions_of_thirds(documents: Sequence[Sequence[str]]) -> dict[str, list[list[int]]]:
    return {
        f"{name} third": [list(range(len(d) * part // 3, len(d) * (part + 1) // 3)) for d in documents]
        for part, name in enumerate(THIRDS)
    }


def positions_of_unseen(sources: Sequence[Sequence[str]], training: Iterable[Sequence[str]]) -> list[list[int]]:
    """
    Returns the positions of sentences that occur in no training document, ignoring case and white space. A model may
    have memorised the translations of others.
    """

    def normalized(sentence: str) -> str:
        return " ".join(sentence.casefold().split())

    seen = {normalized(sentence) for document in training for sentence in document}
    return [[n for n, sentence in enumerate(document) if normalized(sentence) not in seen] for document in sources]


def at_positions(documents: Sequence[Sequence[str]], positions: Sequence[Sequence[int]]) -> list[list[str]]:
    """Selects sentences by position, and drops documents without any."""
    pairs = zip(documents, positions, strict=True)
    return [[document[position] for position in chosen] for document, chosen in pairs if chosen]


def _table(scores: dict[str, dict[str, Any]]) -> str:
    lines = []
    for name, score in scores.items():
        line = f"{name:16} {score['score']:6.2f}   {score['units']} {score['unit']}   {score['signature']}"
        if "difference" in score:
            low, high = score["interval"]
            line += f"\n{'':16} {score['difference']:+6.2f}   against the baseline, 95 % [{low:+.2f}, {high:+.2f}]"
            line += f", p = {score['p_value']:.4f}"
        lines.append(line)
    return "\n".join(lines)
