"""Documents of published collections, on samples in their own forms."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from modeling_gtransformer.corpora.corpus import read_documents
from train.studies.convert_documents import ConversionOptions, convert_documents


def link(src, tgt, score):
    return {"src": src, "tgt": tgt, "aligner-score": 0.7, "bicleaner-score": score, "bifixer-score": 0.9}


DOCHPLT = [
    {
        "src_doc_id": "1.xml", "tgt_doc_id": "7.xml", "lang_pair": "en-de",
        "src_doc": {"ids": ["1", "2", "3", "4"], "sentences": ["One.", "Two", "parts.", "Advertisement"]},
        "tgt_doc": {"ids": ["1", "2", "3"], "sentences": ["Eins.", "Zwei Teile.", "Drei."]},
        "alignment": [link(["1"], ["1"], 0.9), link(["2", "3"], ["2"], 0.8), link(["4"], [], 0.0)],
    },
    {
        "src_doc_id": "2.xml", "tgt_doc_id": "8.xml", "lang_pair": "en-de",
        "src_doc": {"ids": ["1", "2"], "sentences": ["Menu", "Home"]},
        "tgt_doc": {"ids": ["1", "2"], "sentences": ["Kontakt", "Hilfe"]},
        "alignment": [link(["1"], ["1"], 0.1), link(["2"], ["2"], 0.6)],
    },
]  # fmt: skip
PP = {"lp": "en-de_DE", "domain": "news", "is_bad_source": False, "original_target": "?"}
WMT24PP = [
    {**PP, "domain": "canary", "document_id": "canary", "segment_id": 0, "source": "Do not train.", "target": "Nein."},
    {**PP, "document_id": "a", "segment_id": 1, "source": "One.", "target": "Eins."},
    {**PP, "document_id": "a", "segment_id": 2, "source": "Bad", "target": "x", "is_bad_source": True},
    {**PP, "document_id": "a", "segment_id": 3, "source": "Three. ", "target": "Drei."},
    {**PP, "document_id": "b", "segment_id": 4, "source": "Four.", "target": "Vier."},
]
GENERAL = {"domain": "news", "src_lang": "en", "tgt_lang": "cs_CZ", "video": None, "screenshot": None}
WMT25 = [
    {**GENERAL, "doc_id": "a", "src_text": "One.\n\nTwo.", "refs": {"refA": {"ref": "Jedna.\n\nDvě."}}},
    {**GENERAL, "doc_id": "b", "src_text": "No reference.", "refs": {}},
    {**GENERAL, "doc_id": "c", "tgt_lang": "et_EE", "src_text": "One.", "refs": {"refA": {"ref": "Üks."}}},
]


@pytest.fixture
def convert(tmp_path):
    """Converts records in a file of the collection's kind, and returns the documents."""

    def convert(collection, records, source, target, output="documents.jsonl", **options):
        file = tmp_path / f"{collection}.{'parquet' if collection == 'dochplt' else 'jsonl'}"
        if collection == "dochplt":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), file)
        else:
            file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        convert_documents(ConversionOptions(collection, source, target, tmp_path / output, [str(file)], **options))
        return [each.record for each in read_documents([str(tmp_path / output)], [source, target])]

    return convert


def test_dochplt(convert):
    first = {"id": "1.xml", "en": ["One.", "Two parts."], "de": ["Eins.", "Zwei Teile."]}
    assert convert("dochplt", DOCHPLT, "en", "de", min_aligned=0.6) == [first]
    documents = convert("dochplt", DOCHPLT, "de", "en", "other.jsonl.xz", min_aligned=0.5)
    assert convert("dochplt", DOCHPLT, "de", "en", "other.jsonl.gz", min_aligned=0.5) == documents
    assert documents == [first, {"id": "2.xml", "de": ["Hilfe"], "en": ["Home"]}]


def test_wmt24(convert, capsys):
    documents = convert("wmt24pp", WMT24PP, "en", "de")
    assert [document["de"] for document in documents] == [["Eins.", "Drei."], ["Vier."]]
    assert capsys.readouterr().out.startswith("2 documents, 3 pairs in ")


def test_wmt25(convert):
    [document] = convert("wmt25", WMT25, "en", "cs_CZ")
    assert document == {"id": "a", "en": ["One.", "Two."], "cs_CZ": ["Jedna.", "Dvě."]}
    broken = [{**WMT25[0], "refs": {"refA": {"ref": "Jedna."}}}]
    with pytest.raises(ValueError, match="a has 2 segments, but 1 references"):
        convert("wmt25", broken, "en", "cs_CZ")
    with pytest.raises(ValueError, match="is not in the format of wmt24pp"):
        convert("wmt24pp", broken, "en", "cs_CZ")
