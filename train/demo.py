"""From an mBART checkpoint to translated documents, in minutes on a laptop.

    python train/demo.py [--any_argument_of_the_recipe value ...]

Takes the arguments of the recipe `demo`. First, the bundled model translates a held-out dialogue. Then the demo
generates documents in an invented language pair with context-dependent pronouns, trains a tiny mBART on their
sentences, and fine-tunes a G-Transformer from it on the documents. Both models translate held-out documents, and the
pipeline translates one document. `gtransformer train mbart25` fine-tunes a real mBART on your documents.
"""

import copy
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import MBartForConditionalGeneration, pipeline

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.metrics import score_documents
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.evaluation.report import markdown
from modeling_gtransformer.runtime.atomic_file import write_json
from modeling_gtransformer.runtime.translator import SMALL_MODEL, Translator
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.training.experiment import train
from modeling_gtransformer.training.invented_language import LANGUAGES, InventedLanguagePair, write_corpus
from modeling_gtransformer.training.recipe import parse_recipe
from modeling_gtransformer.training.tiny_mbart import pretrain_tiny_mbart


DOCUMENTS = {"train": 2000, "valid": 100, "test": 200}
# Seed of the corpus and of both trainings.
SEED = 1
# Required arguments of the recipe, before the corpus exists.
PLACEHOLDERS = ["--model_name_or_path", "mbart", "--train_files", "train.jsonl", "--validation_files", "valid.jsonl"]


def main(argv: list[str]) -> dict[str, dict[str, float]]:
    """Runs the demo, returns the scores of both systems, and writes them with provenance to `results.json`."""
    output = Path(parse_recipe(["demo", *PLACEHOLDERS, *argv])[2].output_dir).parent
    if not (output / "corpus").exists() and any((output / name).exists() for name in ("gtransformer", "mbart")):
        raise UsageError(f"{output} contains other models: choose an empty folder.")
    gtransformer, mbart_folder, columns = str(output / "gtransformer"), str(output / "mbart"), ("source", "target")
    torch.set_num_threads(1)  # more threads slow down such small models
    step("Translating a dialogue with the bundled model; the numbers are its confidence")
    print(translated_dialogue())

    step("Inventing a language pair")
    language_pair = InventedLanguagePair(SEED)
    corpus = write_corpus(language_pair, output / "corpus", DOCUMENTS, SEED)

    step("Pretraining a tiny MBartForConditionalGeneration on single sentences")
    pretrain_tiny_mbart(mbart_folder, StoredCorpus.from_files([corpus["train"]], columns), LANGUAGES, SEED)
    shutil.rmtree(gtransformer, ignore_errors=True)  # do not resume an earlier demo

    step("Fine-tuning a G-Transformer from it on documents")
    files = ["--train_files", corpus["train"], "--validation_files", corpus["valid"], "--seed", str(SEED)]
    languages = ["--src_lang", LANGUAGES[0], "--tgt_lang", LANGUAGES[1]]
    arguments = ["demo", "--model_name_or_path", mbart_folder, *files, *languages, *argv]
    train(*parse_recipe([*arguments, "--output_dir", gtransformer]))

    step("Translating the held-out documents")
    documents = read_documents([corpus["test"]], columns)
    sources, references = ([document[column] for document in documents] for column in columns)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    processor = GTransformerProcessor.from_pretrained(gtransformer)
    mbart = MBartForConditionalGeneration.from_pretrained(mbart_folder).eval().to(device)
    model = GTransformerForConditionalGeneration.from_pretrained(gtransformer).eval().to(device)
    systems = {
        "mBART, by sentence": translate_sentences(mbart, processor, sources),
        "G-Transformer": [document.texts for document in translate_documents(model, processor, sources)],
    }
    scores = {name: score(hypotheses, references, language_pair) for name, hypotheses in systems.items()}
    print(score_table(scores))
    write_json(output / "results.json", {**provenance(["train/demo.py", *argv]), "results": scores})

    step("A document through the pipeline")
    translate = pipeline("document-translation", model=gtransformer, device=device)
    print(aligned_table([tuple(pair.values()) for pair in translate(sources[0])["sentences"]]))
    return scores


def translated_dialogue() -> str:
    """Translates a held-out dialogue, sentence by sentence with confidences in nats."""
    dialogue = json.loads((SMALL_MODEL / "dialogue.json").read_text(encoding="utf-8"))
    pairs = Translator(confidence=True)(dialogue["en"])["sentences"]
    rows = [(pair["source_text"], f"{pair['confidence']:6.2f}  {pair['translation_text']}") for pair in pairs]
    return f"{aligned_table(rows)}\n({dialogue['attribution']})"


def translate_sentences(
    mbart: MBartForConditionalGeneration, processor: GTransformerProcessor, documents: Sequence[list[str]]
) -> list[list[str]]:
    """Translates documents sentence by sentence."""
    processor = copy.copy(processor)
    processor.typical_confidence = None  # belongs to the G-Transformer
    translated = translate_documents(
        mbart,
        processor,
        [[sentence] for document in documents for sentence in document],
        decoder_start_token_id=processor.bos_token_id,
        forced_bos_token_id=None,
        eos_token_id=processor.eos_token_id,
        suppress_tokens=[token for token in processor.structural_token_ids if token != processor.eos_token_id],
        max_new_tokens=128,
    )
    sentences = iter(document.texts[0] for document in translated)
    return [[next(sentences) for _ in document] for document in documents]


def score(
    hypotheses: list[list[str]], references: list[list[str]], language_pair: InventedLanguagePair
) -> dict[str, float]:
    """Computes s-BLEU, document d-BLEU and pronoun accuracy, all up to 100."""
    bleu = score_documents(hypotheses, references)
    pronouns = 100 * language_pair.pronoun_accuracy(hypotheses, references)
    return {"s-BLEU": bleu["s-BLEU"]["score"], "d-BLEU": bleu["d-BLEU/document"]["score"], "pronouns": pronouns}


def score_table(scores: dict[str, dict[str, float]]) -> str:
    """Formats a line per system with a column per score."""
    rows = [[name, *(f"{each:.2f}" for each in row.values())] for name, row in scores.items()]
    return markdown([["system", *next(iter(scores.values()))], *rows])


def aligned_table(rows: Sequence[tuple[str, str]]) -> str:
    """Formats source sentences beside their translations."""
    width = max(len(source) for source, _ in rows)
    return "\n".join(f"{source:{width}}  |  {translation}" for source, translation in rows)


def step(title: str) -> None:
    print(f"\n== {title}", flush=True)


if __name__ == "__main__":
    sys.exit(run("demo.py", lambda: main(sys.argv[1:])))
