"""The paper's corpora from the Hub's cache."""

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from modeling_gtransformer.training.paper_corpora import paper_corpus


@pytest.mark.parametrize(
    ("columns", "languages"), [(("en", "de"), "en de"), (("de", "en"), "de en"), (("source", "target"), "en de")]
)
def test_source_and_target_of_a_split(news_corpus, columns, languages):
    expected = [str(news_corpus / f"concatenated_en2de_dev_{language}.txt") for language in languages.split()]
    assert paper_corpus("news", "dev", columns) == expected


def test_a_corpus_that_was_not_downloaded(news_corpus):
    with pytest.raises(LocalEntryNotFoundError):
        paper_corpus("ted", "dev")
