"""Gains from context: of the same tokens in every context, positive where it decides a word, zero where unseen."""

import json
import random

import pytest
import torch
from json_lines import write_json_lines
from tiny import ONLY_GROUP

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.evaluation.context import (
    CONTEXTS,
    ContextOptions,
    SentencePair,
    context_gains,
    encode_corpus,
    evaluate_context,
    in_context,
    token_log_probabilities,
    token_words,
)
from modeling_gtransformer.training.invented_language import InventedLanguagePair


TEMPLATE = 2


def documents_of(*sizes):
    return [
        [SentencePair(d, n, [5 + d] * (1 + n % 3), [9] * (1 + n % 2)) for n in range(size)]
        for d, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("context", ["document", *CONTEXTS])
def test_every_sentence_is_there_once_in_segments_that_fit(context):
    documents = documents_of(7, 3, 5, 1)
    segments = in_context(context, documents, 14, TEMPLATE, seed=1)
    pairs = [pair for segment in segments for pair in segment]
    assert sorted(map(id, pairs)) == sorted(id(pair) for document in documents for pair in document)
    for segment in segments:
        assert sum(max(len(p.source), len(p.target)) + TEMPLATE for p in segment) < 14
    assert segments == in_context(context, documents, 14, TEMPLATE, seed=1)


def test_what_the_contexts_are():
    documents = documents_of(6, 6, 6)
    whole, shuffled, other, alone = (
        in_context(context, documents, 99, TEMPLATE, seed=1) for context in ("document", *CONTEXTS)
    )
    assert whole == documents and all(len(segment) == 1 for segment in alone)
    assert [set(segment) for segment in shuffled] == [set(segment) for segment in documents] and shuffled != whole
    assert [sorted(pair.document for pair in segment) for segment in other] == [[0, 1, 2]] * 6
    pairs = documents_of(*[2] * 20, 1)
    orders = in_context("shuffled", pairs, 99, TEMPLATE, seed=1)
    assert orders == [pair[::-1] for pair in pairs]  # another order there is, even of two
    # The true length of the input is kept, where there are documents enough.
    many = in_context("other", documents_of(*[2] * 10, *[3] * 4), 99, TEMPLATE, seed=1)
    assert sorted(map(len, many))[-14:] == [2] * 10 + [3] * 4
    with pytest.raises(ValueError, match="omit the context 'other'"):
        in_context("other", documents[:1], 99, TEMPLATE, seed=1)


def test_tokens_are_those_of_the_reference(translation_model, processor):
    """Words and `</s>`, wherever the sentence stands."""
    model = translation_model()
    sources, targets = [["the cat", "it is old", "sleeps"]], [["die katze", "sie ist", "schläft alt"]]
    documents = encode_corpus(processor, sources, targets)
    found = token_log_probabilities(model, processor, documents)
    inputs = processor(sources[0], targets[0], return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits.log_softmax(-1).gather(2, inputs["labels"][..., None])[0, :, 0].tolist()
    for number, words in enumerate(processor.encode_sentences(targets[0], is_target=True)):
        assert found[0, number] == pytest.approx(expected[: len(words) + 1], abs=1e-5)
        expected = expected[len(words) + 2 :]  # the <s> of the next sentence is given
    with pytest.raises(ValueError, match=r"^Document 1 .* has 12 tokens, the model 9 positions: use less"):
        token_log_probabilities(translation_model(max_position_embeddings=9), processor, documents)
    by_sentence = translation_model(max_position_embeddings=9, position_scope="sentence")
    assert token_log_probabilities(by_sentence, processor, documents).keys() == found.keys()
    by_sentence.config.max_position_embeddings = 4
    with pytest.raises(ValueError, match=r"has a sentence of 5 tokens, the model 4 positions: split it"):
        token_log_probabilities(by_sentence, processor, documents)


def test_without_context_there_is_no_gain(translation_model, processor):
    """Sentences that see only themselves, with positions that count from their beginning."""
    model = translation_model(**ONLY_GROUP, position_scope="sentence")
    sides = (
        [["the cat", "it is old", "sleeps"], ["the old cat", "it"]],
        [["die katze", "sie ist", "alt"], ["ist", "alt"]],
    )
    documents = encode_corpus(processor, *sides)
    scores = {
        context: token_log_probabilities(model, processor, in_context(context, documents, 64, TEMPLATE, seed=1))
        for context in ("document", *CONTEXTS)
    }
    for gains in context_gains(documents, scores, {}).values():
        assert gains["all"]["gain"] == pytest.approx(0, abs=1e-5)


def test_gain_in_bits_per_token():
    documents = [[SentencePair(0, 0, [1], [1, 2], ["a", "b"])], [SentencePair(1, 0, [1], [3], ["b"])]]
    ln2 = 0.6931471805599453
    scores = {
        "document": {(0, 0): [-1 * ln2, -1 * ln2, 0.0], (1, 0): [-2 * ln2, 0.0]},
        "none": {(0, 0): [-2 * ln2, -4 * ln2, 0.0], (1, 0): [-3 * ln2, -1 * ln2]},
    }
    gains = context_gains(documents, scores, {"b": ["b"], "absent": ["c"]})["none"]
    assert set(gains) == {"all", "b"}
    assert gains["all"]["gain"] == pytest.approx((1 + 3 + 1 + 1) / 5)
    assert gains["b"]["gain"] == pytest.approx((3 + 1) / 2)
    assert gains["b"]["documents"] == gains["b"]["tokens"] == 2
    # By bootstrap either document may stand alone.
    assert gains["b"]["interval"] == pytest.approx([1, 3])


def test_tokens_know_their_words(trained_model):
    processor = GTransformerProcessor.from_pretrained(trained_model)
    language = InventedLanguagePair(seed=1)
    text = language.document(random.Random(1))["target"][1]
    [ids] = processor.encode_sentences([text], is_target=True)
    words = token_words(processor, text, ids)
    assert [word for place, word in enumerate(words) if word and word != words[place - 1]] == text.split()
    # One with the name of a structural token is tokenized in pieces.
    [ids] = processor.encode_sentences([f"{text} </s>"], is_target=True)
    assert set(token_words(processor, f"{text} </s>", ids)) == {""}


def test_contexts_are_compared_by_the_same_draws(caplog):
    """The same gains have the same interval, whichever context comes first."""
    documents = [[SentencePair(d, 0, [5], [6, 7])] for d in range(12)]
    scores = {(d, 0): [-float(d), -1.0, -2.0] for d in range(12)}
    worse = {place: [each - place[0] % 5 for each in values] for place, values in scores.items()}
    gains = context_gains(documents, {"document": scores, "none": worse, "other": worse}, {})
    assert gains["none"] == gains["other"] and gains["none"]["all"]["interval"][0] > 0


RECORDS = [
    {"en": ["ba bu .", "ka ri .", "to ."], "de": ["da gu .", "zo .", "ba du ."]},
    {"en": ["re .", "la lo ."], "de": ["zo .", "vi ."]},
]


@pytest.fixture
def evaluate(tmp_path):
    """Runs the command."""
    corpus = write_json_lines(tmp_path / "test.jsonl", RECORDS)

    def evaluate(model, contexts=("other", "none"), **options):
        columns = {"source_column": "en", "target_column": "de"}
        return evaluate_context(ContextOptions(str(model), [corpus], contexts=[*contexts], **columns, **options))

    return evaluate


def test_gains_of_a_corpus(evaluate, trained_model, tmp_path, capsys):
    report = tmp_path / "scores" / "context.json"
    results = evaluate(trained_model, words=["it=zo,vi"], json=report)
    assert list(results["gains"]) == ["other", "none"] and "worth" not in results
    assert results["sentences"] == {"document": 2.5, "other": 5 / 3, "none": 1.0}
    assert set(results["gains"]["none"]) == {"all", "it"}
    content = json.loads(report.read_text())
    assert content["gains"] == results["gains"] and content["corpus"] == ["test.jsonl"]
    assert content["command"].startswith(f"gtransformer evaluate context {trained_model} ")
    printed = capsys.readouterr().out
    gain = results["gains"]["none"]["it"]
    assert f"than none      it           {gain['gain']:+8.4f}" in printed and "of 2 documents" in printed
    one_by_one = evaluate(trained_model, words=["it=zo,vi"], max_tokens=1)
    for context, classes in results["gains"].items():
        assert one_by_one["gains"][context]["it"]["gain"] == pytest.approx(classes["it"]["gain"], abs=1e-4)


def test_worth_is_the_gain_over_the_twin(evaluate, trained_model, tmp_path, capsys):
    model = GTransformerForConditionalGeneration.from_pretrained(trained_model)
    processor = GTransformerProcessor.from_pretrained(trained_model)
    twin = GTransformerForConditionalGeneration.from_pretrained(trained_model, **ONLY_GROUP)
    for part in (twin, processor):
        part.save_pretrained(tmp_path / "group")
    # A twin with global attention reads single sentences: the worth over itself is the gain over no context.
    results = evaluate(trained_model, twin=str(trained_model))
    assert results["worth"] == results["gains"]["none"]
    assert "than its twin" in capsys.readouterr().out
    # One that never sees another sentence reads documents, and its worth is the difference of the losses.
    worth = evaluate(trained_model, twin=str(tmp_path / "group"))["worth"]["all"]
    sides = [[record[side] for record in RECORDS] for side in ("en", "de")]
    documents = encode_corpus(processor, *sides)
    ours, theirs = (token_log_probabilities(each.eval(), processor, documents) for each in (model, twin))
    bits = [sum(map(sum, scores.values())) / worth["tokens"] / 0.6931471805599453 for scores in (ours, theirs)]
    assert worth["gain"] == pytest.approx(bits[0] - bits[1], abs=1e-5)
    assert worth["interval"][0] <= worth["gain"] <= worth["interval"][1]


def test_a_twin_has_the_same_tokens(evaluate, trained_model, sentence_level_checkpoint):
    with pytest.raises(ValueError, match=r"is not a twin of .*: it tokenizes"):
        evaluate(trained_model, twin=str(sentence_level_checkpoint("marian")))


def test_the_seed_draws_the_contexts(evaluate, trained_model):
    first, again, second = (evaluate(trained_model, ["shuffled"], seed=seed)["gains"] for seed in (1, 1, 4))
    assert first == again and first["shuffled"]["all"]["gain"] != second["shuffled"]["all"]["gain"]


def test_a_sentence_level_translator_gains_nothing(evaluate, sentence_level_checkpoint):
    """It is scored as it translates, every sentence alone, and not with global attention that was never trained."""
    gains = evaluate(sentence_level_checkpoint("marian"), ["none"])["gains"]
    assert gains["none"]["all"]["gain"] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": ["formality", "verbs"]}, "neither one of formality, pronouns nor a class"),
        ({"words": ["all=er"]}, "all is the name of several classes"),
        ({"words": ["it=er", "it=sie"]}, "it is the name of several classes"),
        ({"contexts": ["none", "random"]}, "contexts must be among shuffled, other, none, not random"),
    ],
)
def test_unknown_words_and_contexts_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ContextOptions("model", ["test.jsonl"], **options)
