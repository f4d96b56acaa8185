"""Translating real documents with a trained model: speed and BLEU side by side.

    python benchmarks/dialogues.py MODEL DOCUMENTS.jsonl --source_column en --target_column de [--repeats 3]

Documents as a whole, in batches and one at a time, and one at a time with all their sentences decoded side by side,
against the same model on single sentences in batches; greedily and with five beams. For documents one at a time, also
the seconds until the first sentence of each is certain.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from measure import interleaved, ratios, save, show

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.cli.script_options import add_column_options
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.metrics import score_documents


PEER = "single sentences"
TOKEN_BY_TOKEN = "one document at a time, token by token"
SIDE_BY_SIDE = "one document at a time, sentences side by side"
Translate = Callable[..., list]


def systems(translate: Translate, sources: list[list[str]], beams: int) -> dict[str, Callable[[], list[list[str]]]]:
    """Ways to translate the documents, each a function that gives their sentences."""

    def together(**settings) -> list[list[str]]:
        return [document.sentences for document in translate(sources, num_beams=beams, **settings)]

    def one_at_a_time(**settings) -> list[list[str]]:
        return [translate([source], num_beams=beams, **settings)[0].sentences for source in sources]

    return {
        PEER: partial(together, segment_sentences=1),
        "documents": partial(together, parallel_sentences=False),
        TOKEN_BY_TOKEN: partial(one_at_a_time, parallel_sentences=False),
        SIDE_BY_SIDE: partial(one_at_a_time, parallel_sentences=True),
    }


def seconds_to_first_sentence(translate: Translate, sources: list[list[str]], beams: int) -> float:
    """Median over the documents of the seconds until the first sentence is certain."""
    seconds = []
    for source in sources:
        times: list[float] = []
        start = time.perf_counter()
        translate([source], num_beams=beams, on_sentence=lambda *_, times=times: times.append(time.perf_counter()))
        seconds.append(times[0] - start)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="Folder or Hub name of a trained G-Transformer.")
    parser.add_argument("documents", help="Documents with their translations, in a format that train.py reads.")
    add_column_options(parser, "source", "target")
    parser.add_argument("--number", type=int, default=4, help="Number of documents, the first ones.")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    columns = (args.source_column, args.target_column)
    documents = read_documents([args.documents], columns)[: args.number]
    sources, references = ([document[column] for document in documents] for column in columns)
    model = GTransformerForConditionalGeneration.from_pretrained(args.model, dtype=torch.float32).eval()
    processor = GTransformerProcessor.from_pretrained(args.model)
    translate = partial(translate_documents, model, processor)
    results = {"documents": len(sources), "sentences": sum(map(len, sources))}
    for beams in args.beams:
        runs = systems(translate, sources, beams)
        scores = {name: score_documents(run(), references) for name, run in runs.items()}
        seconds = interleaved(runs, args.repeats)
        speed = ratios(seconds, PEER)
        row = {
            name: {
                "sentences_per_second": results["sentences"] / statistics.median(seconds[name]),
                "speed_ratio": speed[name],
                **{score: scores[name][score]["score"] for score in ("s-BLEU", "d-BLEU/document")},
            }
            for name in runs
        }
        row[TOKEN_BY_TOKEN]["seconds_to_first_sentence"] = seconds_to_first_sentence(translate, sources, beams)
        row[TOKEN_BY_TOKEN]["seconds_per_document"] = statistics.median(seconds[TOKEN_BY_TOKEN]) / len(sources)
        results[f"{beams} beams"] = row
        show(f"{beams} beams", row)
    save("dialogues", sys.argv, results)


if __name__ == "__main__":
    main()
