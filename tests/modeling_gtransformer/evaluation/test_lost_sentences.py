"""A sentence is missing if no output is left for it; what is joined, split or badly translated is there."""

import pytest

from modeling_gtransformer.evaluation.lost_sentences import compare_paragraph, missing_sentences


REFERENCES = ["the cat sat on the mat .", "it was warm there today .", "a dog came in from the cold ."]


@pytest.mark.parametrize(
    "output, missing",
    [
        (REFERENCES, []),
        (REFERENCES[1:], [0]),
        ([REFERENCES[0], REFERENCES[2]], [1]),
        (REFERENCES[:1], [1, 2]),
        ([], [0, 1, 2]),
        # Joined sentences, a sentence in parts, other words, and a sentence that is nowhere in the source.
        ([f"{REFERENCES[0]} {REFERENCES[1]}", REFERENCES[2]], []),
        (["the cat sat .", "on the mat .", *REFERENCES[1:]], []),
        (["a cat sat on a mat .", "it is warm .", "the dog came from the cold ."], []),
        ([*REFERENCES, "thanks for watching ."], []),
        # A full stop alone is too little to stand for a sentence, although every sentence has one.
        ([REFERENCES[0].removesuffix(" ."), "."], [1, 2]),
    ],
)
def test_what_is_missing(output, missing):
    assert missing_sentences(REFERENCES, output) == missing


def test_a_text_is_cut_into_sentences_first():
    paragraph = compare_paragraph(REFERENCES, f"{REFERENCES[0]}| {REFERENCES[2]} | ", lambda text: text.split("|"))
    assert (paragraph.output, paragraph.missing) == ([REFERENCES[0], REFERENCES[2]], [1])
    assert paragraph.references == REFERENCES
