"""The template of target documents: every token that may follow, by what is before it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import BOS, END_OF_DOCUMENT, EOS, PAD, TINY, words_per_sentence
from transformers import GenerationConfig
from transformers.generation import (
    LogitsProcessorList,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SuppressTokensLogitsProcessor,
)

from modeling_gtransformer import GTransformerConfig
from modeling_gtransformer.sentence_template import TargetTemplate
from modeling_gtransformer.target_sentences import GroupTagLogitsProcessor, plan_lengths, spare_sentence_ends


def test_forced_tokens_score_zero_and_free_ones_keep_their_score(tiny_model, documents):
    model = tiny_model()
    output = model.generate(**documents, num_beams=3, return_dict_in_generate=True, output_scores=True)
    for row, score in zip(output.sequences, output.sequences_scores, strict=True):
        real = row[row != PAD]
        index = int((output.sequences == row).all(1).nonzero()[0])
        source = {name: tensor[index : index + 1] for name, tensor in documents.items()}
        log_p = model(**source, decoder_input_ids=real[None, :-1]).logits.log_softmax(-1)[0]
        free = [
            log_p[position, token].item()
            for position, token in enumerate(real[1:])
            if token not in (BOS, END_OF_DOCUMENT) and not (token == EOS and at_limit(real, position))
        ]
        assert sum(free) / (len(real) - 1) == pytest.approx(score.item(), abs=1e-4)


def at_limit(row, position):
    """Whether the sentence at `position` has used up its words: 13 at most for 2 to 3 source words."""
    start = int((row[: position + 1] == BOS).nonzero()[-1])
    sentence = int((row[: position + 1] == BOS).sum()) - 1
    three = int((row == BOS).sum()) == 3
    return position - start == int(([2, 1, 3] if three else [2])[sentence] * 1.2 + 10)


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=5), min_size=1, max_size=4), st.integers(0, 30))
def test_frame_of_any_documents(limits, spare):
    """Uniform scores, any word limits, any room: every row becomes a document of as many sentences, then padding."""
    groups = max(map(len, limits))
    most = max(sum(row) + 2 * len(row) for row in limits) + 1
    max_length = min(most, max(3 * len(row) for row in limits) + 1 + spare)
    padded = torch.tensor([row + [0] * (groups - len(row)) for row in limits])
    target = TargetTemplate(BOS, (BOS,), EOS, PAD, END_OF_DOCUMENT)
    template = GroupTagLogitsProcessor(padded, 1, max_length, target)
    ids = torch.full((2 * len(limits), 1), BOS)
    while ids.shape[1] < max_length:
        scores = template(ids, torch.zeros(len(ids), 50))
        assert ((scores == 0) | (scores == -torch.inf)).all()
        ids = torch.cat([ids, scores.exp().multinomial(1)], dim=1)
    for row, expected in zip(ids, [row for row in limits for _ in range(2)], strict=True):
        counts = words_per_sentence(row)
        assert len(counts) == len(expected)
        assert all(1 <= count <= limit for count, limit in zip(counts, expected, strict=True))


@pytest.mark.parametrize(
    ("template", "prompt", "opened", "shortest"),
    [
        ("paper", [BOS], 1, len("<w><w>E")),
        ("paper", [BOS, 5, 6], 1, len("<www><w>E")),
        ("paper", [BOS, 5, EOS], 1, len("<w>w><w>E")),
        ("paper", [BOS, 5, EOS, BOS], 2, len("<w><w>E")),
        ("mbart50", [EOS], 1, len(">Lw>Lw>")),
        ("mbart50", [EOS, 4, 5, EOS], 1, len(">Lw>w>Lw>")),
        ("mbart", [4], 1, len("Lw>Lw>")),
        ("marian", [PAD], 1, len("Pw>w>")),
        ("marian", [PAD, 5, EOS], 1, len("Pw>w>w>")),
    ],
)
def test_what_a_prompt_leaves_for_two_sentences(template, prompt, opened, shortest):
    """The sentence that a prompt has opened last may still take a word, even if it is closed."""
    config = GTransformerConfig(**TINY, sentence_template=template)
    ids = {"bos": BOS, "pad": PAD, "eos": EOS, "tgt_lang": 4, "decoder_start": PAD}
    settings = GenerationConfig(max_length_a=2, max_length_b=1, min_length=1)
    lengths = [len(config.template.source_prefix) + words + 1 + len(config.template.source_suffix) for words in (0, 3)]
    tags = torch.tensor([[number for number, length in enumerate(lengths, 1) for _ in range(length)]])
    plan = plan_lengths(settings, tags, torch.tensor([prompt]), config, config.template.in_ids(ids.get), False)
    assert (plan.opened.item(), plan.min_tokens, plan.token_limits.tolist()) == (opened, shortest, [[1, 7]])


def test_one_sentence_may_fill_all_positions():
    config = GTransformerConfig(**TINY, position_scope="document")
    settings = GenerationConfig(max_length_a=0, max_length_b=500, min_length=1)
    template = TargetTemplate(BOS, (BOS,), EOS, PAD, END_OF_DOCUMENT)
    plan = plan_lengths(settings, torch.ones(1, 3, dtype=torch.long), None, config, template, False)
    expected = len("<w>E"), TINY["max_position_embeddings"], 500
    assert (plan.min_tokens, plan.budget, plan.token_limits.item()) == expected


def test_padding_follows_the_end_of_a_document():
    for end in (END_OF_DOCUMENT, None):
        processor = GroupTagLogitsProcessor(torch.tensor([[2]]), 1, 20, TargetTemplate(BOS, (BOS,), EOS, PAD, end))
        ids = torch.tensor([[BOS, 5, EOS]])
        for expected in (PAD if end is None else end, PAD, PAD):
            chosen = processor(ids, torch.zeros(1, 50)).argmax()
            assert chosen == expected
            ids = torch.cat([ids, chosen.view(1, 1)], dim=1)


def test_a_source_sentence_may_have_one_token(tiny_model):
    outputs = tiny_model().generate(torch.tensor([[5, 6, 7]]), group_tags=torch.tensor([[1, 2, 2]]), max_length_b=2)
    assert len(words_per_sentence(outputs[0])) == 2


def test_sentences_may_end_alike():
    """`</s>` is not what comes again too soon, and keeps the score that it had."""
    plain = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(2.0), NoRepeatNGramLogitsProcessor(2)])
    prefix, scores = torch.tensor([[5, EOS, BOS, 5]]), torch.full((1, 8), -1.0)
    banned = plain(prefix, scores.clone())
    assert banned[0, EOS] == -torch.inf and banned[0, 5] == -2
    config = GenerationConfig(repetition_penalty=2.0, no_repeat_ngram_size=2, encoder_no_repeat_ngram_size=3)
    sparing = LogitsProcessorList(spare_sentence_ends(config, [], None, EOS))
    spared = sparing(prefix, scores.clone())
    assert spared[0, EOS] == -1 and spared[0, 5] == -2
    # What needs the source is left to Transformers, which warns that it has none.
    assert (config.repetition_penalty, config.no_repeat_ngram_size, config.encoder_no_repeat_ngram_size) == (1.0, 0, 3)
    assert spare_sentence_ends(GenerationConfig(), [], prefix, EOS) == []
    of_source = spare_sentence_ends(GenerationConfig(encoder_no_repeat_ngram_size=1), [], prefix, EOS)
    expected = [-torch.inf, -1, -1, -1, -1, -torch.inf, -1, -1]
    assert LogitsProcessorList(of_source)(prefix, scores)[0].tolist() == expected
    assert LogitsProcessorList(spare_sentence_ends(GenerationConfig(), plain, None, EOS))(prefix, scores)[0, EOS] == -1
    # Others, and those that come after these, may change it.
    for before in ([], plain):
        suppressing = [*before, SuppressTokensLogitsProcessor([EOS])]
        processors = LogitsProcessorList(spare_sentence_ends(GenerationConfig(), suppressing, None, EOS))
        assert processors(prefix, scores)[0, EOS] == -torch.inf
