"""Translations as they are scored, and how many sentences went in and came out."""

import gzip
from dataclasses import replace

import pytest
from json_lines import write_json_lines

from modeling_gtransformer.evaluation.translations import (
    SentenceCounts,
    Translations,
    in_common_segments,
    read_sentences,
    read_translations,
)


def test_aligned_sentences(tmp_path):
    rows = [{"translation": ["a", "", "c"], "segments": [2, 1]}, {"translation": [" "], "segments": [1]}]
    translations = read_translations(write_json_lines(tmp_path / "t.jsonl", rows))
    assert translations.documents == [["a", "", "c"], [" "]] and translations.aligned
    assert translations.segments == [[2, 1], [1]]
    assert translations.counts == SentenceCounts(source=4, written=2, missing=2)
    assert str(translations.counts) == "4 sentences in, 2 out, 2 missing"


def test_texts_that_cannot_be_read_are_refused(tmp_path):
    contents = {"de.txt": "größer\n".encode("cp1252"), "de.txt.gz": gzip.compress(b"a\n")[:-4]}
    for (name, content), problem in zip(contents.items(), ("not UTF-8", "broken archive"), strict=True):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}:\d: {problem}"):
            read_sentences(str(tmp_path / name), "target")
    (tmp_path / "de.txt").write_text("größer\n", encoding="utf-8-sig")
    assert read_sentences(str(tmp_path / "de.txt"), "target") == [["größer"]]


def test_freely_decoded_segments(tmp_path):
    """A sentence more in one segment does not make up for one that another lacks."""
    rows = [
        {"translation": ["a", "b", "c", "d"], "segments": [2, 2], "translated_segments": [3, 1]},
        {"translation": [""], "segments": [2], "translated_segments": [1]},
    ]
    file = write_json_lines(tmp_path / "t.jsonl", rows)
    translations = read_translations(file, plain=str.upper)
    assert translations.documents == [["A B C", "D"], [""]] and not translations.aligned
    assert translations.segments == [[2, 2], [2]]
    assert translations.counts == SentenceCounts(source=6, written=4, missing=3)


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("a\nb\n<d>\nc\n", [["a", "b"], ["c"]]),
        ("a\nb\n\n\nc\n", [["a", "b"], ["c"]]),
        ("<d>\na\n\n<d>\nc\n", [["a", ""], ["c"]]),  # with <d>, a blank line is a sentence without text
    ],
)
def test_text_has_no_segments(tmp_path, text, documents):
    (tmp_path / "t.txt").write_text(text)
    translations = read_translations(tmp_path / "t.txt")
    assert translations.documents == documents and translations.segments is None
    assert translations.counts.source == 3


def test_a_line_separator_ends_no_record(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"translation": ["a\u2028b", "c\x85"]}\n', encoding="utf-8")
    assert read_translations(tmp_path / "t.jsonl").documents == [["a\u2028b", "c\x85"]]


def test_other_segments():
    counts = SentenceCounts(3, 3, 0)
    aligned = Translations([["a", "b", "c"]], [[1, 1, 1]], True, counts)
    free = Translations([["a b", "c"]], [[2, 1]], False, counts)
    for pair in ([aligned, free], [free, aligned]):
        assert {each.segments[0][0] for each in in_common_segments(*pair)} == {2}
    for pair in ([free, replace(free, segments=[[1, 2]])], [replace(aligned, segments=None), aligned]):
        assert in_common_segments(*pair) == pair
    assert free.cut([[3]]) == free and aligned.cut([[3]]).segments == [[3]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"segments": [1], "translated_segments": [1]}, "only some documents were decoded freely"),
        ({"segments": [2]}, r"t\.jsonl, document 2 has 1 sentences, its segments 2: translate it again"),
        *(
            ({"segments": wrong}, r"t\.jsonl, document 2: segments must be numbers of sentences")
            for wrong in (3, None, ["x"], [-1, 2], [True])
        ),
    ],
)
def test_segments_that_do_not_fit_are_refused(tmp_path, fields, message):
    rows = [{"translation": ["a"], "segments": [1]}, {"translation": ["a"], **fields}]
    with pytest.raises(ValueError, match=message):
        read_translations(write_json_lines(tmp_path / "t.jsonl", rows))
