"""Translate documents with a G-Transformer or a plain translator; every sentence gets exactly one translation.

    python train/translate.py outputs/mbart25 talks.jsonl.xz talks.translated.jsonl --source_column en
    python train/translate.py Helsinki-NLP/opus-mt-en-de talks.txt talks.translated.jsonl
    python train/translate.py outputs/mbart25 talks.parquet talks.translated.parquet --source_column en

Reads JSON lines, parquet, a dataset that `save_to_disk` of `datasets` has written, or a text file of one sentence per
line with `<d>` lines between documents, of any size, and a folder of such files. Writes JSON lines, parquet or a
dataset, as the name of the output says, in the same order: the fields of every document, its `translation` (list of
sentences) and `segments`, how many sentences the model read at once. With `--align_sentences false` the model writes
as many sentences as it likes, and `translated_segments` says how many came of each segment.

The output appears when all is done. Until then what is translated is in the folder `OUTPUT.partial`, from which the
same command continues, with the same result, if it was stopped. A translation of another corpus, by another model or
with other settings is refused until that folder is removed. One process translates; `translate_ray.py` does the same
with several GPUs or machines.

The exit status is 0 if all is translated, 1 for an error, 2 if the command cannot begin, 130 for Ctrl-C and 143 for
SIGTERM.
"""

import sys

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.corpora.corpus_translation import translate_corpus
from modeling_gtransformer.corpora.translation_settings import parse_translation


def main(argv: list[str]) -> None:
    translate_corpus(*parse_translation(argv, __doc__))


if __name__ == "__main__":
    sys.exit(run("translate.py", lambda: main(sys.argv[1:])))
