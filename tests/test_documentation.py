"""Every command and every piece of code of README and of the documentation runs, on tiny models and files of the names
that they use."""

import contextlib
import glob
import importlib
import io
import json
import os
import random
import re
import shlex
import shutil
import sys
from pathlib import Path

import docx
import pytest
import torch
from repository import ROOT
from tiny import SIZE
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    BertTokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    PreTrainedTokenizerFast,
)

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.cli import main as gtransformer_translate
from modeling_gtransformer.training.recipe import read_recipe


PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
LONGER = {**SIZE, "max_position_embeddings": 256}
SENTENCES = ["the cat sleeps.", "it is old.", "the old cat is it."]
# What a reader has a GPU and a night for.
SHORT = ["--max_steps", "2", "--use_cpu", "--fp16", "false", "--disable_tqdm", "true", "--report_to", "none"]
SHORT += ["--max_tokens", "512", "--gradient_accumulation_steps", "1", "--num_train_epochs", "1"]


def blocks(page):
    """`(language, code)` of a page, in order; indented lines are commands."""
    text = page.read_text(encoding="utf-8")
    pattern = r"^```(\w+)\n(.*?)^```$|((?:^    \S[^\n]*\n(?:^      [^\n]*\n)*)+)"
    for language, code, indented in re.findall(pattern, text, re.DOTALL | re.MULTILINE):
        yield (language, code) if language else ("bash", re.sub("^    ", "", indented, flags=re.MULTILINE))


def commands(code):
    """Its command lines; continued ones are whole, comments and what is only an example of a form are left out."""
    lines = re.sub(r"\\\n\s*", " ", code).splitlines()
    return [
        shlex.split(line, comments=True)
        for line in lines
        if re.match(r"(accelerate|python|gtransformer-translate|man) ", line)
    ]


@pytest.fixture
def workplace(tmp_path, monkeypatch, mbart_tokenizer):
    """A folder like a checkout, with the models and files that the pages speak of."""
    for name in ("train", "hub_cards"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("results"))
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)

    ids = {"vocab_size": len(mbart_tokenizer), "forced_eos_token_id": 2}
    mbart = tmp_path / "facebook" / "mbart-large-cc25"
    MBartForConditionalGeneration(MBartConfig(**LONGER, **ids)).save_pretrained(mbart)
    mbart_tokenizer.save_pretrained(mbart)
    for name in ("outputs/mbart25", "outputs/model"):
        model = GTransformerForConditionalGeneration(GTransformerConfig(**LONGER, vocab_size=len(mbart_tokenizer)))
        processor = GTransformerProcessor(mbart_tokenizer)
        processor.configure(model)
        model.save_pretrained(name)
        processor.save_pretrained(name)
    (tmp_path / "user").mkdir()

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(SENTENCES, 300, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    special = {
        f"{name}_token": f"<{token}>"
        for name, token in zip(("bos", "eos", "pad", "unk", "mask"), ("s", "/s", "pad", "unk", "mask"), strict=True)
    }
    bart = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, **special)
    bart.save_pretrained("facebook/bart-base")
    BartForConditionalGeneration(BartConfig(**LONGER, vocab_size=len(bart))).save_pretrained("facebook/bart-base")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyz.",
        *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"),
    ]
    bert = Path("google-bert/bert-base-multilingual-cased")
    bert.mkdir(parents=True)
    (bert / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(vocab=str(bert / "vocab.txt")).save_pretrained(bert)
    BertModel(
        BertConfig(
            vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
        )
    ).save_pretrained(bert)

    rng = random.Random(1)
    documents = [{"en": rng.choices(SENTENCES, k=4), "de": rng.choices(SENTENCES, k=4)} for _ in range(12)]
    for name in ("train", "dev", "test", "news"):
        lines = [json.dumps(document) for document in documents]
        Path(f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    for name in ("report.txt", "notes.txt", "manual.txt", "a.txt", "news.de", "talk.txt", "mail"):
        Path(name).write_text("the cat sleeps. it is old.\n\nthe old cat.\n")
    Path("notes.md").write_text("# the *cat*\n\nit is old.\n")
    Path("docs").mkdir()
    Path("docs/index.md").write_text("the *cat*\n")
    letter = docx.Document()
    letter.add_paragraph("the cat sleeps.")
    letter.save("letter.docx")
    Path("ContraPro").mkdir()
    Path("ContraPro/en.txt").write_text("a cat . <SEP> it sleeps .\n" * 2)
    Path("ContraPro/de.txt").write_text("die katze . <SEP> sie ist .\ndie katze . <SEP> es ist .\n")
    Path("ContraPro/sentence_groups.txt").write_text("0\n")
    annotation = [{"src segment": "it sleeps.", "ref segment": "sie ist.", "ante distance": 1}]
    Path("ContraPro/contrapro.json").write_text(json.dumps(annotation))
    Path("page.html").write_text("<p>the <b>cat</b> sleeps.</p>\n")
    Path("film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nthe cat\nsleeps.\n")
    Path("terms.tsv").write_text("cat\tkatze\n")
    return tmp_path


def run_command(words):
    """Runs a command in this process."""
    if words[0] == "accelerate":
        words = ["python", *words[words.index("launch") + 1 :]]
        if words[1] == "--config_file":
            words = ["python", *words[3:]]
    if "|" in words:  # from what stands for the output of the commands before it
        words = words[len(words) - words[::-1].index("|") :]
        with contextlib.closing(io.TextIOWrapper(io.BytesIO(Path("manual.txt").read_bytes()))) as stdin:
            sys.stdin, before = stdin, sys.stdin
            run_command(words)
            sys.stdin = before
        return
    out = os.devnull
    if ">" in words:
        out = words[words.index(">") + 1]
        words = words[: words.index(">")]
    words = [file for word in words for file in (sorted(glob.glob(word)) or [word])]
    if words[0] == "gtransformer-translate":
        call, arguments = gtransformer_translate, words[1:]
    else:
        script = Path(words[1])
        if script.parent.name == "space":
            return  # a server, tested in test_space.py
        module = importlib.import_module(".".join(script.with_suffix("").parts))
        call, arguments = module.main, words[2:]
        if script == Path("train/train.py"):
            arguments += SHORT
            recipe = read_recipe(ROOT / arguments[0])
            if not recipe.get("model_name_or_path"):
                types = {name: kinds[:2] for name, kinds in recipe["config"].items() if name.endswith("_types")}
                arguments += ["--config", json.dumps(LONGER | types)]
    with open(out, "wb") as raw, io.TextIOWrapper(raw, encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
        status = call(arguments)
    assert not isinstance(status, int) or status == 0, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, workplace, run, run_without_package):
    names, count = {}, 0
    for language, code in blocks(page):
        if language == "python":
            count += 1
            if "user/" in code:  # on the Hub, for others
                run_without_package(code)
            else:
                exec(compile(code, page.name, "exec"), names)
        elif language == "bash":
            for words in commands(code):
                count += 1
                if words[1] == "hub_cards/publish.py":
                    run(f"from hub_cards.publish import main; main({words[2:]!r})", PYTHONPATH=str(ROOT))
                else:
                    run_command(words)
    assert count
