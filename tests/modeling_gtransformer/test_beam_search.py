"""The beam search of single sentences against that of Transformers."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, EOS, PAD, random_documents, seeded_model

from modeling_gtransformer import ParallelDocumentsOutput
from modeling_gtransformer.beam_search import BeamSearch


@settings(max_examples=20)
@given(
    words=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    kind=st.sampled_from(ATTENTION_KINDS),
    num_beams=st.integers(2, 4),
    length_penalty=st.sampled_from([0.0, 1.0, 2.0]),
    early_stopping=st.booleans(),
    prefix_length=st.integers(1, 3),
    end_bias=st.sampled_from([0.0, 3.0]),
)
def test_beams_of_one_sentence_are_those_of_the_document(
    words, kind, num_beams, length_penalty, early_stopping, prefix_length, end_bias
):
    model = seeded_model(**kind, init_std=0.25)
    model.final_logits_bias[0, EOS] = end_bias  # without it hardly a hypothesis ends before its limit
    arguments = {"num_beams": num_beams, "length_penalty": length_penalty, "early_stopping": early_stopping}
    arguments |= random_documents([[length] for length in words])
    arguments |= {"max_length_b": 4, "decoder_input_ids": torch.tensor([[0, 5, 6][:prefix_length]] * len(words))}
    outputs = model.generate(**arguments, parallel_sentences=True, return_dict_in_generate=True)
    assert isinstance(outputs, ParallelDocumentsOutput)
    assert outputs.sequences.equal(model.generate(**arguments))


def test_fewer_hypotheses_than_beams(tiny_model):
    arguments = {"num_beams": 5, "length_penalty": 2.0, "max_length_b": 0, "suppress_tokens": [*range(5, 49)]}
    arguments |= {**random_documents([[2]]), "decoder_input_ids": torch.tensor([[0, 5]])}
    model = tiny_model()
    assert model.generate(**arguments, parallel_sentences=True).equal(model.generate(**arguments))


def test_length_penalty_decides_between_short_and_long():
    model = seeded_model(init_std=0.25)
    model.final_logits_bias[0, EOS] = 3.0
    torch.manual_seed(0)
    arguments = {**random_documents([[3], [5], [2]]), "num_beams": 3, "max_length_b": 4}
    arguments["decoder_input_ids"] = torch.tensor([[0, 5]] * 3)
    lengths = []
    for length_penalty in (0.0, 1.0, 3.0):
        outputs = model.generate(**arguments, length_penalty=length_penalty, parallel_sentences=True)
        assert outputs.equal(model.generate(**arguments, length_penalty=length_penalty))
        lengths.append(outputs.ne(PAD).sum().item())
    assert lengths[0] < lengths[1] < lengths[2]


WORDS, CLOSER = range(4, 8), 2


class ScriptedBatch:
    """A batch of one sentence whose next words have given log-probabilities, by what has been written.

    Args:
        script: by the words so far, log-probabilities of the tokens that follow; of all others -50.

    Attributes:
        steps: how many tokens of each beam were read.
    """

    def __init__(self, num_beams, **script):
        self.longest = 10
        self.tokens = torch.zeros(1, num_beams).long()
        self.script, self.written, self.steps = script, [""] * num_beams, 0

    def step(self, tokens, normalize):
        self.steps += 1
        self.written = [
            before + ("" if token == 0 else chr(ord("a") + token - WORDS.start) if token in WORDS else ".")
            for before, token in zip(self.written, tokens[0].tolist(), strict=True)
        ]
        scores = torch.full((1, len(self.written), WORDS.stop), -50.0)
        for beam, words in enumerate(self.written):
            for token, score in self.script.get(words or "start", {}).items():
                scores[0, beam, CLOSER if token == "end" else WORDS.start + ord(token) - ord("a")] = score
        return scores

    def ends(self, chosen, parents):
        return chosen == CLOSER

    def follow(self, parents):
        self.written = [self.written[parent] for parent in parents[0].tolist()]

    def keep(self, rest):
        assert not len(rest)


def search(num_beams, length_penalty, early_stopping, **script):
    """The words of the best hypothesis under a script, and the steps that it took to find it."""
    batch = ScriptedBatch(num_beams, **script)
    [ids] = BeamSearch(batch, length_penalty, early_stopping).run()
    assert ids[-1] == CLOSER
    return "".join(chr(ord("a") + token - WORDS.start) for token in ids[:-1]), batch.steps


def best(num_beams, length_penalty, **script):
    """The words of the best hypothesis under a script."""
    return search(num_beams, length_penalty, False, **script)[0]


def test_the_length_counts_the_tokens_that_are_written():
    """-1.0 over one token against -1.9 over two; over two and three tokens it would be the other way round."""
    assert best(2, 1.0, start={"end": -1.0, "a": -1.1}, a={"end": -0.8}) == "a"
    assert best(2, 1.0, start={"end": -1.0, "a": -1.1}, a={"end": -1.0}) == ""


def test_a_search_ends_when_no_running_hypothesis_is_better():
    """As in Transformers the length so far decides that, even though longer ones would have become better."""
    script = {"start": {"end": -1.0, "a": -1.1}, "a": {"end": -1.2, "a": -1.3}, "aa": {"end": -0.01}}
    assert best(2, 1.0, **script) == ""
    assert best(2, 1.0, **script | {"a": {"end": -1.2, "a": -1.1}}) == "aa"


def test_only_hypotheses_among_the_best_are_finished():
    """An end that comes after as many better words as there are beams is none."""
    assert best(2, 1.0, start={"a": -1.0, "b": -1.1, "end": -1.2}, a={"end": -3.0}, b={"end": -3.1}) == "a"
    assert best(2, 1.0, start={"a": -1.0, "end": -1.1, "b": -1.2}, a={"end": -3.0}, b={"end": -3.1}) == ""


def test_early_stopping_ends_with_as_many_hypotheses_as_beams():
    """Though the one that is still running would have become the best."""
    script = {"start": {"end": -1.0, "a": -1.1}, "a": {"end": -0.1, "a": -0.2}, "aa": {"end": -0.01}}
    assert best(2, 1.0, **script) == "aa"
    assert search(2, 1.0, True, **script) == ("a", 2)
