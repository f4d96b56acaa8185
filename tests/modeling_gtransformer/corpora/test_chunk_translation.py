"""Chunks of a corpus: checked before they are translated, and translated alike wherever it is done."""

import json
import pickle

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from json_lines import write_json_lines

from modeling_gtransformer.corpora.chunk_translation import Chunk, ChunkTranslator, examine, read_chunks
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.translation_options import CorpusOptions


RECORDS = [{"id": number, "source": [f"ba bu {number} ."]} for number in range(5)]
OPTIONS = CorpusOptions(num_beams=1)


@pytest.fixture
def corpus(tmp_path):
    return write_json_lines(tmp_path / "test.jsonl", RECORDS)


def test_what_is_examined(corpus, tmp_path):
    lines = examine(corpus, OPTIONS, overwrite=False)
    assert lines.documents == 5 and lines.schema is None
    parquet = str(tmp_path / "test.parquet")
    schema = pyarrow.schema({"id": pyarrow.int8(), "source": pyarrow.large_list(pyarrow.string())})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(RECORDS, schema=schema), parquet)
    table = examine(parquet, CorpusOptions(confidence=True), overwrite=False)
    assert table.schema.names == ["id", "source", "translation", "confidence", "segments"]
    assert table.schema.field("id").type == pyarrow.int8()
    texts = datasets.Dataset.from_dict({"translation": [["old"]], "label": [0], "source": ["ba .\nbu ."]})
    texts.cast_column("label", datasets.ClassLabel(names=["x", "y"])).to_parquet(parquet)
    assert datasets.Features.from_arrow_schema(examine(parquet, OPTIONS, overwrite=True).schema) == {
        "label": datasets.ClassLabel(names=["x", "y"]),
        "source": datasets.Value("string"),
        "translation": datasets.Value("string"),
        "segments": datasets.List(datasets.Value("int64")),
    }


@pytest.mark.parametrize(
    "record, options, problem",
    [
        ({"source": 5}, {}, "the column 'source' must hold a text or a list of sentences, not int"),
        ({"source": None}, {}, "not NoneType"),
        ({"source": {"a": 1}}, {}, "not dict"),
        ({"source": ["a", 5]}, {}, "not int in a list"),
        ({"source": [["a"]]}, {}, "not list in a list"),
        ({"a": 1}, {}, "no document in the column 'source'"),
        ({"source": "\ud800"}, {}, r"unpaired surrogate in the column 'source'"),
        ({"source": ["a."], "segments": [1]}, {}, "already has a field 'segments': --overwrite replaces it"),
        ({"source": "a."}, {"free": True}, "free translation needs a list of sentences, not a text"),
    ],
)
def test_what_cannot_be_translated_is_named(tmp_path, record, options, problem):
    corpus = write_json_lines(tmp_path / "test.jsonl", [{"source": ["a.", ""]}, record])
    with pytest.raises(ValueError, match=f"^1 problems in the corpus:\n  {corpus}:2: .*{problem}"):
        examine(corpus, CorpusOptions(**options), overwrite=False)


def test_only_wanted_chunks_are_given(corpus):
    options = CorpusOptions(chunk_documents=2)
    wanted = {Chunk(1, 0), Chunk(1, 2)}
    chunks = read_chunks(["none.jsonl", corpus], options, wanted)
    found = {chunk: [document.record["id"] for document in documents] for chunk, documents in chunks}
    assert found == {Chunk(1, 0): [0, 1], Chunk(1, 2): [4]}


def test_a_chunk_of_any_size(tmp_path):
    """Tables are read in batches of fewer rows."""
    table = str(tmp_path / "test.parquet")
    rows = {"id": range(150), "source": [[f"ba {number}"] for number in range(150)]}
    pyarrow.parquet.write_table(pyarrow.table(rows), table)
    [(_, documents), (_, rest)] = read_chunks([table], CorpusOptions(chunk_documents=140))
    assert [document.record["id"] for document in documents] == [*range(140)] and len(rest) == 10


def test_a_pickled_translator_translates_the_same(trained_model, corpus):
    translate = ChunkTranslator(Translator(str(trained_model), **OPTIONS.given), OPTIONS)
    documents = read_documents([corpus], ["source"])
    expected = translate(documents)
    assert [{name: each.record[name] for name in ("id", "source")} for each in expected] == RECORDS
    assert [*expected[0].record] == ["id", "source", "translation", "segments"]
    content = pickle.dumps((translate, documents))
    assert len(content) < 5000  # no weights
    other, documents = pickle.loads(content)
    assert other(documents) == expected and other.identity == translate.identity


@pytest.mark.parametrize("precision", [None, "int8"])
def test_its_identity_can_be_noted(trained_model, tmp_path, precision):
    (tmp_path / "terms.tsv").write_text("ba\tbu\n")
    options = CorpusOptions(glossary={"ba": "bu"})
    translate = ChunkTranslator(Translator(str(trained_model), precision=precision, **options.given), options)
    identity = translate.identity
    assert json.loads(json.dumps(identity)) == identity
    assert {"weights", "processor", "configuration", "free", "chunk_documents"} <= identity.keys()
