"""Word dropout hits words only and is a pure function of seed, epoch and segment."""

from types import SimpleNamespace

import torch
from datasets import Dataset

from modeling_gtransformer.training.collator import WordDropout


# <s> <pad> </s> <unk> are 0 to 3, words 4 to 99, [en] [de] <mask> 100 to 102.
PROCESSOR = SimpleNamespace(
    target_template=SimpleNamespace(start=0, eos_id=2),
    mask_token_id=102,
    structural_token_ids=[0, 1, 2, 100, 101, 102],
    tokenizer=SimpleNamespace(unk_token_id=3),
)
INSTANCES = [
    {"input_ids": torch.tensor([0, 3, *range(4, 90), 2]), "labels": torch.tensor([3, *range(10, 60), 2, 101])},
    {
        "input_ids": torch.tensor([0, *range(4, 60), 2, 0, 5, 2]),
        "labels": torch.tensor([9, 2, 0, *range(9, 70), 2, 101]),
    },
]


def noisy(item, **kwargs):
    segments = Dataset.from_list(INSTANCES).with_format("torch")
    return WordDropout(segments, PROCESSOR, **{"probability": 0.3, "epochs": None, "seed": 7, **kwargs})[item]


def test_only_words_of_both_inputs_are_masked_and_labels_stay_clean():
    for epoch in range(20):
        for index, clean in enumerate(INSTANCES):
            item = noisy(len(INSTANCES) * epoch + index)
            target_input = torch.cat([torch.tensor([0]), clean["labels"][:-1]])
            assert item["labels"].equal(clean["labels"])
            for noise, ids in ((item["input_ids"], clean["input_ids"]), (item["decoder_input_ids"], target_input)):
                changed = noise != ids
                assert (noise[changed] == 102).all() and ((ids[changed] > 3) & (ids[changed] < 100)).all()
                assert 0 < changed.sum() < 0.7 * len(ids)


def test_noise_is_a_function_of_seed_epoch_and_instance():
    assert noisy(3)["input_ids"].equal(noisy(3)["input_ids"])
    # Another epoch, another seed, the other side: other noise.
    assert not noisy(3)["input_ids"].equal(noisy(5)["input_ids"])
    assert not noisy(3)["input_ids"].equal(noisy(3, seed=8)["input_ids"])


def test_noise_ends_after_its_epochs():
    assert (noisy(3, epochs=2)["input_ids"] == 102).any()
    assert "decoder_input_ids" not in noisy(4, epochs=2) and noisy(4, epochs=2)["input_ids"].equal(
        INSTANCES[0]["input_ids"]
    )
    assert "decoder_input_ids" not in noisy(0, probability=0.0)


def test_both_sides_have_noise_of_their_own():
    """Also where they are the same: a copy would show the decoder what the source hides."""
    words = torch.tensor([0, *range(4, 100), 2])
    segments = Dataset.from_list([{"input_ids": words, "labels": [*words[1:].tolist(), 101]}]).with_format("torch")
    item = WordDropout(segments, PROCESSOR, 0.3, epochs=None, seed=7)[0]
    source, target = (item[name] == 102 for name in ("input_ids", "decoder_input_ids"))
    assert 15 < source.sum() < 45 and 15 < target.sum() < 45
    assert (source & target).sum() < 0.6 * source.sum()


def test_coword_dropout_hits_the_source_of_every_third_sentence_in_all_epochs():
    segment = {"input_ids": [0, *range(4, 100), 2] * 7, "labels": [*range(4, 100), 2, 101]}
    segments = Dataset.from_list([segment]).with_format("torch")
    hit = []
    for epoch in range(20):
        item = WordDropout(segments, PROCESSOR, 0.3, epochs=0, seed=7, coword_probability=0.3)[epoch]
        assert "decoder_input_ids" not in item
        shares = (item["input_ids"].view(7, -1) == 102).float().mean(1)
        assert ((shares == 0) | ((shares > 0.1) & (shares < 0.5))).all()
        hit.append(tuple(shares.nonzero().flatten().tolist()))
    assert {*hit} == {(0, 3, 6), (1, 4), (2, 5)}


def test_coword_dropout_comes_on_top_of_word_dropout():
    both, words = noisy(0, coword_probability=1.0), noisy(0)
    assert both["decoder_input_ids"].equal(words["decoder_input_ids"])
    chosen = [
        (noisy(item, coword_probability=1.0)["input_ids"] == 102).float().mean() > 0.9 for item in range(0, 40, 2)
    ]
    assert 0 < sum(chosen) < 20
    masked = words["input_ids"] == 102
    assert masked.any() and (both["input_ids"][masked] == 102).all()
