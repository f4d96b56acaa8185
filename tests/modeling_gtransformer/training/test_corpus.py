"""Corpora of all formats give the same documents, which become segments; what is wrong is named, not lost."""

import gzip
import json
import lzma

import datasets
import pytest
from word_processor import WordProcessor

from modeling_gtransformer.training.corpus import documents_of, fit_positions, make_segments, read_documents


RECORDS = [
    {"id": "a", "en": ["A talk.", "It is short."], "de": ["Ein Vortrag.", "Er ist kurz."]},
    {"id": "b", "en": ["A line\u2028in it.", "End.", "<d>?"], "de": ["Zeile\u2028darin.", "Ende.", "?"]},
]


def write(path, text, opener=open):
    with opener(path, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return str(path)


def as_text(column, before="<d>\n", between="<d>\r\n", after=""):
    return before + between.join("".join(f"{s} \n" for s in record[column]) for record in RECORDS) + after


def sentences(documents):
    return [(document["en"], document["de"]) for document in documents]


EXPECTED = [(record["en"], record["de"]) for record in RECORDS]


@pytest.mark.parametrize("suffix, opener", [("", open), (".gz", gzip.open), (".xz", lzma.open)])
def test_json_lines(tmp_path, suffix, opener):
    files = [write(tmp_path / f"{i}.jsonl{suffix}", json.dumps(r) + "\n", opener) for i, r in enumerate(RECORDS)]
    documents = read_documents(files, ["en", "de"])
    assert sentences(documents) == EXPECTED and documents[1].record["id"] == "b"


@pytest.mark.parametrize("marks", [{}, {"before": ""}, {"after": "<d>\n"}, {"before": "\ufeff<d>\n"}])
def test_text_with_document_lines(tmp_path, marks):
    files = [write(tmp_path / f"train.{column}", as_text(column, **marks)) for column in ("en", "de")]
    assert sentences(read_documents(files, ["en", "de"])) == EXPECTED


def test_datasets():
    assert sentences(documents_of(datasets.Dataset.from_list(RECORDS), ["en", "de"])) == EXPECTED
    with pytest.raises(ValueError, match=r"wmt\[0\] \(fr, sentence 1\): no list of sentences in column 'fr'"):
        documents_of(datasets.Dataset.from_list(RECORDS), ["en", "fr"], "wmt")


BAD_LINES = [
    ("{", "broken JSON"),
    ("[]", "a document must be a JSON object, not list"),
    ('{"en": ["a"]}', "no list of sentences in column 'de'"),
    ('{"en": ["a"], "de": "b"}', "no list of sentences in column 'de'"),
    ('{"en": ["a", "b"], "de": ["c"]}', "2 sentences in 'en', but 1 in 'de'"),
    ('{"en": [], "de": []}', "a document without sentences"),
    ('{"en": ["a", " "], "de": ["b", "c"]}', "(en, sentence 2): a sentence without text"),
    ('{"en": [3], "de": ["b"]}', "a sentence must be text, not int"),
    ('{"en": ["\\ud800"], "de": ["b"]}', "half of a character"),
    (b'{"en": ["\xff"], "de": ["b"]}', "not UTF-8"),
]


def test_blank_lines_are_no_documents(tmp_path):
    good = json.dumps(RECORDS[0]).encode()
    assert (
        len(read_documents([write(tmp_path / "train.jsonl", b"\n".join([good, b"", good, b"", b""]))], ["en", "de"]))
        == 2
    )


@pytest.mark.parametrize("line, problem", BAD_LINES)
def test_a_bad_line_is_named(tmp_path, line, problem):
    good = json.dumps(RECORDS[0]).encode()
    bad = line if isinstance(line, bytes) else line.encode()
    path = write(tmp_path / "train.jsonl", b"\n".join([good, bad, good]) + b"\n")
    with pytest.raises(ValueError) as error:
        read_documents([path], ["en", "de"])
    assert f"{path}:2" in str(error.value) and problem in str(error.value)


def test_all_problems_of_all_files_are_collected_and_the_first_shown(tmp_path):
    files = [write(tmp_path / f"{i}.jsonl", "{\n" * 15) for i in range(2)]
    with pytest.raises(ValueError) as error:
        read_documents(files, ["en", "de"])
    lines = str(error.value).splitlines()
    assert lines[0].startswith("30 problems") and len(lines) == 22 and lines[-1].strip() == "and 10 more"
    assert "1.jsonl:5" in lines[-2]


def test_problems_of_text_files_are_named_by_the_line_of_each_file(tmp_path):
    english = write(tmp_path / "train.en", "<d>\none\ntwo\n<d>\n\nfour\n")
    german = write(tmp_path / "train.de", "<d>\neins\n<d>\ndrei\nvier\n<d>\nmehr\n")
    with pytest.raises(ValueError) as error:
        read_documents([english, german], ["en", "de"])
    message = str(error.value)
    assert f"{english} has 2, {german} has 3" in message
    assert f"{english}:2: 2 sentences in 'en', but 1 in 'de' ({german}:2)" in message
    assert f"{english}:5: a sentence without text" in message


@pytest.mark.parametrize("opener, suffix", [(gzip.open, "gz"), (lzma.open, "xz")])
def test_a_cut_off_archive_is_no_shorter_corpus(tmp_path, opener, suffix):
    path = tmp_path / f"train.jsonl.{suffix}"
    write(path, "\n".join(json.dumps(RECORDS[0]) for _ in range(100)), opener)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(ValueError, match="broken archive"):
        read_documents([str(path)], ["en", "de"])


def test_blank_sentences_are_accepted_from_a_system(tmp_path):
    path = write(tmp_path / "system.jsonl", '{"translation": ["a", ""]}\n')
    assert read_documents([path], ["translation"], blank_ok=True)[0]["translation"] == ["a", ""]


def record_of(*lengths):
    """A document with sentences of so many words; the target's are one word shorter."""
    return {"en": [" ".join("w" * n) for n in lengths], "de": [" ".join("v" * max(n - 1, 1)) for n in lengths]}


def test_short_documents_are_left_out_and_announced(caplog):
    documents = documents_of([record_of(3, 4), record_of(9, 9), record_of(2)], ["en", "de"])
    segments = make_segments(documents, WordProcessor(), ("en", "de"), min_document_tokens=14)
    assert [segment["document"] for segment in segments] == [1]
    assert "2 of 3 documents have fewer than 14 tokens: not trained on" in caplog.text


def test_instances_are_cut_at_sentence_borders():
    documents = documents_of([record_of(3, 4, 5, 20, 2), record_of(2)], ["en", "de"])
    segments = make_segments(documents, WordProcessor(), ("en", "de"), segment_tokens=15)
    cuts = [(i["document"], i["sentences"].start, i["sentences"].stop) for i in segments]
    assert cuts == [(0, 0, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5), (1, 0, 1)]
    assert [(len(i["input_ids"]), len(i["labels"])) for i in segments][:2] == [(11, 9), (7, 6)]
    single = make_segments(documents, WordProcessor(), ("en", "de"), segment_tokens=15, segment_sentences=1)
    assert len(single) == 6


def test_instances_beyond_the_positions_are_announced_or_refused(caplog):
    documents = documents_of([record_of(3, 20)], ["en", "de"], "corpus")
    segments = make_segments(documents, WordProcessor(), ("en", "de"), segment_tokens=15)
    message = "1 of 2 segments are longer than the 16 positions of the model, the first at corpus[0] (en, sentence 2)"
    assert len(fit_positions(segments, documents, "en", 16, drop=True)) == 1
    assert message in caplog.text
    with pytest.raises(ValueError) as error:
        fit_positions(segments, documents, "en", 16, drop=False)
    assert message in str(error.value)


def test_sentences_without_tokens_are_named():
    documents = documents_of([{"en": ["a", "..."], "de": ["b", "c"]}], ["en", "de"], "corpus")
    with pytest.raises(ValueError, match=r"corpus\[0\] \(en, sentence 2\): nothing to translate"):
        make_segments(documents, WordProcessor(), ("en", "de"))
