"""Profile of translating a corpus: where the time goes in the fast loop, and in the reference.

    python benchmarks/corpus_profile.py [--documents 16] [--sentences 10] [--beams 1 5] [--name corpus-profile]

The documents and models are those of `corpus.py`. The reference is the generation of Transformers with plain weights;
MBart translates the same sentences one by one, 64 a batch.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from corpus import WORDS, make_corpus, mbart
from measure import make_model, save, seconds_by_kind


# Names of operations that belong together; the rest is element by element.
KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "mkldnn::_linear_pointwise"),
    "packing of weights": ("mkldnn::_reorder_linear_weight",),
    "attention": ("scaled_dot_product", "aten::bmm", "aten::baddbmm", "aten::_softmax"),
    "choice of tokens": ("aten::_log_softmax", "aten::topk", "aten::argmax", "aten::max", "aten::sort"),
    "copies": ("aten::copy_", "aten::cat", "aten::index_select", "aten::index", "aten::gather", "aten::index_put_"),
}
REFERENCE = {"pack_weights": False, "parallel_sentences": False, "return_dict_in_generate": True}
SYSTEMS = ["mbart-64", "gtransformer", "gtransformer-source"]


def make_runs(system: str, documents: int, sentences: int, beams: int) -> dict[str, Callable[[], Any]]:
    """The fast loop of a G-Transformer and its reference, or MBart."""
    corpus = make_corpus(documents, sentences)
    if system.startswith("mbart"):
        return {system: mbart(system, corpus, beams)}
    translate = partial(make_model(system).eval().generate, corpus.flatten(1), num_beams=beams, do_sample=False)
    translate = partial(translate, max_length_a=0, max_length_b=WORDS, min_length=WORDS)
    return {f"{system}, reference": partial(translate, **REFERENCE), system: translate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--sentences", type=int, default=10, help="Sentences of a document.")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--name", default="corpus-profile", help="Name of the results file.")
    args = parser.parse_args()
    results: dict[str, dict[str, dict[str, float]]] = {}
    for beams in args.beams:
        row = results[f"{beams} beams"] = {}
        for system in SYSTEMS:
            for name, run in make_runs(system, args.documents, args.sentences, beams).items():
                row[name] = seconds_by_kind(run, KINDS, repeats=1)
                kinds = ", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in row[name].items())
                print(f"{beams} beams, {name}: {kinds}", flush=True)
    save(args.name, sys.argv, results)


if __name__ == "__main__":
    main()
