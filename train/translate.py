"""Translate documents with a trained G-Transformer; every sentence gets exactly one translation.

    python train/translate.py outputs/mbart25 talks.jsonl.xz talks.translated.jsonl --source_column en
    accelerate launch train/translate.py outputs/mbart25 ...    # on all the devices, or machines with a common disk

Reads JSON lines or a text file of one sentence per line with `<d>` lines between documents, of any size. Writes JSON
lines in the same order: the fields of every document, its `translation` (list of sentences) and `segments`, how many
sentences the model read at once. The output appears when all is done; until then every process appends to a
file of its own beside it, from which the same command continues, with the same result, if it was stopped.
"""

import sys

from modeling_gtransformer.training.corpus_translation import parse_translation, translate_corpus


def main(argv: list[str]) -> None:
    translate_corpus(*parse_translation(argv, __doc__))


if __name__ == "__main__":
    main(sys.argv[1:])
