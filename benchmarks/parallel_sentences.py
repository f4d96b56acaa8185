"""Greedy decoding of a document's sentences in parallel: latency against decoding the same document token by token.

    python benchmarks/parallel_sentences.py [--size tiny] [--documents 5] [--repeats 3] [--folder outputs/benchmarks]

How many rounds it takes depends on how sure the model is, so the models are trained, on documents of 20 sentences and
about 370 tokens in the invented language pair of the demo: one with and one without target-side context. At the
demo's size that takes some 3 minutes and the models become sure of everything but a few words; at base size it takes
20 minutes on two cores, which leaves them half trained. The folder keeps them. The translations are compared, too.
"""

import argparse
import json
import random
import statistics
import sys
from collections import Counter
from functools import partial
from pathlib import Path

from measure import BASE, interleaved, ratios, save

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus
from modeling_gtransformer.evaluation.metrics import score_documents
from modeling_gtransformer.training.experiment import train
from modeling_gtransformer.training.invented_language import LANGUAGES, InventedLanguagePair
from modeling_gtransformer.training.recipe import parse_recipe
from modeling_gtransformer.training.tiny_mbart import TINY, pretrain_tiny_mbart


RECIPE = Path(__file__).parents[1] / "train" / "recipes" / "demo.yaml"
SENTENCES, CLAUSES = 20, 3
COLUMNS = ("source", "target")
SYSTEMS = {"with target-side context": 2, "without target-side context": 0}
BASE_FIELDS = {name: BASE[name] for name in BASE.keys() - {"vocab_size", "dropout", "scale_embedding"}}
# Fields of the mBART, then steps and learning rate on sentences and on documents.
SIZES: dict[str, tuple[dict, tuple[int, float], tuple[int, float]]] = {
    "tiny": (TINY | {"max_position_embeddings": 1024}, (400, 2e-3), (200, 3e-3)),
    "base": (BASE_FIELDS | {"max_position_embeddings": 1024, "init_std": 0.04}, (160, 5e-4), (50, 6e-4)),
}


def make_corpus(folder: Path) -> dict[str, str]:
    """Documents of 20 sentences, each of three clauses of the language's own documents on one topic."""
    language_pair = InventedLanguagePair(seed=1)
    files = {}
    for part, size in {"train": 600, "valid": 10, "test": 100}.items():
        rng = random.Random(part)
        files[part] = str(folder / f"{part}.jsonl")
        with open(files[part], "w", encoding="utf-8") as file:
            for _ in range(size):
                clauses = language_pair.document(rng, sentences=SENTENCES * CLAUSES)
                document = {
                    side: [" ".join(texts[i : i + CLAUSES]) for i in range(0, len(texts), CLAUSES)]
                    for side, texts in clauses.items()
                }
                print(json.dumps(document), file=file)
    return files


def train_models(folder: Path, files: dict[str, str], size: str) -> None:
    """One mBART of single sentences, and a G-Transformer of documents from it for each system."""
    mbart, (fields, on_sentences, (steps, learning_rate)) = folder / "mbart", SIZES[size]
    if not (mbart / "model.safetensors").exists():
        corpus = StoredCorpus.from_files([files["train"]], COLUMNS)
        pretrain_tiny_mbart(str(mbart), corpus, LANGUAGES, 1, fields, *on_sentences)
    for layers in SYSTEMS.values():
        train(
            *parse_recipe(
                [
                    *(str(RECIPE), "--model_name_or_path", str(mbart)),
                    *("--output_dir", str(folder / f"gtransformer-{layers}"), "--max_steps", str(steps)),
                    *("--train_files", files["train"], "--validation_files", files["valid"], "--max_tokens", "2048"),
                    *("--segment_tokens", "1000", "--learning_rate", str(learning_rate), "--warmup_steps", "10"),
                    *("--src_lang", LANGUAGES[0], "--tgt_lang", LANGUAGES[1]),
                    *("--config", json.dumps({"dropout": 0.0, "decoder_global_layers": layers})),
                ]
            )
        )


def measure(checkpoint: Path, documents: list[list[str]], references: list[list[str]], repeats: int) -> dict:
    """Seconds per document of every way to decode, and what came of it."""
    model = GTransformerForConditionalGeneration.from_pretrained(checkpoint).eval()
    processor = GTransformerProcessor.from_pretrained(checkpoint)
    inputs = [processor(document, return_tensors="pt") for document in documents]
    outputs: dict[str, list] = {}

    def decode(name: str, num_beams: int, parallel: bool) -> None:
        # A dictionary would keep sequential decoding from its cache of the open sentence.
        outputs[name] = [
            model.generate(**one, num_beams=num_beams, parallel_sentences=True, return_dict_in_generate=True)
            if parallel
            else {"sequences": model.generate(**one, num_beams=num_beams, parallel_sentences=False)}
            for one in inputs
        ]

    ways = {
        f"{search}{', parallel' * parallel}": partial(decode, f"{search}{', parallel' * parallel}", beams, parallel)
        for search, beams in (("greedy", 1), ("beam 5", 5))
        for parallel in (False, True)
    }
    seconds = interleaved(ways, repeats)
    result = {}
    for name in ways:
        sequential = name.split(",")[0]
        translations = [processor.batch_decode_sentences(output["sequences"])[0] for output in outputs[name]]
        scores = score_documents(translations, references)
        result[name] = {
            "seconds_per_document": statistics.median(seconds[name]) / len(inputs),
            "times_as_fast": ratios(seconds, sequential)[name],
            "tokens_per_document": statistics.mean(output["sequences"].shape[1] - 1 for output in outputs[name]),
            "identical_documents": sum(
                ours["sequences"].equal(theirs["sequences"])
                for ours, theirs in zip(outputs[name], outputs[sequential], strict=True)
            ),
            "s-BLEU": scores["s-BLEU"]["score"],
            "d-BLEU": scores["d-BLEU/document"]["score"],
        }
        if "parallel" in name:
            rounds = Counter(int(output["rounds"][0]) for output in outputs[name])
            result[name]["rounds"] = dict(sorted(rounds.items()))
            result[name]["steps_per_document"] = statistics.mean(output["steps"] for output in outputs[name])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--documents", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("outputs/benchmarks"))
    args = parser.parse_args()
    folder = args.folder / f"parallel-sentences-{args.size}"
    folder.mkdir(parents=True, exist_ok=True)
    files = make_corpus(folder)
    train_models(folder, files, args.size)
    test = read_documents([files["test"]], COLUMNS)[: args.documents]
    sources, references = ([document[column] for document in test] for column in COLUMNS)
    results = {}
    for system, layers in SYSTEMS.items():
        results[system] = measure(folder / f"gtransformer-{layers}", sources, references, args.repeats)
        for name, row in results[system].items():
            print(f"{system}, {name}: {json.dumps(row)}", flush=True)
    save(f"parallel-sentences-{args.size}", sys.argv, results)


if __name__ == "__main__":
    main()
