"""A dataset with its card loads as it is described."""

import datasets
import pytest
from json_lines import write_json_lines
from repository import ROOT

from hub_cards import dataset_card


def test_dataset_card(tmp_path):
    train = [
        {"id": i, "source": ["one two", "three"][: 1 + i % 2], "target": ["a", "b c d"][: 1 + i % 2]} for i in range(4)
    ]
    files = {"train": train, "validation": train[:1]}
    paths = {split: write_json_lines(tmp_path / f"{split}.jsonl", records) for split, records in files.items()}
    splits = [word for split, path in paths.items() for word in (f"--{split}", path)]
    dataset_card.main([str(tmp_path / "corpus"), "--columns", "source", "target", *splits, "--license", "mit"])
    loaded = datasets.load_dataset(str(tmp_path / "corpus"), cache_dir=str(tmp_path / "cache"))
    columns = [{"source": record["source"], "target": record["target"]} for record in train]
    assert loaded["train"].to_list() == columns and loaded["validation"].to_list() == columns[:1]
    text = (tmp_path / "corpus" / "README.md").read_text()
    # Documents, sentences, words on both sides, and the spread of the sentences per document.
    assert "| train | 4 | 6 | 10 | 10 | 1, 2, 2 |" in text and "| validation | 1 | 1 | 2 | 1 | 1, 1, 1 |" in text
    # The names of these columns are no languages.
    assert "license: mit" in text and "language:" not in text


def test_the_corpus_itself_is_not_overwritten(tmp_path):
    path = write_json_lines(tmp_path / "train.jsonl", [{"id": 1, "de": ["a"], "en": ["b"]}])
    with pytest.raises(ValueError, match=r"train.jsonl would take the place of an input: choose another output"):
        dataset_card.main([str(tmp_path), "--columns", "en", "de", "--train", path])
    with pytest.raises(ValueError, match=r"train.jsonl would take the place of an input: choose another output"):
        dataset_card.main([str(tmp_path), "--columns", "en", "de", "--train", str(tmp_path)])
    assert '"id"' in (tmp_path / "train.jsonl").read_text()


def test_the_dataset_is_uploaded(hub, run, tmp_path):
    path = write_json_lines(tmp_path / "train.jsonl", [{"de": ["a"], "en": ["b"]}])
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "notes.txt").write_text("mine")
    arguments = ["corpus", "--columns", "en", "de", "--train", path, "--repository", "someone/corpus", "--push"]
    run(f"from hub_cards.dataset_card import main; main({[*arguments, '--private']!r})", PYTHONPATH=str(ROOT))
    repository = hub.repositories["someone/corpus"]
    assert (repository.type, repository.private) == ("dataset", True)
    # Only what the command wrote.
    assert set(repository.files) == {"README.md", "train.jsonl"} and len(repository.commits) == 1


def test_splits_of_others_are_not_replaced(tmp_path):
    path = write_json_lines(tmp_path / "train.jsonl", [{"de": ["a"], "en": ["b"]}])
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.jsonl").write_text("precious")
    with pytest.raises(ValueError, match=r"train\.jsonl exists and would be replaced"):
        dataset_card.main([str(tmp_path / "corpus"), "--columns", "en", "de", "--train", path])
