"""The paper's corpora from the Hub's cache."""

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from modeling_gtransformer.training.experiment import load_corpora
from modeling_gtransformer.training.recipe import DataArguments


@pytest.mark.parametrize("columns", [("en", "de"), ("de", "en"), ("source", "target")])
def test_documents_of_a_corpus(news_corpus, columns):
    arguments = DataArguments(paper_corpus="news", source_column=columns[0], target_column=columns[1])
    corpora = load_corpora(arguments)
    languages = ("de", "en") if columns[0] == "de" else ("en", "de")
    for split, corpus in zip(("train", "dev"), corpora, strict=True):
        for column, language in zip(columns, languages, strict=True):
            sides = [document[column] for document in corpus.documents]
            assert sides == [[f"{split} {language} one .", "two ."], ["three ."]]
    with pytest.raises(LocalEntryNotFoundError):
        load_corpora(DataArguments(paper_corpus="ted"))
