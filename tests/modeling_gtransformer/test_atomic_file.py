"""Outputs appear as a whole or not at all, and nothing is written through a link."""

import os
import stat

import pytest

from modeling_gtransformer.runtime import atomic_file as module
from modeling_gtransformer.runtime.atomic_file import atomic_file, atomic_folder, check_outputs, write_atomic


def test_a_file_appears_at_the_end(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with atomic_file(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half" and [*path.parent.iterdir()] == [path]
    umask = os.umask(0o022)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask  # as of any new file


def test_an_error_leaves_what_was_there_and_nothing_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), atomic_file(path) as file:
        file.write(b"after")
        raise KeyboardInterrupt
    assert path.read_text() == "before" and [*tmp_path.iterdir()] == [path]


def test_outputs_that_cannot_be_written_are_named_before_the_work(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "a.txt").touch()
    corpus, file = str(tmp_path / "corpus"), str(tmp_path / "a.txt")
    check_outputs([tmp_path / "new" / "b.txt", None], [corpus, file])
    for output, message in {
        tmp_path / "corpus": "is a folder: pass a file",
        tmp_path / "a.txt" / "b.txt": r"a.txt is not a folder\.",
    }.items():
        with pytest.raises(ValueError, match=message):
            check_outputs([output])
    for output in (tmp_path / "a.txt", tmp_path / "corpus" / "b.txt"):
        with pytest.raises(ValueError, match="would overwrite an input: choose another output"):
            check_outputs([output], [corpus, file])


def test_a_folder_appears_at_the_end_if_it_was_made(tmp_path):
    path = tmp_path / "new" / "checkpoint"
    with atomic_folder(path) as folder:
        pass
    assert not path.exists()
    with atomic_folder(path) as folder:
        folder.mkdir()
        (folder / "a.txt").write_text("all of it")
        assert not path.exists()
    assert (path / "a.txt").read_text() == "all of it" and [*path.parent.iterdir()] == [path]


def test_a_folder_is_put_where_a_link_points(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_folder(tmp_path / "link") as folder:
        folder.mkdir()
        (folder / "a.txt").touch()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "a.txt").exists()


def test_a_folder_that_is_not_empty_is_refused_before_anything_is_done(tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "a.txt"):
        with pytest.raises(FileExistsError, match="is not an empty folder: choose another one"), atomic_folder(path):
            pytest.fail("It has begun.")
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "b") as folder:
        folder.mkdir()
        raise KeyboardInterrupt
    assert [*tmp_path.iterdir()] == [tmp_path / "a.txt"]


def test_no_link_is_followed(tmp_path, monkeypatch):
    """A link in the place of the output is replaced; one in the place of the temporary file is refused."""
    (tmp_path / "victim").write_text("mine")
    path = tmp_path / "a.txt"
    path.symlink_to(tmp_path / "victim")
    write_atomic(path, "new")
    assert path.read_text() == "new" and not path.is_symlink()
    monkeypatch.setattr(module.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".guessed.partial").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        write_atomic(path, "newer")
    assert (tmp_path / "victim").read_text() == "mine" and path.read_text() == "new"


def test_a_file_takes_its_place_when_all_of_it_is_written(tmp_path, monkeypatch):
    """What does not fit the disk may fail only when the file is closed."""
    path, replace, found = tmp_path / "a.txt", os.replace, []

    def look(source, target):
        found.append(source.read_bytes())
        replace(source, target)

    monkeypatch.setattr(module.os, "replace", look)
    with atomic_file(path) as file:
        file.write(b"all of it")  # less than a buffer
    assert found == [b"all of it"] == [path.read_bytes()]
