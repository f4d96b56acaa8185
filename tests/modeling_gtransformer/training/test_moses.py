"""Moses tokenization and truecasing, and the way back."""

import pytest

from modeling_gtransformer.training.moses import detokenizer, learn_truecasing


SENTENCES = ["The cat isn't here.", "So left the cat."]


def test_words_have_the_case_of_the_middle_of_a_sentence(tmp_path):
    prepare = learn_truecasing(SENTENCES, "en", tmp_path / "truecase.en")
    # "the" is known from there, "So" is not; a word that was never seen stays as it is.
    assert [prepare(s) for s in ("The cat.", "So it is.", "Dog!")] == ["the cat .", "So it is .", "Dog !"]
    assert "the (1/1)" in (tmp_path / "truecase.en").read_text()


@pytest.mark.parametrize("sentence", ["The cat isn't here.", 'So "this & that" (or not), at 3.5%!'])
def test_tokenized_and_back(tmp_path, sentence):
    prepare = learn_truecasing([sentence], "en", tmp_path / "truecase.en")
    assert detokenizer("en")(prepare(sentence)).lower() == sentence.lower()
