"""Masks and scores of the decoder of a batch."""

import torch
from tiny import BOS, END_OF_DOCUMENT, EOS, PAD

from modeling_gtransformer.framed_decoder import FramedDecoder, Sources
from modeling_gtransformer.sentence_template import SENTENCE_TEMPLATES
from modeling_gtransformer.target_sentences import GroupTagLogitsProcessor


IDS = {"bos": BOS, "eos": EOS, "pad": PAD, "tgt_lang": END_OF_DOCUMENT}
TEMPLATE = SENTENCE_TEMPLATES["paper"].in_ids(IDS.__getitem__)
NO_TOKENS = torch.tensor([], dtype=torch.long)


def test_scores_are_suppressed_then_framed(tiny_model):
    """Logits or log-probabilities, first without what never comes, then through the template."""
    model, templated = tiny_model(), []

    class Frame(GroupTagLogitsProcessor):
        def mask(self, scores, *before):
            templated.append(before)
            return scores + 1

    template = Frame(torch.ones(2, 1), min_length=1, max_length=9, template=TEMPLATE)
    decoder = FramedDecoder(model, template, torch.tensor([5, 7]), Sources(torch.zeros(2, 12, 16), None, None))
    states = torch.randn(3, 16)
    logits = model.output_logits(states)
    for normalize, expected in ((False, logits), (True, logits.log_softmax(-1))):
        expected = (expected + 1).index_fill(1, torch.tensor([5, 7]), -torch.inf)
        torch.testing.assert_close(decoder.scores(states, "before", normalize=normalize), expected)
    assert templated == [("before",)] * 2
