"""The folder of a translation: each chunk there once, and nothing of another job."""

import json
import os
import pickle

import pytest

from modeling_gtransformer.corpora.chunk_translation import Chunk, FileContent
from modeling_gtransformer.corpora.corpus_files import files_of
from modeling_gtransformer.corpora.translated_chunks import TranslatedChunks
from modeling_gtransformer.runtime.usage_error import UsageError


CORPUS = [FileContent("a.jsonl", "1", 5, None), FileContent("b.jsonl", "2", 2, None)]


@pytest.fixture(params=["{}/out", "file://{}/out"])
def chunks(request, tmp_path):
    """Three chunks of one file and one of another, in a folder by its path and by a URI."""
    chunks = TranslatedChunks(request.param.format(tmp_path), CORPUS, size=2)
    chunks.begin({"model": "x"})
    return chunks


def test_what_is_there_is_not_left(chunks, tmp_path):
    assert chunks.left() == [*chunks] == [Chunk(0, 0), Chunk(0, 1), Chunk(0, 2), Chunk(1, 0)]
    chunks.write(Chunk(0, 1), [{"id": 1}, {"id": 2}])
    chunks = pickle.loads(pickle.dumps(chunks))
    chunks.begin({"model": "x"})
    assert chunks.left() == [Chunk(0, 0), Chunk(0, 2), Chunk(1, 0)]
    assert chunks.has(Chunk(0, 1)) and not chunks.has(Chunk(0, 0))
    assert (tmp_path / "out" / "00000-00000001.jsonl").read_text() == '{"id": 1}\n{"id": 2}\n'


def test_a_folder_of_something_else_is_refused(tmp_path):
    for name in ("thesis.txt", ".env"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(UsageError, match="contains other files"):
            TranslatedChunks(str(tmp_path), CORPUS, 2).begin({})
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


def test_a_folder_that_was_only_made_is_begun_again(chunks, tmp_path):
    """Killed before there was a manifest."""
    (tmp_path / "out" / ".manifest.json").unlink()
    (tmp_path / "out" / ".0123456789abcdef.partial").write_text("")
    chunks.begin({"model": "y"})
    assert json.loads((tmp_path / "out" / ".manifest.json").read_text())["model"] == "y"


def test_an_unfinished_translation_is_no_corpus(chunks, tmp_path):
    chunks.write(Chunk(0, 0), [{"id": 1}])
    with pytest.raises(ValueError, match="the translation in this folder is unfinished"):
        files_of(chunks.folder)
    for chunk in chunks.left():
        chunks.write(chunk, [{"id": 1}])
    chunks.finish(["1", "2"])
    assert files_of(chunks.folder) == [chunks.path(chunk) for chunk in chunks]


def test_the_order_of_names_is_that_of_the_chunks(tmp_path):
    chunks = TranslatedChunks(str(tmp_path), [FileContent("a.jsonl", "1", 10**6 + 1, None)], 1)
    paths = [chunks.path(Chunk(0, number)) for number in (99_999, 100_000, 100_001, 10**6)]
    assert sorted(paths) == paths


def test_it_is_finished_when_all_is_there_and_nothing_has_changed(chunks, tmp_path):
    with pytest.raises(ValueError, match=r"4 chunks are missing, such as .*/00000-00000000\.jsonl: run"):
        chunks.finish(["1", "2"])
    for chunk in chunks.left():
        chunks.write(chunk, [{"chunk": chunk}])
    (tmp_path / "out" / ".0123456789abcdef.partial").write_text("of a writer that was killed")
    with pytest.raises(ValueError, match=r"b\.jsonl changed during the translation"):
        chunks.finish(["1", "3"])
    chunks.finish(["1", "2"])
    assert len(list((tmp_path / "out").iterdir())) == 5


def test_a_file_appears_as_a_whole(chunks, tmp_path, monkeypatch):
    """A record that cannot be written leaves nothing, and a link is replaced, not followed."""
    with pytest.raises(TypeError):
        chunks.write(Chunk(0, 0), [{"id": b"x"}])
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "out" / "00000-00000001.jsonl").symlink_to(tmp_path / "victim")
    chunks.write(Chunk(0, 1), [{"id": 1}])
    assert (tmp_path / "victim").read_text() == "mine"
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [".manifest.json", ".unfinished", "00000-00000001.jsonl"]
    assert json.loads((tmp_path / "out" / ".manifest.json").read_text())["model"] == "x"


def test_a_file_is_on_the_disk_before_it_has_its_name(chunks, tmp_path, monkeypatch):
    """After a power failure it would be there, and empty."""
    sizes, name = [], "00000-00000001.jsonl"

    def bring_to_disk(file):
        assert name not in os.listdir(tmp_path / "out")
        sizes.append(os.fstat(file).st_size)

    monkeypatch.setattr("os.fsync", bring_to_disk)
    chunks.write(Chunk(0, 1), [{"id": 1}])
    assert sizes == [(tmp_path / "out" / name).stat().st_size]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError], ids=["interrupted", "in the way"])
def test_a_file_that_cannot_have_its_name_leaves_nothing(chunks, tmp_path, monkeypatch, error):
    def interrupt(file):
        raise KeyboardInterrupt

    names = [".manifest.json", ".unfinished"]
    if error is KeyboardInterrupt:
        monkeypatch.setattr("os.fsync", interrupt)
    else:
        names.append("00000-00000001.jsonl")
        (tmp_path / "out" / names[-1] / "in the way").mkdir(parents=True)
    with pytest.raises(error):
        chunks.write(Chunk(0, 1), [{"id": 1}])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
