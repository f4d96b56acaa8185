"""The paper's corpora, published by its authors: https://huggingface.co/datasets/gshbao/DocNMT

They contain English and German text, with a sentence per line and a line `<d>` between documents.
"""

from collections.abc import Sequence
from typing import Literal

from huggingface_hub import hf_hub_download


PaperCorpus = Literal["ted", "news", "europarl"]
REPOSITORY = "gshbao/DocNMT"
CORPORA = {"ted": "iwslt17", "news": "nc2016", "europarl": "europarl7"}
SPLITS = ("train", "dev", "test")
LANGUAGES = ("en", "de")


def paper_corpus(name: PaperCorpus, split: str, columns: Sequence[str] = LANGUAGES) -> list[str]:
    """
    Returns the two files of a split, downloaded from the Hub or from its cache.

    Args:
        name: "ted", "news" or "europarl".
        split: "train", "dev" or "test".
        columns: column names of the two files. With "de" and "en", the German file comes first; with other names, the
            English one.
    """
    folder = CORPORA[name]
    languages = columns if set(columns) == set(LANGUAGES) else LANGUAGES
    return [
        hf_hub_download(REPOSITORY, f"{folder}/concatenated_en2de_{split}_{language}.txt", repo_type="dataset")
        for language in languages
    ]
