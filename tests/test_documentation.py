"""Every command and every piece of code of README and of the documentation runs, on tiny models and files of the names
that they use; what the documentation says of the code is made from it. That references resolve, `make docs` checks."""

import argparse
import contextlib
import glob
import importlib
import io
import json
import random
import re
import runpy
import shlex
import shutil
import socket
import sys
import urllib.request
from pathlib import Path
from threading import Thread

import adapters
import docx
import pytest
import torch
from fairseq_reference import Reference, write_run
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
from modeling_gtransformer.cli.command import main as gtransformer_translate
from modeling_gtransformer.cli.options import argument_parser
from modeling_gtransformer.server.serve import make_server, parse_arguments
from modeling_gtransformer.training.recipe import DataArguments, read_recipe


DOCS = ROOT / "docs"
DOCUMENTED_ADDRESS = "http://127.0.0.1:5000"
PACKAGE = ROOT / "modeling_gtransformer"
TRANSLATORS = {"Helsinki-NLP/opus-mt-en-de": "marian", "facebook/nllb-200-distilled-600M": "m2m_100-nllb"}
LONGER = {**SIZE, "max_position_embeddings": 256}
SENTENCES = ["the cat sleeps.", "it is old.", "the old cat is it."]
# What a reader has a GPU and a night for.
SHORT = ["--max_steps", "2", "--use_cpu", "--disable_tqdm", "true", "--report_to", "none"]
SHORT += ["--max_tokens", "512", "--tokens_per_update", "512", "--num_train_epochs", "1"]


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
        if re.match(r"(accelerate|python|gtransformer-translate|gtransformer-serve|curl|man) ", line)
    ]


PAGES = [page for page in sorted([*DOCS.glob("*.md"), ROOT / "README.md"]) if any(blocks(page))]


@pytest.fixture
def workplace(tmp_path, monkeypatch, mbart_tokenizer, sentence_level_checkpoint):
    """A folder like a checkout, with the models and files that the pages speak of."""
    for name in ("train", "hub_cards"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("results"))
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    for name, family in TRANSLATORS.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).symlink_to(sentence_level_checkpoint(family))
    Path("user").mkdir()
    save_mbart(mbart_tokenizer)
    save_gtransformers(mbart_tokenizer)
    save_bart()
    save_bert()
    authors = Reference("postnorm_sin_k2")
    write_run(tmp_path, authors.meta["args"], authors.weights)
    write_corpora()
    write_suites()
    write_texts()
    return tmp_path


def save_mbart(tokenizer):
    ids = {"vocab_size": len(tokenizer), "forced_eos_token_id": 2}
    MBartForConditionalGeneration(MBartConfig(**LONGER, **ids)).save_pretrained("facebook/mbart-large-cc25")
    tokenizer.save_pretrained("facebook/mbart-large-cc25")


def save_gtransformers(tokenizer):
    for name in ("outputs/mbart25", "outputs/demo/gtransformer"):
        model = GTransformerForConditionalGeneration(GTransformerConfig(**LONGER, vocab_size=len(tokenizer)))
        processor = GTransformerProcessor(tokenizer)
        processor.configure(model)
        model.save_pretrained(name)
        processor.save_pretrained(name)


def save_bart():
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    special |= {"mask_token": "<mask>"}
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(SENTENCES, 300, special_tokens=[*special.values()])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, **special)
    tokenizer.save_pretrained("facebook/bart-base")
    BartForConditionalGeneration(BartConfig(**LONGER, vocab_size=len(tokenizer))).save_pretrained("facebook/bart-base")


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
    Path("outputs/demo/corpus").mkdir()
    Path("outputs/demo/corpus/test.jsonl").write_text(lines.replace('"en"', '"source"'))


def write_suites():
    Path("ContraPro").mkdir()
    Path("ContraPro/en.txt").write_text("a cat . <SEP> it sleeps .\n" * 2)
    Path("ContraPro/de.txt").write_text("die katze . <SEP> sie ist .\ndie katze . <SEP> es ist .\n")
    Path("ContraPro/sentence_groups.txt").write_text("0\n")
    annotation = [{"src segment": "it sleeps.", "ref segment": "sie ist.", "ante distance": 1}]
    Path("ContraPro/contrapro.json").write_text(json.dumps(annotation))
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


def written(folder="."):
    """The files of a folder that hold something, with what changes when they are written."""
    states = {file: file.stat() for file in Path(folder).rglob("*") if file.is_file()}
    return {(file, state.st_size, state.st_mtime_ns) for file, state in states.items() if state.st_size}


class Servers:
    """What the commands of a page serve, each at a free port. The last one is where the page says that it is."""

    def __init__(self):
        self.running, self.address = [], DOCUMENTED_ADDRESS

    def start(self, arguments):
        server, sock = make_server(parse_arguments(arguments)), socket.create_server(("127.0.0.1", 0))
        thread = Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        self.running.append((server, thread))
        self.address = f"http://127.0.0.1:{sock.getsockname()[1]}"

    def stop(self):
        for server, thread in self.running:
            server.should_exit = True
            thread.join()


@pytest.fixture
def servers():
    servers = Servers()
    yield servers
    servers.stop()


