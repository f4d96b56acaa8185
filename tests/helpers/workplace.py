"""A folder like a checkout, with tiny models and files of the names that the documents use."""

import json
import random
from pathlib import Path

import docx
import torch
from contrapro import write_contrapro
from fairseq_reference import Reference, write_run
from repository import ROOT
from tiny import ONLY_GROUP, SIZE
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
)

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration, GTransformerProcessor


FAMILIES = {
    "Helsinki-NLP/opus-mt-en-de": "marian",
    "facebook/nllb-200-distilled-600M": "m2m_100-nllb",
    "facebook/bart-base": "bart",
}
LONGER = {**SIZE, "max_position_embeddings": 256}
SENTENCES = ["the cat sleeps.", "it is old.", "the old cat is it."]


def furnish(mbart_tokenizer, sentence_level_checkpoint):
    """Puts everything into the working folder."""
    for name in ("train", "hub_cards"):
        Path(name).symlink_to(ROOT / name)
    torch.manual_seed(1)
    for name, family in FAMILIES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).symlink_to(sentence_level_checkpoint(family))
    Path("user").mkdir()
    save_mbart(mbart_tokenizer)
    save_gtransformers(mbart_tokenizer)
    save_bert()
    authors = Reference("postnorm_sin_k2")
    write_run(Path(), authors.meta["args"], authors.weights)
    write_corpora()
    write_suites()
    write_texts()


def save_mbart(tokenizer):
    ids = {"vocab_size": len(tokenizer), "forced_eos_token_id": 2}
    MBartForConditionalGeneration(MBartConfig(**LONGER, **ids)).save_pretrained("facebook/mbart-large-cc25")
    tokenizer.save_pretrained("facebook/mbart-large-cc25")


def save_gtransformers(tokenizer):
    names = {"outputs/mbart25": {}, "outputs/mbart25_only_group": ONLY_GROUP, "outputs/demo/gtransformer": {}}
    for name, layers in names.items():
        config = GTransformerConfig(**LONGER, **layers, vocab_size=len(tokenizer))
        model = GTransformerForConditionalGeneration(config)
        processor = GTransformerProcessor(tokenizer)
        processor.configure(model)
        model.save_pretrained(name)
        processor.save_pretrained(name)


def save_bert():
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, ".", *(f"##{letter}" for letter in letters)]
    bert = Path("google-bert/bert-base-multilingual-cased")
    bert.mkdir(parents=True)
    (bert / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(vocab=str(bert / "vocab.txt")).save_pretrained(bert)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    BertModel(BertConfig(vocab_size=len(words), **size)).save_pretrained(bert)


def write_corpora():
    rng = random.Random(1)
    documents = [{"en": rng.choices(SENTENCES, k=4), "de": rng.choices(SENTENCES, k=4)} for _ in range(20)]
    lines = "\n".join(map(json.dumps, documents)) + "\n"
    for name in ("train", "dev"):
        Path(f"{name}.jsonl").write_text(lines)
    Path("test.jsonl").write_text(lines.replace("old cat is", "cat is"))  # a sentence that training has not seen
    Path("other-system.txt").write_text("\n".join("<d>\n" + "\n".join(each["de"]) for each in documents))
    Path("outputs/demo/corpus").mkdir()
    Path("outputs/demo/corpus/test.jsonl").write_text(lines.replace('"en"', '"source"'))


def write_suites():
    write_contrapro(Path("ContraPro"))
    Path("ctxpro.txt").write_text("<d>\nthe cat sleeps.\nit is old.\n<d>\nthe old cat.\n")


def write_texts():
    for name in ("report.txt", "manual.txt"):
        Path(name).write_text("the cat sleeps. it is old.\n\nthe old cat.\n")
    Path("notes.md").write_text("# the *cat*\n\nit is old.\n")
    letter = docx.Document()
    letter.add_paragraph("the cat sleeps.")
    letter.save("letter.docx")
    Path("page.html").write_text("<p>the <b>cat</b> sleeps.</p>\n")
    Path("film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nthe cat\nsleeps.\n")
    Path("terms.tsv").write_text("cat\tkatze\n")
    Path("keys.txt").write_text("secret\n")
