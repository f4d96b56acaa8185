"""Compares ways to cut segments before the translation is known, by the number of segments with too long references.

    python train/studies/compare_target_ratios.py test.jsonl ... --train_files train.jsonl \\
        --tokenizer outputs/tokenizer --source_column en --target_column de --src_lang "[en]" --tgt_lang "[de]" \\
        [--json ratios.json]

Documents are cut by source length times an expected ratio: 1, the mean ratio of the training text, and ratios that
given shares of that text do not exceed. A reference is too long if it has more tokens than any segment in training.
The last row is the cut of training, which uses the references.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus
from modeling_gtransformer.evaluation.report import LanguageOptions, write_report
from modeling_gtransformer.evaluation.translations import encode_pairs
from modeling_gtransformer.runtime.atomic_file import check_outputs
from modeling_gtransformer.segmentation import segment
from modeling_gtransformer.training.segments import make_segments, segment_lengths, target_ratio
from modeling_gtransformer.translation_options import option


@dataclass(frozen=True)
class RatioOptions(LanguageOptions):
    files: list[str] = option(MISSING, "Test documents.", argument=True)
    train_files: list[str] = option(MISSING, "Documents to compute the ratios from.")
    tokenizer: str = option(MISSING, "Folder or Hub name of a tokenizer or a model.")
    source_column: str = option("source", "Column with the source sentences.")
    target_column: str = option("target", "Column with the target sentences.")
    segment_tokens: int = option(512, "Segments have fewer tokens than this.", 1)
    quantiles: list[float] = option([0.75, 0.9, 0.95], "Shares of the training text that the ratios cover.")

    def __post_init__(self) -> None:
        if not all(0 <= quantile <= 1 for quantile in self.quantiles):
            raise ValueError("quantiles must be from 0 to 1.")


def compare_target_ratios(args: RatioOptions) -> list[dict[str, Any]]:
    """Prints and returns a row per way to cut."""
    check_outputs([args.json], [*args.files, *args.train_files])
    columns = (args.source_column, args.target_column)
    processor = GTransformerProcessor.from_pretrained(args.tokenizer).for_languages(args.src_lang, args.tgt_lang)
    ratios = ratios_of(args.train_files, columns, processor, args.segment_tokens, args.quantiles)
    rows: list[dict[str, Any]] = [{"name": name, "ratio": ratio, "files": {}} for name, ratio in ratios.items()]
    rows.append({"name": "the references", "ratio": None, "files": {}})
    for file in args.files:
        texts = ([document[column] for column in columns] for document in read_documents([file], columns))
        documents = [encode_pairs(processor, *each)[:2] for each in texts]
        for row in rows:
            cut = [count(*each, row["ratio"], processor.sentence_tokens, args.segment_tokens) for each in documents]
            too_long, segments = (sum(numbers) for numbers in zip(*cut, strict=True))
            row["files"][Path(file).name] = {"too_long": too_long, "segments": segments}
    for row in rows:
        counts = ", ".join(f"{name} {each['too_long']} of {each['segments']}" for name, each in row["files"].items())
        print(f"{row['name']}{f', {ratio:.3f}' if (ratio := row['ratio']) else ''}: {counts}")
    write_report(None, args, {"rows": rows})
    return rows


def ratios_of(
    files: Sequence[str],
    columns: tuple[str, str],
    processor: GTransformerProcessor,
    segment_tokens: int,
    quantiles: Sequence[float],
) -> dict[str, float]:
    """Returns the expected target tokens per source token of each way to cut."""
    segments = make_segments(StoredCorpus.from_files(files, columns), processor, segment_tokens)
    around = segments.with_format(None)["sentences"]
    source, target = segment_lengths(segments).sum(axis=0) - sum(around) * processor.sentence_tokens
    shares = {f"{quantile:.0%} of the text": target_ratio(segments, processor, quantile) for quantile in quantiles}
    return {"the source": 1.0, "the mean": float(target / source), **shares}


def count(
    source: list[list[int]], target: list[list[int]], ratio: float | None, template: int, segment_tokens: int
) -> tuple[int, int]:
    """
    Counts the segments of a document of token ids whose reference is too long, and all of them. Without a `ratio`, the
    references cut it. Sentences have `template` tokens more.
    """
    lengths = [(len(words), len(reference)) for words, reference in zip(source, target, strict=True)]
    expected = [reference if ratio is None else math.ceil(words * ratio) for words, reference in lengths]
    parts = segment([max(n, of[0]) + template for n, of in zip(expected, lengths, strict=True)], segment_tokens)
    too_long = [sum(reference + template for _, reference in lengths[part]) >= segment_tokens for part in parts]
    return sum(too_long), len(parts)


if __name__ == "__main__":
    sys.exit(run_script((RatioOptions, compare_target_ratios)))
