"""The paper's preprocessing there and back; sentences and further fields stay where they are."""

import pytest
from json_lines import read_json_lines, write_json_lines

from train.studies.moses import DetokenizeOptions, TokenizeOptions, detokenize, tokenize


TRAIN = [
    {
        "id": 1,
        "en": ["The cat isn't here.", "So left the cat."],
        "de": ["Die Katze ist weg.", "„Sie“ ging, die Katze."],
    }
]
TEST = [
    {
        "id": 2,
        "en": ['The dog & The "cat".', 'So "it & that" (or not) isn\'t, at 3.5%!', "Dog!"],
        "de": ["Die „Katze“ (alt) ist weg.", "Ja.", "Hund!"],
    }
]


@pytest.fixture
def files(tmp_path):
    for name, documents in (("train", TRAIN), ("test", TEST)):
        write_json_lines(tmp_path / f"{name}.jsonl", documents)
    tokenize(TokenizeOptions(tmp_path / "moses", [str(tmp_path / f"{name}.jsonl") for name in ("train", "test")]))
    return tmp_path


def test_tokenized_and_truecased(files):
    [train], [test] = read_json_lines(files / "moses" / "train.jsonl"), read_json_lines(files / "moses" / "test.jsonl")
    # "cat" and "the" are known in lower case from the middle of a sentence; "Dog", which was never seen, stays.
    assert train["en"] == ["the cat isn &apos;t here .", "So left the cat ."] and train["id"] == 1
    assert test["en"][::2] == ["the dog &amp; the &quot; cat &quot; .", "Dog !"] and test["id"] == 2
    assert "the (1/1)" in (files / "moses" / "truecase.en").read_text()
    assert test["de"][0].endswith("ist weg .")


def test_detokenized(files):
    for column, other in (("de", "en"), ("en", "de")):
        options = DetokenizeOptions(str(files / "moses" / "test.jsonl"), files / "back.jsonl", column, column)
        detokenize(options)
        [back] = read_json_lines(files / "back.jsonl")
        assert " ".join(back[column]).lower() == " ".join(TEST[0][column]).lower()
        assert back[other] == read_json_lines(files / "moses" / "test.jsonl")[0][other]


def test_an_input_is_not_overwritten(files):
    before = (files / "train.jsonl").read_text()
    with pytest.raises(ValueError, match=r"train.jsonl would overwrite an input"):
        tokenize(TokenizeOptions(files, [str(files / "train.jsonl")]))
    with pytest.raises(ValueError, match="would overwrite an input"):
        detokenize(DetokenizeOptions(str(files / "train.jsonl"), files / "train.jsonl", "de"))
    assert (files / "train.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a.txt"], r"files: a\.txt must be named"),
        (["a/train.jsonl", "b/train.jsonl.xz"], "would overwrite each other"),
        ([], "either files or paper_corpus"),
    ],
)
def test_only_json_lines(given, message):
    with pytest.raises(ValueError, match=message):
        TokenizeOptions("out", given)


def test_a_corpus_of_the_paper(news_corpus, tmp_path):
    tokenize(TokenizeOptions(tmp_path, paper_corpus="news"))
    first, *_ = read_json_lines(tmp_path / "dev.jsonl")
    assert first["en"] == ["dev en one .", "two ."]
