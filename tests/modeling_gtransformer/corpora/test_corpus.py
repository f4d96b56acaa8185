"""Corpora of all formats give the same documents; what is wrong with one is reported at once, with file and line."""

import gzip
import json
import lzma

import datasets
import pytest

from modeling_gtransformer.corpora.corpus import iterate_dataset, read_documents


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


def save_parquet(path):
    datasets.Dataset.from_list(RECORDS).to_parquet(f"{path}.parquet")
    return f"file://{path}.parquet"


def save_dataset(path):
    datasets.Dataset.from_list(RECORDS).save_to_disk(str(path), num_shards=2)
    return str(path)


def save_folder(path):
    path.mkdir()
    for number, record in enumerate(RECORDS):
        write(path / f"{number}.jsonl", json.dumps(record) + "\n")
    return str(path)


@pytest.mark.parametrize("save", [save_parquet, save_dataset, save_folder])
def test_tables_and_folders(tmp_path, save):
    corpus = save(tmp_path / "corpus")
    documents = read_documents([corpus], ["en", "de"])
    assert sentences(documents) == EXPECTED and documents[1].record["id"] == "b"
    with pytest.raises(ValueError, match=f"{corpus}.* \\(fr, sentence 1\\): no list of sentences in column 'fr'"):
        read_documents([corpus], ["fr"])


def test_a_broken_table(tmp_path):
    with pytest.raises(ValueError, match=r"train\.parquet: broken file, "):
        read_documents([write(tmp_path / "train.parquet", "no table")], ["en"])


def test_datasets():
    assert sentences(iterate_dataset(datasets.Dataset.from_list(RECORDS), ["en", "de"])) == EXPECTED
    with pytest.raises(ValueError, match=r"wmt\[0\] \(fr, sentence 1\): no list of sentences in column 'fr'"):
        list(iterate_dataset(datasets.Dataset.from_list(RECORDS), ["en", "fr"], "wmt"))


BAD_LINES = [
    ("{", "broken JSON"),
    ("[]", "a document must be a JSON object, not list"),
    ('{"en": ["a"]}', "no list of sentences in column 'de'"),
    ('{"en": ["a"], "de": "b"}', "no list of sentences in column 'de'"),
    ('{"en": ["a", "b"], "de": ["c"]}', "2 sentences in 'en', but 1 in 'de'"),
    ('{"en": [], "de": []}', "a document without sentences"),
    ('{"en": ["a", " "], "de": ["b", "c"]}', "(en, sentence 2): a sentence without text"),
    ('{"en": [3], "de": ["b"]}', "a sentence must be text, not int"),
    ('{"en": ["\\ud800"], "de": ["b"]}', "an unpaired surrogate"),
    (b'{"en": ["\xff"], "de": ["b"]}', "not UTF-8"),
    (b'{"en": ' + b"[" * 100_000, "JSON is nested too deeply"),
    ('{"en": ["a"], "de": ["b"], "id": {"x": 1, "x": 2}}', "the field 'x' appears twice in an object"),
    ('{"en": ["a"], "de": ["b"], "id": 1e400}', "the number 1e400 is too large"),
    ('{"en": ["a"], "de": ["b"], "id": ' + "1" * 5000 + "}", "Exceeds the limit"),
]


def test_blank_lines_are_no_documents(tmp_path):
    good = json.dumps(RECORDS[0])
    path = write(tmp_path / "train.jsonl", f"{good}\n\n{good}\n\n\n")
    assert len(read_documents([path], ["en", "de"])) == 2


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


@pytest.mark.parametrize(
    "names", [["a.json", "b.json"], ["a.csv", "b.csv"], ["a.jsonl.bz2", "b.jsonl.bz2"], ["a.jsonl", "b.en"]]
)
def test_what_is_no_text_is_not_read_as_text(tmp_path, names):
    """A file per column would be read, with its markup as sentences."""
    files = [write(tmp_path / name, json.dumps(RECORDS[0])) for name in names]
    with pytest.raises(ValueError, match=r"expected files named \*.jsonl"):
        read_documents(files, ["en", "de"])


def test_problems_of_text_files_are_named_by_the_line_of_each_file(tmp_path):
    english = write(tmp_path / "train.en", "<d>\none\ntwo\n<d>\n\nfour\n")
    german = write(tmp_path / "train.de", "<d>\neins\n<d>\ndrei\nvier\n<d>\nmehr\n")
    with pytest.raises(ValueError) as error:
        read_documents([english, german], ["en", "de"])
    message = str(error.value)
    assert f"{english} has 2, {german} has 3" in message
    assert f"{english}:2: 2 sentences in 'en', but 1 in 'de' ({german}:2)" in message
    assert f"{english}:5: a sentence without text" in message


def test_blank_sentences_are_accepted_from_a_system(tmp_path):
    path = write(tmp_path / "system.jsonl", '{"translation": ["a", ""]}\n')
    assert read_documents([path], ["translation"], blank_ok=True)[0]["translation"] == ["a", ""]


@pytest.mark.parametrize("suffix, opener", [("gz", gzip.open), ("xz", lzma.open)])
def test_an_archive_that_is_cut_off_or_none_is_no_shorter_corpus(tmp_path, suffix, opener):
    path, record = tmp_path / f"train.jsonl.{suffix}", json.dumps(RECORDS[0])
    write(path, f"{record}\n" * 100, opener)
    for content, message in ((path.read_bytes()[:-12], "broken archive"), (record.encode(), f"{suffix}:1: ")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_documents([str(path)], ["en", "de"])
