"""The command writes a corpus in an invented language, and a tokenizer for it."""

from json_lines import read_json_lines
from transformers import AutoTokenizer

from modeling_gtransformer.training.invented_language import LANGUAGES
from train.studies.invented_language import LanguageOptions, invent_language


def test_corpus_and_tokenizer(tmp_path, capsys):
    sizes = {"train": 5, "valid": 2, "test": 1, "sentences": 3}
    invent_language(LanguageOptions(tmp_path / "corpus", **sizes, seed=4))
    parts = {name: read_json_lines(tmp_path / "corpus" / f"{name}.jsonl") for name in ("train", "valid", "test")}
    assert {name: len(documents) for name, documents in parts.items()} == {"train": 5, "valid": 2, "test": 1}
    documents = [document for part in parts.values() for document in part]
    assert {len(document[side]) for document in documents for side in ("source", "target")} == {3}
    # No part repeats the documents of another one.
    assert len({tuple(document["source"]) for document in documents}) == 8

    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "corpus" / "tokenizer")
    assert set(LANGUAGES) <= set(tokenizer.get_vocab())
    sentence = parts["train"][0]["target"][0]
    ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == sentence and tokenizer.unk_token_id not in ids
    assert f"8 documents and a tokenizer of {len(tokenizer)} tokens" in capsys.readouterr().out

    invent_language(LanguageOptions(tmp_path / "again", **sizes, seed=4))
    assert read_json_lines(tmp_path / "again" / "train.jsonl") == parts["train"]
