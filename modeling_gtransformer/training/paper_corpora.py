"""The paper's corpora, as its authors publish them on the Hub: https://huggingface.co/datasets/gshbao/DocNMT

English and German text, one sentence per line, a line `<d>` between documents.
"""

from collections.abc import Sequence

from huggingface_hub import hf_hub_download


REPOSITORY = "gshbao/DocNMT"
CORPORA = {"ted": "iwslt17", "news": "nc2016", "europarl": "europarl7"}
SPLITS = ("train", "dev", "test")
LANGUAGES = ("en", "de")


def paper_corpus(name: str, split: str, columns: Sequence[str] = LANGUAGES) -> list[str]:
    """
    The English and the German file of a split, downloaded unless they are in the Hub's cache.

    Args:
        name: "ted", "news" or "europarl".
        split: "train", "dev" or "test".
        columns: what the two files are read as. "de" and "en" give the German file first, other names the English one.
    """
    folder = CORPORA[name]
    languages = columns if set(columns) == set(LANGUAGES) else LANGUAGES
    return [
        hf_hub_download(REPOSITORY, f"{folder}/concatenated_en2de_{split}_{language}.txt", repo_type="dataset")
        for language in languages
    ]
