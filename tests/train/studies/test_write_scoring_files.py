"""Files for other tools: a sentence per line on every side, with the document that it belongs to."""

import pytest
from json_lines import write_json_lines

from train.studies.write_scoring_files import ScoringOptions, write_scoring_files


ROWS = [
    {
        "id": "a",
        "en": ["One.", "Two\nlines.", "Three."],
        "translation": ["Eins.", "Zwei\u2028Zeilen.", ""],
        "segments": [3],
    },
    {"id": "b", "en": ["Four."], "translation": ["Vier."], "segments": [1]},
]
REFERENCES = [{"de": ["1.", "2.", "3."]}, {"de": ["4."]}]


@pytest.fixture
def write(tmp_path):
    """Writes the files, and gives the lines of each."""

    def write(rows=ROWS, **options):
        translations = write_json_lines(tmp_path / "translated.jsonl", rows)
        write_scoring_files(ScoringOptions(translations, tmp_path / "out", source_column="en", **options))
        return {file.name: file.read_text().split("\n")[:-1] for file in (tmp_path / "out").iterdir()}

    return write


@pytest.fixture
def reference(tmp_path):
    return {"reference": write_json_lines(tmp_path / "test.jsonl", REFERENCES), "reference_column": "de"}


def test_a_sentence_per_line(write, reference):
    assert write(**reference) == {
        "source.txt": ["One.", "Two lines.", "Three.", "Four."],
        "hypothesis.txt": ["Eins.", "Zwei Zeilen.", "", "Vier."],
        "reference.txt": ["1.", "2.", "3.", "4."],
        "document_ids.txt": ["a", "a", "a", "b"],
        "last.txt": ["", "Vier."],
        "identify.tsv": ["a\tOne.\t1.", "a\tTwo lines.\t2.", "a\tThree.\t3.", "b\tFour.\t4."],
    }


def test_without_references_and_with_ids_of_two_documents(write):
    files = write(rows=[{**row, "id": "same"} for row in ROWS])
    assert set(files) == {"source.txt", "hypothesis.txt", "document_ids.txt", "last.txt"}
    assert files["document_ids.txt"] == ["1", "1", "1", "2"]


def test_windows(write, reference):
    """The last one of a document begins early, so that it is as long as the others."""
    files = write(**reference, window=2)
    assert files["windows.source.txt"] == ["One. Two lines.", "Two lines. Three.", "Four."]
    assert files["windows.reference.txt"] == ["1. 2.", "2. 3.", "4."]
    assert files["windows.document_ids.txt"] == ["a", "a", "b"]
    longer = [{**ROWS[0], "en": list("abcde"), "translation": list("vwxyz"), "segments": [5]}]
    assert write(window=3, stride=1, rows=longer)["windows.hypothesis.txt"] == [
        "v w x",
        "w x y",
        "x y z",
    ]


def test_what_is_not_aligned_is_refused(write, reference):
    free = [{**row, "translated_segments": [len(row["translation"])]} for row in ROWS]
    with pytest.raises(ValueError, match="was decoded freely"):
        write(rows=free)
    with pytest.raises(ValueError, match="has 1 documents of 3 source sentences, its reference 2 of 4"):
        write(**reference, rows=ROWS[:1])
    with pytest.raises(ValueError, match="window must be at least 1"):
        write(window=0)
    for options in ({"stride": 3}, {"window": 3, "stride": 4}):
        with pytest.raises(ValueError, match="sentences between two windows would be left out"):
            write(**options)


def test_no_input_is_overwritten(tmp_path):
    (tmp_path / "reference.txt").write_text("mine")
    translations = write_json_lines(tmp_path / "translated.jsonl", ROWS)
    (tmp_path / "source.txt").write_text("1.\n2.\n3.\n<d>\n4.\n")
    options = {"source_column": "en", "reference": str(tmp_path / "source.txt"), "reference_column": "de"}
    with pytest.raises(ValueError, match=r"source\.txt would take the place of an input"):
        write_scoring_files(ScoringOptions(translations, tmp_path, **options))
    assert (tmp_path / "reference.txt").read_text() == "mine"
