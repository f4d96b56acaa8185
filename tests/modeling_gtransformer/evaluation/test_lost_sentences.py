"""A sentence is missing if no output is left for it; what is joined, split or badly translated is there."""

import json

import pytest
from json_lines import read_json_lines, write_json_lines

from modeling_gtransformer.evaluation.lost_sentences import (
    LostSentencesOptions,
    compare,
    evaluate_lost_sentences,
    missing_sentences,
)


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
    text = f"{REFERENCES[0]}| {REFERENCES[2]} | "
    assert compare(REFERENCES, ["", text], lambda text: text.split("|")) == {
        "references": REFERENCES,
        "output": [REFERENCES[0], REFERENCES[2]],
        "missing": [1],
    }


def test_a_long_document_is_aligned_near_its_diagonal():
    references = [f"{word} {number} ." for number, word in enumerate(("cats", "dogs", "trees", "houses") * 10)]
    assert missing_sentences(references, [*references[:5], *references[20:]]) == [*range(5, 20)]


def test_systems_of_any_kind_are_counted(tmp_path, capsys):
    """As JSON lines and as text, with another number of sentences than the reference."""
    sentences = ["The cat sat on the mat.", "It was warm there today.", "A dog came in from the cold."]
    reference = write_json_lines(tmp_path / "test.jsonl", [{"target": sentences}, {"target": sentences[:2]}])
    ours = write_json_lines(
        tmp_path / "ours.jsonl", [{"translation": [*sentences[:2], ""]}, {"translation": sentences[:2]}]
    )
    (tmp_path / "theirs.txt").write_text(f"{' '.join(sentences)}\n\n{sentences[1]}\n")
    theirs, output, report = str(tmp_path / "theirs.txt"), tmp_path / "lost.jsonl", tmp_path / "lost.json"
    options = LostSentencesOptions([ours, theirs], reference, "en", output=output, json=report)
    counts = evaluate_lost_sentences(options)
    assert counts == {
        "reference": {"in": 5, "out": 5, "missing": 0},
        ours: {"in": 5, "out": 4, "missing": 1},
        theirs: {"in": 5, "out": 4, "missing": 1},
    }
    assert "| reference | 5 | 5 | 0 (0.0 %) |" in capsys.readouterr().out
    assert json.loads(report.read_text())["counts"] == counts
    assert [row[ours]["missing"] for row in read_json_lines(output)] == [[2], []]
    assert [row[theirs]["missing"] for row in read_json_lines(output)] == [[], [0]]
    (tmp_path / "theirs.txt").write_text("One document.\n")
    with pytest.raises(ValueError, match=r"theirs.txt has 1 documents, .*test.jsonl 2"):
        evaluate_lost_sentences(options)
