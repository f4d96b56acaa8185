"""What a sentence sees while it is decoded beside others."""

from types import SimpleNamespace

import pytest
import torch
from tiny import BOS, END_OF_DOCUMENT, EOS, PAD

from modeling_gtransformer.configuration_gtransformer import SENTENCE_FRAMES
from modeling_gtransformer.decoding_batch import DecodingBatch, FramedDecoder, OpenSentence, Sources
from modeling_gtransformer.target_sentences import GroupTagLogitsProcessor


IDS = {"bos": BOS, "eos": EOS, "pad": PAD, "tgt_lang": END_OF_DOCUMENT}
FRAME = SENTENCE_FRAMES["paper"].in_ids(IDS.__getitem__)
NO_TOKENS = torch.tensor([], dtype=torch.long)


class Recorder:
    """Stands for the decoder over the sources: keeps what it is asked, and scores every token alike."""

    device = torch.device("cpu")
    model = SimpleNamespace(config=SimpleNamespace(position_scope="document"))
    frame = FRAME
    # Two sentences of two tokens and one of padding; one sentence of four tokens.
    source_tags = torch.tensor([[1, 1, 2, 2, 0], [1, 1, 1, 1, 0]])
    source_mask = (source_tags > 0).long()

    def __init__(self):
        self.steps, self.calls, self.before = 0, [], []

    def masks(self, seen):
        return seen

    def sources(self, rows):
        return Sources(None, self.source_mask[rows], self.source_tags[rows])

    def states(self, sources, ids, mask, positions, cache, source_mask, **arguments):
        self.calls.append(SimpleNamespace(ids=ids, positions=positions, source=source_mask, **mask, **arguments))
        return torch.zeros(*ids.shape, 1)

    def scores(self, hidden_states, *before):
        self.before.append(before)
        return torch.zeros(len(hidden_states), 9)


def cache_of(length):
    return SimpleNamespace(get_seq_length=lambda: length)


def seen(mask):
    """For every sentence of the first document the places that it sees."""
    return [row.nonzero()[:, 0].tolist() for row in mask[0]]


@pytest.fixture
def decoder():
    return Recorder()


def batch_of(decoder, drafting=False):
    """Of the document `<s> 5 </s> <s> 6`, both sentences go on; of the other one, the only one, from its `<s>`."""
    first, second = OpenSentence(1, 0, [BOS, 5], 1), OpenSentence(2, 3, [BOS, 6, 7], 5)
    return DecodingBatch(
        decoder, cache_of(6), [0, 1], [[first, second], [OpenSentence(1, 0, [BOS], 0)]], drafting=drafting
    )


def test_sentences_see_their_document_as_it_stands_and_what_they_write(decoder):
    batch = batch_of(decoder)
    assert batch.tokens.tolist() == [[5, 7], [BOS, PAD]]
    batch.step(batch.tokens, batch.real)
    batch.step(torch.tensor([[8, 8], [8, PAD]]), batch.real)
    first, second = decoder.calls
    # Six places of the document; behind them, in the order of decoding, what the two sentences have written.
    assert seen(first.group) == [[0, 6], [3, 4, 7]]
    assert getattr(first, "global")[0, 1].nonzero()[:, 0].tolist() == [0, 1, 2, 3, 4, 7]
    assert seen(second.group) == [[0, 6, 8], [3, 4, 7, 9]]
    assert seen(getattr(second, "global")) == [[0, 6, 8], [0, 1, 2, 3, 4, 7, 9]]
    assert decoder.steps == 2


def test_drafts_see_what_the_sentences_before_them_write(decoder):
    batch = batch_of(decoder, drafting=True)
    for _ in range(2):
        batch.step(batch.tokens, alive=batch.real)
    call = decoder.calls[-1]
    assert seen(call.group) == [[0, 6, 8], [3, 4, 7, 9]]
    assert seen(getattr(call, "global")) == [[0, 6, 8], [0, 1, 2, 3, 4, 6, 7, 8, 9]]


def test_a_sentence_that_has_ended_is_not_seen_any_more(decoder):
    batch = batch_of(decoder, drafting=True)
    batch.step(torch.tensor([[EOS, 7], [BOS, PAD]]), alive=batch.real)
    batch.step(torch.tensor([[PAD, 8], [8, PAD]]), alive=torch.tensor([[False, True], [True, False]]))
    assert seen(getattr(decoder.calls[-1], "global"))[1] == [0, 1, 2, 3, 4, 6, 7, 9]


def test_positions_and_sources_are_those_of_each_sentence(decoder):
    batch = batch_of(decoder)
    batch.step(batch.tokens, batch.real)
    batch.step(batch.tokens, batch.real)
    first, second = decoder.calls
    assert first.positions.tolist() == [[1, 5], [0, 0]] and second.positions.tolist() == [[2, 6], [1, 1]]
    assert first.decoder_group_tags.tolist() == [[1, 2], [1, 1]]
    assert seen(first.source["group"]) == [[0, 1], [2, 3]]
    assert seen(first.source["global"]) == [[0, 1, 2, 3]]
    # The frame is told document, sentence, words, length and last token of each.
    rows, numbers, words, lengths, last = (field.tolist() for field in decoder.before[0])
    assert (rows, numbers, words) == ([0, 0, 1, 1], [1, 2, 1, 1], [1, 2, 0, 0])
    assert (lengths, last) == ([2, 6, 1, 1], [5, 7, BOS, PAD])


def test_old_rests_are_padded_with_no_token(decoder):
    sentences = [[OpenSentence(1, 0, [BOS], 0, [7, EOS]), OpenSentence(2, 3, [BOS], 3)]]
    assert DecodingBatch(decoder, cache_of(5), [0], sentences).old_rest.tolist() == [[[7, EOS], [-1, -1]]]


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_masks_of_a_framed_decoder(tiny_model, implementation):
    model = tiny_model()
    model.set_attn_implementation(implementation)
    frame = GroupTagLogitsProcessor(torch.ones(2, 1), min_length=1, max_length=9, frame=FRAME)
    decoder = FramedDecoder(model, frame, NO_TOKENS, Sources(torch.zeros(2, 12, 16), None, None))
    group = torch.tensor([[[True, False]]])
    masks = decoder.masks({"group": group, "global": ~group})
    if implementation == "sdpa":
        assert masks["group"].tolist() == [[[[True, False]]]] and masks["global"].tolist() == [[[[False, True]]]]
    else:
        least = torch.finfo(torch.float32).min
        assert masks["group"].tolist() == [[[[0, least]]]] and masks["global"].tolist() == [[[[least, 0]]]]


def test_scores_are_suppressed_then_framed(tiny_model):
    """Logits or log-probabilities, first without what never comes, then through the frame."""
    model, framed = tiny_model(), []

    class Frame(GroupTagLogitsProcessor):
        def mask(self, scores, *before):
            framed.append(before)
            return scores + 1

    frame = Frame(torch.ones(2, 1), min_length=1, max_length=9, frame=FRAME)
    decoder = FramedDecoder(model, frame, torch.tensor([5, 7]), Sources(torch.zeros(2, 12, 16), None, None))
    states = torch.randn(3, 16)
    logits = model.output_logits(states)
    for normalize, expected in ((False, logits), (True, logits.log_softmax(-1))):
        expected = (expected + 1).index_fill(1, torch.tensor([5, 7]), -torch.inf)
        torch.testing.assert_close(decoder.scores(states, "before", normalize=normalize), expected)
    assert framed == [("before",)] * 2
