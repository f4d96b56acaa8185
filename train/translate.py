"""Translate documents with a G-Transformer or a sentence-level translator; every sentence gets exactly one
translation.

    python train/translate.py outputs/mbart25 talks.jsonl.xz talks.translated.jsonl --source_column en
    python train/translate.py Helsinki-NLP/opus-mt-en-de talks.txt talks.translated.jsonl
    python train/translate.py outputs/mbart25 talks.parquet talks.translated.parquet --source_column en

Reads files of any size: JSON lines, parquet, a dataset that `save_to_disk` of `datasets` has written, a text file with
one sentence per line and `<d>` lines between documents, or a folder of such files. Writes JSON lines, parquet or a
dataset, depending on the name of the output, in the same order: the fields of every document, its `translation` (list
of sentences) and its `segments`, the numbers of sentences that the model read at once. With `--align_sentences false`,
the model writes as many sentences as it likes, and `translated_segments` says how many it wrote for each segment.

The output appears when everything is translated. Until then, the finished part is in the folder `OUTPUT.partial`, from
which the same command continues with the same result if it was stopped. The command refuses to continue with another
corpus, model or settings until you remove that folder. It runs as one process; `translate_ray.py` does the same with
several GPUs or machines.

The exit status is 0 if everything is translated, 1 for an error, 2 if the command cannot begin, 130 for Ctrl-C and 143
for SIGTERM.
"""

import sys

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.corpora.corpus_translation import translate_corpus
from modeling_gtransformer.corpora.translation_settings import parse_translation


def main(argv: list[str]) -> None:
    translate_corpus(*parse_translation(argv, __doc__))


if __name__ == "__main__":
    sys.exit(run("translate.py", lambda: main(sys.argv[1:])))
