"""Translation of real documents with a trained model: speed beside BLEU.

    python benchmarks/dialogues.py --model MODEL --corpus DOCUMENTS.jsonl --source_column en --target_column de
    python benchmarks/dialogues.py ... --number 100 --systems documents "documents, int8" --name int8

The baseline translates single sentences in batches with the same model. The other systems translate documents: in
batches with the default settings and token by token, and one at a time token by token and with sentences in parallel.
A GPU is used if there is one, except for int8.
All run greedily and with five beams. For one document at a time, the script also reports the seconds until the first
sentence is final. `--number` sets how many documents of the file are read. Speeds are multiples of the baseline's, and
`identical` is the share of sentences with the baseline's translation.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from measure import DEVICE, interleaved, parse_options, save, show, speeds

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.metrics import score_documents
from modeling_gtransformer.runtime.int8_linear import quantize_linear_layers


TOKEN_BY_TOKEN = "one document at a time, token by token"
IN_PARALLEL = "one document at a time, sentences in parallel"
# Whether documents are translated one at a time, and how.
SETTINGS: dict[str, tuple[bool, dict[str, Any]]] = {
    "single sentences": (False, {"segment_sentences": 1}),
    "documents": (False, {}),
    "documents, int8": (False, {}),
    "documents, token by token": (False, {"parallel_sentences": False}),
    TOKEN_BY_TOKEN: (True, {"parallel_sentences": False}),
    IN_PARALLEL: (True, {"parallel_sentences": True}),
}
SYSTEMS = [system for system in SETTINGS if not system.endswith("int8")]
Translate = Callable[..., list]


def make_run(translate: Translate, system: str, sources: list[list[str]]) -> Callable[[], list[list[str]]]:
    """A function that translates the documents and returns their sentences."""
    one_at_a_time, settings = SETTINGS[system]
    calls = [[source] for source in sources] if one_at_a_time else [sources]

    def run() -> list[list[str]]:
        translated = [document for call in calls for document in translate(call, **settings)]
        return [[sentence.text for sentence in document.sentences] for document in translated]

    return run


def share_identical(documents: list[list[str]], others: list[list[str]]) -> float:
    return statistics.mean(a == b for pair in zip(documents, others, strict=True) for a, b in zip(*pair, strict=True))


def seconds_to_first_sentence(translate: Translate, sources: list[list[str]]) -> float:
    """Median over the documents of the seconds until the first sentence is final."""
    seconds = []
    for source in sources:
        times: list[float] = []
        start = time.perf_counter()
        translate([source], on_sentence=lambda *_, times=times: times.append(time.perf_counter()))
        seconds.append(times[0] - start)
    return statistics.median(seconds)


def main() -> None:
    args = parse_options(
        __doc__,
        model=None,
        corpus=None,
        source_column="source",
        target_column="target",
        number=4,
        systems=SYSTEMS,
        beams=[1, 5],
        repeats=3,
        name="dialogues",
    )
    columns = (args.source_column, args.target_column)
    documents = read_documents([args.corpus], columns)[: args.number]
    sources, references = ([document[column] for document in documents] for column in columns)
    sentences = sum(map(len, sources))
    processor = GTransformerProcessor.from_pretrained(args.model)
    models = [GTransformerForConditionalGeneration.from_pretrained(args.model, dtype=torch.float32) for _ in range(2)]
    models[0].to(DEVICE)
    quantize_linear_layers(models[1])
    results: dict = {"documents": len(sources), "sentences": sentences}
    for beams in args.beams:
        exact, int8 = (partial(translate_documents, model.eval(), processor, num_beams=beams) for model in models)
        runs = {name: make_run(int8 if name.endswith("int8") else exact, name, sources) for name in args.systems}
        peer, translated = args.systems[0], {name: run() for name, run in runs.items()}
        row = speeds(interleaved(runs, args.repeats), sentences, "sentences", peer)
        for name, figures in row.items():
            scores = score_documents(translated[name], references)
            figures |= {score: scores[score]["score"] for score in ("s-BLEU", "d-BLEU/document")}
            figures["identical"] = share_identical(translated[name], translated[peer])
        if TOKEN_BY_TOKEN in row:
            row[TOKEN_BY_TOKEN]["seconds_to_first_sentence"] = seconds_to_first_sentence(exact, sources)
        results[f"{beams} beams"] = row
        show(f"{beams} beams", row)
    save(args, args.name, results)


if __name__ == "__main__":
    main()
