"""A corpus translated: tokens per second against translators of single sentences, MBart's and CTranslate2's.

    python benchmarks/corpus.py [--documents 16] [--sentences 10] [--beams 1 5] [--repeats 2] [--systems mbart-32 ...]

All have the size of a base Transformer and random weights, CTranslate2 those of MBart, converted. Every sentence has
25 words and is made to get 25. MBart and CTranslate2 translate it alone, MBart in batches of as many sentences as its
name says. `gtransformer` is the paper's model, with context on both sides; `gtransformer-source` has context in the
encoder alone, and positions that count from the start of every sentence. `-int8` behind a name has linear layers in
int8. Speeds are compared to the fastest MBart. CTranslate2 (`pip install ctranslate2`) is left out where it is
missing.
"""

import argparse
import importlib.util
import statistics
import sys
import tempfile
from collections.abc import Callable

import torch
from measure import BASE, interleaved, make_model, ratios, save, show
from transformers import MBartTokenizer


WORDS = 25
SYSTEMS = ["mbart-32", "mbart-64", "gtransformer", "gtransformer-source", "ctranslate2"]
SYSTEMS += ["gtransformer-int8", "gtransformer-source-int8", "ctranslate2-int8"]
# What MBart's tokenizer adds to its vocabulary, and one of them.
LANGUAGES_AND_MASK, LANGUAGE = 26, "de_DE"


def make_corpus(documents: int, sentences: int) -> torch.Tensor:
    """Ids of random sentences, `(documents, sentences, words and <s> </s>)`."""
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(4, 31000, (documents, sentences, WORDS), generator=generator)
    return torch.nn.functional.pad(torch.nn.functional.pad(words, (1, 0), value=0), (0, 1), value=2)


def gtransformer(system: str, corpus: torch.Tensor, beams: int) -> Callable[[], None]:
    model, documents = make_model(system).eval(), corpus.flatten(1)
    lengths = {"max_length_a": 0, "max_length_b": WORDS, "min_length": WORDS}

    def run() -> None:
        output = model.generate(documents, num_beams=beams, do_sample=False, **lengths)
        assert output.shape == (len(documents), documents.shape[1] + 1)

    return run


def mbart(system: str, corpus: torch.Tensor, beams: int) -> Callable[[], None]:
    model, size = make_model("mbart").eval(), int(system.removeprefix("mbart-"))
    settings = {"num_beams": beams, "do_sample": False, "decoder_start_token_id": 0}
    settings |= {"min_new_tokens": WORDS + 1, "max_new_tokens": WORDS + 1}

    def run() -> None:
        for batch in corpus.flatten(0, 1).split(size):
            assert model.generate(batch, **settings).shape[1] == WORDS + 2

    return run


def ctranslate2(system: str, corpus: torch.Tensor, beams: int) -> Callable[[], None]:
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(f"w{number}", -1.0) for number in range(4, BASE["vocab_size"] - LANGUAGES_AND_MASK)]
    tokenizer = MBartTokenizer(vocab=pieces)
    model = make_model("mbart")
    model.config.update({"normalize_before": True, "normalize_embedding": True})  # which its converter asks for
    kind = "int8" if system.endswith("-int8") else "float32"
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        TransformersConverter(folder).convert(f"{folder}/converted", quantization=kind)
        translator = ctranslate2.Translator(
            f"{folder}/converted", compute_type=kind, intra_threads=torch.get_num_threads()
        )
    sentences = [tokenizer.convert_ids_to_tokens(ids) for ids in corpus.flatten(0, 1).tolist()]
    lengths = {"min_decoding_length": WORDS + 1, "max_decoding_length": WORDS + 1}

    def run() -> None:
        results = translator.translate_batch(
            sentences,
            target_prefix=[[LANGUAGE]] * len(sentences),
            beam_size=beams,
            max_batch_size=64,
            **lengths,
        )
        assert all(len(result.hypotheses[0]) >= WORDS for result in results)

    return run


MAKERS = {"mbart": mbart, "gtransformer": gtransformer, "ctranslate2": ctranslate2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--sentences", type=int, default=10, help="Sentences of a document.")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--systems", nargs="+", default=SYSTEMS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--name", default="corpus", help="Name of the results file.")
    args = parser.parse_args()
    has_ctranslate2 = importlib.util.find_spec("ctranslate2") is not None
    systems = [name for name in args.systems if has_ctranslate2 or not name.startswith("ctranslate2")]
    corpus = make_corpus(args.documents, args.sentences)
    tokens = args.documents * args.sentences * (WORDS + 1)
    results: dict[str, dict] = {"sentences": args.documents * args.sentences}
    for beams in args.beams:
        runs = {system: MAKERS[system.partition("-")[0]](system, corpus, beams) for system in systems}
        seconds = interleaved(runs, args.repeats)
        peers = [system for system in systems if system.startswith("mbart")]
        peer = min(peers or systems, key=lambda system: statistics.median(seconds[system]))
        speed = ratios(seconds, peer)
        row = results[f"{beams} beams"] = {
            system: {"tokens_per_second": tokens / statistics.median(seconds[system]), "speed_ratio": speed[system]}
            for system in systems
        }
        show(f"{beams} beams", row)
    save(args.name, sys.argv, results)


if __name__ == "__main__":
    main()
