"""Documents become segments at sentence borders; what cannot be one is announced, never lost in silence."""

import pytest

from modeling_gtransformer.training.corpus import documents_of, fit_positions, make_segments


class Words:
    """A processor whose tokens are words; a sentence of dots has none."""

    sentence_tokens = 2

    def encode_sentences(self, sentences, is_target=False):
        encoded = [[hash(word) for word in sentence.replace(".", "").split()] for sentence in sentences]
        if not all(encoded):
            raise ValueError("nothing to translate")
        return encoded

    def build_source(self, encoded):
        return [token for sentence in encoded for token in (0, *sentence, 2)]

    def build_labels(self, encoded):
        return [*self.build_source(encoded)[1:], 9]


def record_of(*lengths):
    """A document with sentences of so many words; the target's are one word shorter."""
    return {"en": [" ".join("w" * n) for n in lengths], "de": [" ".join("v" * max(n - 1, 1)) for n in lengths]}


def test_short_documents_are_left_out_and_announced(caplog):
    documents = documents_of([record_of(3, 4), record_of(9, 9), record_of(2)], ["en", "de"])
    segments = make_segments(documents, Words(), ("en", "de"), min_document_tokens=14)
    assert [segment["document"] for segment in segments] == [1]
    assert "2 of 3 documents have fewer than 14 tokens: not trained on" in caplog.text


def test_instances_are_cut_at_sentence_borders():
    documents = documents_of([record_of(3, 4, 5, 20, 2), record_of(2)], ["en", "de"])
    segments = make_segments(documents, Words(), ("en", "de"), segment_tokens=15)
    cuts = [(i["document"], i["sentences"].start, i["sentences"].stop) for i in segments]
    assert cuts == [(0, 0, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5), (1, 0, 1)]
    assert [(len(i["input_ids"]), len(i["labels"])) for i in segments][:2] == [(11, 9), (7, 6)]
    single = make_segments(documents, Words(), ("en", "de"), segment_tokens=15, segment_sentences=1)
    assert len(single) == 6


def test_instances_beyond_the_positions_are_announced_or_refused(caplog):
    documents = documents_of([record_of(3, 20)], ["en", "de"], "corpus")
    segments = make_segments(documents, Words(), ("en", "de"), segment_tokens=15)
    message = "1 of 2 segments are longer than the 16 positions of the model, the first at corpus[0] (en, sentence 2)"
    assert len(fit_positions(segments, documents, "en", 16, drop=True)) == 1
    assert message in caplog.text
    with pytest.raises(ValueError) as error:
        fit_positions(segments, documents, "en", 16, drop=False)
    assert message in str(error.value)


def test_sentences_without_tokens_are_named():
    documents = documents_of([{"en": ["a", "..."], "de": ["b", "c"]}], ["en", "de"], "corpus")
    with pytest.raises(ValueError, match=r"corpus\[0\] \(en, sentence 2\): nothing to translate"):
        make_segments(documents, Words(), ("en", "de"))
