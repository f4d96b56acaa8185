"""The paper's preprocessing for models from random weights: Moses tokenization and truecasing, and its inverse.

    python train/studies/moses.py tokenize outputs/moses --files train.jsonl --files dev.jsonl
    python train/studies/moses.py detokenize translations.jsonl translations.raw.jsonl --language de

The first file trains the truecasers. `--paper_corpus news` writes `train.jsonl`, `dev.jsonl` and `test.jsonl`. Column
names are language codes of Moses (en, de, ...).

The paper's BLEU compares detokenized, truecased text, including references. To reproduce it, also detokenize the
tokenized references.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path

from transformers.utils.logging import tqdm

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import Document, read_documents
from modeling_gtransformer.corpora.corpus_files import JSON_LINES
from modeling_gtransformer.runtime.atomic_file import atomic_file, check_outputs
from modeling_gtransformer.runtime.json_line import json_line
from modeling_gtransformer.training.moses import detokenizer, learn_truecasing
from modeling_gtransformer.training.paper_corpora import SPLITS, PaperCorpus, paper_corpus
from modeling_gtransformer.translation_options import option


@dataclass(frozen=True)
class TokenizeOptions:
    output: Path = option(MISSING, "Folder for the documents and the truecasers.", argument=True)
    files: list[str] = option([], "JSON-lines files; the first one trains the truecasers.")
    paper_corpus: PaperCorpus | None = option(None, "One of the paper's corpora on the Hub, instead of files.")
    columns: list[str] = option(["en", "de"], "Columns with lists of sentences.")

    def __post_init__(self) -> None:
        if bool(self.files) == bool(self.paper_corpus):
            raise ValueError("Give either files or paper_corpus.")
        if wrong := [file for file in self.files if not file.endswith(JSON_LINES)]:
            raise ValueError(f"files: {', '.join(wrong)} must be named *.jsonl[.gz|.xz].")
        if len(set(map(stem, self.files))) < len(self.files):
            raise ValueError(f"files: {', '.join(self.files)} have equal names: outputs would overwrite each other.")


@dataclass(frozen=True)
class DetokenizeOptions:
    documents: str = option(MISSING, "JSON-lines file to read.", argument=True)
    output: Path = option(MISSING, "JSON-lines file to write.", argument=True)
    column: str = option("translation", "Column to detokenize.")
    language: str = option("de", "Language of the column.")


def tokenize(options: TokenizeOptions) -> None:
    """Writes every file with tokenized and truecased columns."""
    columns = options.columns
    if options.paper_corpus:
        files = {split: paper_corpus(options.paper_corpus, split, columns) for split in SPLITS}
    else:
        check_outputs([options.output / f"{stem(file)}.jsonl" for file in options.files], options.files)
        files = {stem(file): [file] for file in options.files}
    corpora = {name: read_documents(paths, columns) for name, paths in files.items()}
    options.output.mkdir(parents=True, exist_ok=True)
    change: dict[str, Callable[[str], str]] = {}
    for column in columns:
        first = next(iter(corpora.values()))
        sentences = [sentence for document in first for sentence in document[column]]
        change[column] = learn_truecasing(sentences, column, options.output / f"truecase.{column}")
    for name, documents in corpora.items():
        write_changed(documents, change, options.output / f"{name}.jsonl")


def detokenize(options: DetokenizeOptions) -> None:
    """Writes the documents with a detokenized column."""
    check_outputs([options.output], [options.documents])
    documents = read_documents([options.documents], [options.column], blank_ok=True)
    write_changed(documents, {options.column: detokenizer(options.language)}, options.output)


def write_changed(documents: Sequence[Document], change: dict[str, Callable[[str], str]], path: Path) -> None:
    """Writes the documents as JSON lines, with functions applied to the sentences of columns."""
    with atomic_file(path) as file:
        for document in tqdm(documents, desc=path.name, unit=" documents"):
            changed = {column: [f(sentence) for sentence in document[column]] for column, f in change.items()}
            file.write(json_line({**document.record, **changed}))


def stem(file: str) -> str:
    """Strips the extension from the name of a JSON-lines file."""
    extension = next(extension for extension in JSON_LINES if file.endswith(extension))
    return Path(file).name.removesuffix(extension)


if __name__ == "__main__":
    sys.exit(run_script((TokenizeOptions, tokenize), (DetokenizeOptions, detokenize)))
