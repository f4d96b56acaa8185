"""Which mask each attention kind gets: a plan of the sentences where that is exact, elsewhere one of the document."""

import pytest
import torch
from tiny import ONLY_GLOBAL, ONLY_GROUP, PAD, TINY

from modeling_gtransformer import GTransformerConfig
from modeling_gtransformer.group_attention import TaggedTokens, group_mask, masks_by_kind
from modeling_gtransformer.sentence_attention import SentencePlan, plan_sentences


TAGS = torch.tensor([[1, 1, 2, 2], [1, 1, 1, 0]])
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
TOKENS = TaggedTokens.of(TAGS, MASK)


def config(implementation="sdpa", **types):
    made = GTransformerConfig(**(TINY | types))
    made._attn_implementation = implementation
    return made


def document_mask(config, may_skip):
    """What stands for the mask makers of Transformers: allowed to, they leave a mask out."""
    assert may_skip or config._attn_implementation in ("eager", "sdpa")  # others have no mask of queries and keys
    return None if may_skip else torch.zeros(2, 1, 4, 4)


def masks(config, attention_mask=MASK, queries=TOKENS, keys=TOKENS, **arguments):
    return masks_by_kind(config, "encoder", attention_mask, document_mask, queries, keys, **arguments)


def test_padding_has_no_sentence():
    assert TaggedTokens.of(torch.tensor([[1, 2, 2]]), torch.tensor([[0, 1, 1]])).tags.tolist() == [[0, 2, 2]]
    for mask in (None, torch.zeros(1, 1, 3, 3), {"group": None}):  # nothing that says which tokens are padding
        assert TaggedTokens.of(torch.tensor([[1, 2, 2]]), mask).real.all()


def test_last_tokens_of_a_side():
    last = TOKENS.last(2)
    assert last.tags.tolist() == [[2, 2], [1, 0]] and last.real.tolist() == [[True, True], [True, False]]


def test_queries_see_everything_of_a_source_without_sentences():
    keys = TaggedTokens.of(torch.tensor([[0, 0], [0, 1]]), None)
    assert TOKENS.open_to_all(keys).tags.tolist() == [[0] * 4, [1, 1, 1, 0]]


@pytest.mark.parametrize(
    "types, kinds",
    [({}, {"group", "global"}), (ONLY_GROUP, {"group"}), (ONLY_GLOBAL, {"global"})],
    ids=["combined", "group", "global"],
)
def test_only_the_kinds_that_the_layers_have(types, kinds):
    assert set(masks(config(**types))) == kinds


def test_global_attention_may_do_without_a_mask_and_group_attention_goes_by_sentence():
    made = masks(config())
    assert made["global"] is None and isinstance(made["group"], SentencePlan)


@pytest.mark.parametrize("implementation, by_sentence", [("eager", True), ("sdpa", False), ("flex_attention", False)])
def test_group_mask_of_the_document(implementation, by_sentence):
    made = masks(config(implementation), by_sentence=by_sentence)
    assert made["group"].equal(group_mask(torch.zeros(2, 1, 4, 4), TAGS, TAGS))
    assert made["group"][0, 0].eq(0).tolist() == [[True, True, False, False]] * 2 + [[False, False, True, True]] * 2


def test_scattered_tags_have_a_mask():
    scattered = TaggedTokens.of(torch.tensor([[1, 2, 1, 2]] * 2), None)
    assert masks(config(), queries=scattered, keys=scattered)["group"].shape == (2, 1, 4, 4)


def test_ready_masks_are_used_as_they_are():
    each = {"group": torch.zeros(2, 1, 4, 4), "global": torch.ones(2, 1, 4, 4)}
    assert masks(config(), attention_mask=each) is each
    both = masks(config(), attention_mask=each["group"])
    assert set(both) == {"group", "global"} and all(mask is each["group"] for mask in both.values())


@pytest.fixture
def plans(monkeypatch):
    """The plans that a model makes."""
    made = []
    monkeypatch.setattr(
        "modeling_gtransformer.group_attention.plan_sentences",
        lambda *args, **kwargs: made.append(plan_sentences(*args, **kwargs)) or made[-1],
    )
    return made


def test_ragged_training_batch_goes_by_sentence(tiny_model, plans):
    """Documents of unequal length must not cost more than those of equal length."""
    labels = torch.tensor([[5, 2, 0, 6, 2, 49], [7, 2, 49, -100, -100, -100]])
    source = torch.tensor([[0, 5, 2, 0, 6, 2], [0, 7, 2, 1, 1, 1]])
    tiny_model()(input_ids=source, attention_mask=source.ne(PAD), labels=labels)
    assert len(plans) == 3 and None not in plans


@pytest.mark.parametrize("outsider", [{"source": 48}, {"target": 49}, {}], ids=str)
def test_model_takes_the_path_wherever_it_is_exact(tiny_model, plans, outsider):
    """Padding is no reason to leave it; a real token outside of all sentences, which sees everything, is: then those
    attentions have no plan in which it asks."""
    model = tiny_model()
    source = torch.tensor([[outsider.get("source", PAD), 0, 5, 6, 2, 0, 7, 2], [0, 8, 9, 9, 2, 0, 8, 2]])
    target = torch.tensor([[outsider.get("target", 0), 0, 5, 2, 0, 6, 2], [0, 5, 2, 0, 6, 2, PAD]])
    target[0] = target[0] if outsider.get("target") else torch.tensor([0, 5, 2, 0, 6, 7, 2])
    inputs = {"input_ids": source, "attention_mask": source.ne(PAD), "labels": target}
    inputs["decoder_input_ids"] = target
    fast = model(**inputs).logits
    assert [plan is None for plan in plans] == ["source" in outsider, "target" in outsider, "target" in outsider]
    model.set_attn_implementation("eager")
    real = target != PAD
    torch.testing.assert_close(fast[real], model(**inputs).logits[real], rtol=1e-4, atol=1e-5)
