"""Chunks of a corpus: checked before they are translated, and translated alike wherever it is done."""

import json
import pickle

import pyarrow
import pyarrow.parquet
import pytest
from json_lines import write_json_lines

from modeling_gtransformer.corpora.chunk_translation import Chunk, ChunkTranslator, chunks_of, examine
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.translation_settings import TranslationSettings
from modeling_gtransformer.usage_error import UsageError


RECORDS = [{"id": number, "source": [f"ba bu {number} ."]} for number in range(5)]


@pytest.fixture
def corpus(tmp_path):
    return write_json_lines(tmp_path / "test.jsonl", RECORDS)


def test_what_is_examined(corpus, tmp_path):
    lines, table = (examine(corpus, "source", overwrite=False, as_table=as_table) for as_table in (False, True))
    assert lines.documents == table.documents == 5 and lines.hash == table.hash and lines.schema is None
    assert table.schema.field("id").type == pyarrow.int64()
    parquet = str(tmp_path / "test.parquet")
    schema = pyarrow.schema({"id": pyarrow.int8(), "source": pyarrow.large_list(pyarrow.string())})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(RECORDS, schema=schema), parquet)
    assert examine(parquet, "source", overwrite=False, as_table=True).schema == schema


def test_a_translation_is_overwritten_only_if_asked(tmp_path):
    corpus = write_json_lines(tmp_path / "test.jsonl", [{"source": ["a."], "segments": [1]}])
    with pytest.raises(UsageError, match="already has a field 'segments': --overwrite replaces it"):
        examine(corpus, "source", overwrite=False, as_table=False)
    assert examine(corpus, "source", overwrite=True, as_table=False).documents == 1


def test_only_wanted_chunks_are_given(corpus):
    settings = TranslationSettings(chunk_documents=2)
    wanted = {Chunk(3, 0), Chunk(3, 2), Chunk(2, 1)}
    found = {chunk: [d.record["id"] for d in documents] for chunk, documents in chunks_of(corpus, 3, settings, wanted)}
    assert found == {Chunk(3, 0): [0, 1], Chunk(3, 2): [4]}


def test_a_pickled_translator_translates_the_same(trained_model, corpus):
    translate = ChunkTranslator(str(trained_model), TranslationSettings(num_beams=1))
    assert [*translate.columns] == ["translation", "segments"]
    documents = read_documents([corpus], ["source"])
    expected = translate(documents)
    assert [{name: row[name] for name in ("id", "source")} for row in expected] == RECORDS
    content = pickle.dumps((translate, documents))
    assert len(content) < 5000  # no weights
    other, documents = pickle.loads(content)
    assert other(documents) == expected and other.identity() == translate.identity()


def test_its_identity_can_be_noted(trained_model):
    translate = ChunkTranslator(str(trained_model), TranslationSettings(align_sentences=False))
    identity = translate.identity()
    assert json.loads(json.dumps(identity)) == identity
    assert {"weights", "processor", "configuration", "align_sentences", "chunk_documents"} <= identity.keys()
    assert [*translate.columns] == ["translation", "segments", "translated_segments"]