def curl(words):
    """Sends what curl would send, and gives the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-d", action="append", dest="data")
    parser.add_argument("-H", action="append", dest="headers", default=[])
    parser.add_argument("--no-buffer", action="store_true")
    args = parser.parse_args(words)
    headers = dict(header.split(": ") for header in args.headers)
    request = urllib.request.Request(args.url, "&".join(args.data).encode() if args.data else None, headers)
    return urllib.request.urlopen(request).read()  # raises for the status of an error


def run_command(words, servers):
    """Runs a command in this process. It ends well and leaves something behind: a file, what it prints, a server."""
    if words[0] == "gtransformer-serve":
        servers.start(words[1:])
        return
    if words[0] == "curl":
        assert curl(words[1:]), words
        return
    if words[0] == "accelerate":
        words = ["python", *words[words.index("launch") + 1 :]]
        if words[1] == "--config_file":
            words = ["python", *words[3:]]
    if "|" in words:  # from what stands for the output of the commands before it
        words = words[len(words) - words[::-1].index("|") :]
        with contextlib.closing(io.TextIOWrapper(io.BytesIO(Path("manual.txt").read_bytes()))) as stdin:
            sys.stdin, before = stdin, sys.stdin
            run_command(words, servers)
            sys.stdin = before
        return
    out, before = "printed.txt", written()
    if ">" in words:
        out = words[words.index(">") + 1]
        words = words[: words.index(">")]
    words = [file for word in words for file in (sorted(glob.glob(word)) or [word])]
    if words[0] == "gtransformer-translate":
        call, arguments = gtransformer_translate, words[1:]
    else:
        script = Path(words[1])
        if script.parent.name == "space":
            return  # a server, tested in test_app.py
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
    assert written() - before or "--skip_existing" in words, words  # all of it exists


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, workplace, servers, run, run_without_package, request):
    names, count = {}, 0
    if "import ray\n" in page.read_text(encoding="utf-8"):
        request.getfixturevalue("ray_cluster")
    for language, code in blocks(page):
        if "lora" in code and adapters.refusal():
            continue
        code = code.replace(DOCUMENTED_ADDRESS, servers.address)
        if language == "python":
            count += 1
            if "user/" in code:  # on the Hub, for others
                printed = run_without_package(code)
            else:
                with contextlib.redirect_stdout(io.StringIO()) as stream:
                    exec(compile(code, page.name, "exec"), names)
                printed = stream.getvalue()
            assert printed.strip() or "print(" not in code, code
        elif language == "bash":
            for words in commands(code):
                count += 1
                if words[1] == "hub_cards/publish.py":
                    run(f"from hub_cards.publish import main; main({words[2:]!r})", PYTHONPATH=str(ROOT))
                else:
                    run_command(words, servers)
    assert count


def test_drawings_show_what_the_code_does(tmp_path):
    runpy.run_path(str(DOCS / "draw_how_it_works.py"))["main"]([str(tmp_path)])
    drawings = sorted(tmp_path.iterdir())
    assert len(drawings) == 4
    for drawing in drawings:
        assert drawing.read_text() == (DOCS / "images" / drawing.name).read_text(), f"draw {drawing.name} again"


def test_map_has_every_file():
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    guarantees, rest = contributing[contributing.index("## What the tests guarantee") :].split("## The map")
    named = set(re.findall(r"[\w/]+\.py", rest.partition("\n## ")[0]))
    files = {file.name for file in PACKAGE.rglob("*.py")} - {"__init__.py"}
    assert named == files
    for test in re.findall(r"`((?:\w+/)*test_\w+\.py)`", guarantees):
        assert list((ROOT / "tests").rglob(test)), test


@pytest.fixture
def docstrings(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    return importlib.import_module("markdown_docstrings")


@pytest.mark.parametrize("folder", ["recipes", "studies"])
def test_every_recipe_and_study_is_listed(folder):
    listed = (ROOT / "train" / "README.md").read_text(encoding="utf-8")
    files = list((ROOT / "train" / folder).glob("*.yaml"))
    assert files and not [file.name for file in files if not re.search(rf"`{file.stem}(\.yaml)?`", listed)]


def test_docstrings_become_rest(docstrings):
    docstring = """Adds `1`, see [`group_tags`].

    Args:
        number, other (`int`, defaults to 7): what is
            added.

    Returns:
        A sum: `int`.

    ```python
    >>> add(1)  # `code`
    ```"""
    rest = docstrings.to_rest(docstring)
    assert "Adds ``1``, see :py:func:`~.group_tags`." in rest
    assert ":Parameters:\n    * **number, other** – what is added.\n" in rest
    assert ":Returns: A sum: ``int``.\n" in rest
    assert ".. code-block:: pycon\n\n    >>> add(1)  # `code`\n" in rest
    with pytest.raises(ValueError, match="no `name: text`"):
        docstrings.to_rest("Adds.\n\n    Args:\n        a number\n")


def test_fields_of_the_configuration_have_their_defaults(docstrings):
    lines = GTransformerConfig.__doc__.splitlines()
    docstrings.convert(None, "class", "GTransformerConfig", GTransformerConfig, None, lines)
    assert any("**init_std** (``float | None = 0.02``)" in line for line in lines)
    for name in GTransformerConfig.__annotations__:
        assert sum(bool(re.search(rf"\*\*{name}\*\*|^ +{name}: ", line)) for line in lines) == 1, name


def test_tables_have_every_argument(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    tables = importlib.import_module("argument_tables")
    options = dict(tables.of_parser(argument_parser()))
    assert options["--model"].endswith("; default: a small model of English-German dialogues.")
    assert "``markdown``" in options["--format"] and "; default: ``same``. One of" in options["--output_format"]
    data = dict(tables.of_dataclass(DataArguments))
    assert data["segment_tokens"].endswith("; default: ``512``.")
    assert data["min_document_tokens"].endswith("; default: ``0``.") and "default" not in data["train_files"]
    assert data.keys() == DataArguments.__annotations__.keys()
