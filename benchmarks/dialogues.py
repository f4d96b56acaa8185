"""Translation of real documents with a trained model: speed beside BLEU.

    python benchmarks/dialogues.py --model MODEL --corpus DOCUMENTS.jsonl --source_column en --target_column de

Documents in batches, one at a time token by token, and one at a time with their sentences in parallel, against the
same model on single sentences in batches; greedily and with five beams. Of one document at a time, also the seconds
until its first sentence is final. `--number` documents are read, the first ones of a file in a format of train.py.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from measure import interleaved, parse_options, save, show, speeds

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.metrics import score_documents


PEER = "single sentences"
TOKEN_BY_TOKEN = "one document at a time, token by token"
IN_PARALLEL = "one document at a time, sentences in parallel"
Translate = Callable[..., list]


def make_runs(translate: Translate, sources: list[list[str]]) -> dict[str, Callable[[], list[list[str]]]]:
    """Ways to translate the documents, each a function that returns their sentences."""

    def texts(sources: list[list[str]], **settings) -> list[list[str]]:
        return [[sentence.text for sentence in document.sentences] for document in translate(sources, **settings)]

    def one_at_a_time(**settings) -> list[list[str]]:
        return [texts([source], **settings)[0] for source in sources]

    return {
        PEER: partial(texts, sources, segment_sentences=1),
        "documents": partial(texts, sources, parallel_sentences=False),
        TOKEN_BY_TOKEN: partial(one_at_a_time, parallel_sentences=False),
        IN_PARALLEL: partial(one_at_a_time, parallel_sentences=True),
    }


def seconds_to_first_sentence(translate: Translate, sources: list[list[str]]) -> float:
    """Median over the documents of the seconds until the first sentence is final."""
    seconds = []
    for source in sources:
        times: list[float] = []
        start = time.perf_counter()
        translate([source], on_sentence=lambda *_, times=times: times.append(time.perf_counter()))
        seconds.append(times[0] - start)
    return statistics.median(seconds)


def main(argv: list[str] | None = None) -> None:
    args = parse_options(
        __doc__,
        argv,
        model=None,
        corpus=None,
        source_column="source",
        target_column="target",
        number=4,
        beams=[1, 5],
        repeats=3,
    )
    columns = (args.source_column, args.target_column)
    documents = read_documents([args.corpus], columns)[: args.number]
    sources, references = ([document[column] for document in documents] for column in columns)
    sentences = sum(map(len, sources))
    model = GTransformerForConditionalGeneration.from_pretrained(args.model, dtype=torch.float32).eval()
    processor = GTransformerProcessor.from_pretrained(args.model)
    results: dict = {"documents": len(sources), "sentences": sentences}
    for beams in args.beams:
        translate = partial(translate_documents, model, processor, num_beams=beams)
        runs = make_runs(translate, sources)
        scores = {name: score_documents(run(), references) for name, run in runs.items()}
        row = speeds(interleaved(runs, args.repeats), sentences, "sentences", PEER)
        for name, figures in row.items():
            figures |= {score: scores[name][score]["score"] for score in ("s-BLEU", "d-BLEU/document")}
        row[TOKEN_BY_TOKEN]["seconds_to_first_sentence"] = seconds_to_first_sentence(translate, sources)
        results[f"{beams} beams"] = row
        show(f"{beams} beams", row)
    save(args, "dialogues", results)


if __name__ == "__main__":
    main()
