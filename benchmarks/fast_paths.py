"""Decoding with each fast path off in turn, on three loads, greedily and with five beams.

    python benchmarks/fast_paths.py --corpus DOCUMENTS.jsonl [--column en] [--model MODEL] [--repeats 2]

Loads:

    corpus    documents of the corpus in one call
    document  one document of as many sentences as `--sentences`
    server    eight requests of one to four sentences that are translated together

A figure is the time without the fast path divided by the time with all of them, the median of the ratios within the
repeats: a path of less than 1.2 everywhere does not pay. "independent sentences" belongs to models without target-side
context, so its baseline is the same model without global attention in the decoder.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

from measure import interleaved, parse_options, ratios, save, show

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.runtime.translator import SMALL_MODEL


WITHOUT_TARGET_CONTEXT = {"decoder_global_layers": 0, "cross_global_layers": 0}
ALL, INDEPENDENT = "all fast paths", "all fast paths, no target-side context"
GENERATION, MIXIN = "generation_gtransformer", "generation_gtransformer.GTransformerGenerationMixin"
# What switches a fast path off: arguments of `generate`, or a name of the package and its replacement.
OFF: dict[str, dict[str, Any] | tuple[str, Any]] = {
    ALL: {},
    "document cache and engine": (f"{MIXIN}._can_use_document_cache", lambda *_: False),
    "engine": (f"{GENERATION}.ENGINE_MODES", ()),
    "Jacobi decoding": (f"{GENERATION}.PARALLEL_DOCUMENTS", 0),
    "packed weights": {"pack_weights": False},
    "attention by sentence": ("group_attention._plans", lambda *_: {}),
    "finished items leave": ("decoding.SHRINKS_AT", 2.0),
    INDEPENDENT: {},
    "independent sentences": {"parallel_sentences": False},
}
BASELINES = dict.fromkeys(OFF, ALL) | dict.fromkeys((INDEPENDENT, "independent sentences"), INDEPENDENT)


def make_loads(documents: list[list[str]], number: int, sentences: int) -> dict[str, list[list[str]]]:
    requests = [document[: 1 + index % 4] for index, document in enumerate(documents[:8])]
    document = [sentence for each in documents for sentence in each][:sentences]
    return {"corpus": documents[:number], "document": [document], "server": requests}


def make_run(translate: Callable[..., Any], off: str, documents: list[list[str]], beams: int) -> Callable[[], Any]:
    switch = OFF[off]
    if isinstance(switch, dict):
        return partial(translate, documents, num_beams=beams, **switch)
    name, value = switch
    return mock.patch(f"modeling_gtransformer.{name}", value)(partial(translate, documents, num_beams=beams))


def main() -> None:
    args = parse_options(
        __doc__,
        corpus=None,
        column="en",
        model=str(SMALL_MODEL),
        number=12,
        sentences=60,
        beams=[1, 5],
        repeats=2,
    )
    documents = [document[args.column] for document in read_documents([args.corpus], [args.column])]
    processor = GTransformerProcessor.from_pretrained(args.model)

    def translator(**config: Any) -> Callable[..., Any]:
        model = GTransformerForConditionalGeneration.from_pretrained(args.model, dtype="float32", **config).eval()
        return lambda documents, **settings: translate_documents(model, processor, documents, **settings)

    translators = {ALL: translator(), INDEPENDENT: translator(**WITHOUT_TARGET_CONTEXT)}
    results: dict[str, Any] = {}
    for load, texts in make_loads(documents, args.number, args.sentences).items():
        for beams in args.beams:
            runs = {off: make_run(translators[BASELINES[off]], off, texts, beams) for off in OFF}
            seconds = interleaved(runs, args.repeats)
            results[f"{load}, {beams} beams"] = {
                off: {"seconds": statistics.median(times), "times_slower": 1 / ratios(seconds, BASELINES[off])[off]}
                for off, times in seconds.items()
            }
            show(f"{load}, {beams} beams", results[f"{load}, {beams} beams"])
    save(args, "fast_paths", results)


if __name__ == "__main__":
    main()
