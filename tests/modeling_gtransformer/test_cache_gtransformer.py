"""The cache of generation against no cache at all, the reference."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, BOS, END_OF_DOCUMENT, EOS, ONLY_GROUP, PAD, random_documents, seeded_model
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.generation import LogitsProcessorList, NoRepeatNGramLogitsProcessor

from modeling_gtransformer.cache_gtransformer import CACHE_NAME, CACHE_NAMES, DROPS_AFTER, GROWTH, DocumentCache
from modeling_gtransformer.group_tags import group_tags


SEARCHES = [{}, {"num_beams": 3}, {"do_sample": True}, {"num_beams": 2, "do_sample": True, "num_return_sequences": 2}]


@pytest.fixture(scope="module")
def models():
    made = []
    for number, kind in enumerate(ATTENTION_KINDS):
        model = seeded_model(**kind, init_std=0.25)
        model.set_attn_implementation(["sdpa", "eager"][number % 2])
        made.append(model)
    return made


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=5), min_size=1, max_size=3),
    st.sampled_from(range(len(ATTENTION_KINDS))),
    st.sampled_from(SEARCHES),
    st.integers(1, 6),
)
def test_any_documents_models_and_searches(models, lengths, kind, search, prefix_length):
    torch.manual_seed(0)
    inputs = random_documents(lengths)
    arguments = {**inputs, **search, "max_length_b": 2}
    results = []
    for use_cache in (False, True):
        torch.manual_seed(1)
        results.append(models[kind].generate(**arguments, use_cache=use_cache))
    assert results[0].equal(results[1])
    prefix = results[0][:: search.get("num_return_sequences", 1), :prefix_length]
    if not (prefix == END_OF_DOCUMENT).any():
        arguments |= {"decoder_input_ids": prefix, "do_sample": False, "num_return_sequences": 1}
        outputs = [models[kind].generate(**arguments, use_cache=use_cache) for use_cache in (False, True)]
        assert outputs[0].equal(outputs[1])


CALLS = {
    "sampling": {"do_sample": True},
    "several": {"do_sample": True, "num_return_sequences": 2},
    "repetition_penalty": {"repetition_penalty": 1.5},
    "no_repeat_ngram": {"no_repeat_ngram_size": 2},
    "max_time": {"max_time": 600.0},
    "beams_with_scores": {"num_beams": 2, "return_dict_in_generate": True, "output_scores": True},
    "free": {"align_sentences": False, "max_new_tokens": 12},
    "dynamic": {"cache_implementation": "dynamic"},
    "prompt_lookup": {"prompt_lookup_num_tokens": 3},
    "decay": {"do_sample": True, "exponential_decay_length_penalty": (3, 1.5)},
    "own_processor": {"logits_processor": LogitsProcessorList([NoRepeatNGramLogitsProcessor(1)])},
    "banned_end": {"do_sample": True, "bad_words_ids": [[EOS], [5]]},
}
FRAMES = [{}, {"sentence_template": "marian", "decoder_start_token_id": PAD}]
NEED_A_CACHE = ("cache_implementation", "prompt_lookup_num_tokens")


@pytest.mark.parametrize("arguments", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("template", FRAMES, ids=["paper", "marian"])
def test_searches_of_transformers_with_and_without_a_cache(tiny_model, arguments, template):
    """Whatever a release calls the cache, and with as many sentences as the source has."""
    model = tiny_model(init_std=0.25, **template)
    uncached = {name: value for name, value in arguments.items() if name not in NEED_A_CACHE}
    outputs = []
    for call in ({**uncached, "use_cache": False}, arguments):
        torch.manual_seed(0)
        found = model.generate(**random_documents([[4, 3]]), max_length_b=2, **call)
        outputs.append(found if isinstance(found, torch.Tensor) else found.sequences)
    assert outputs[0].equal(outputs[1])
    assert "align_sentences" in arguments or {(row == EOS).sum().item() for row in outputs[1]} == {2}


@pytest.mark.parametrize("name", CACHE_NAMES)
def test_forward_takes_the_cache_by_both_names(tiny_model, name):
    model, inputs = tiny_model(init_std=0.25), random_documents([[4, 3]])
    target = torch.tensor([[BOS, 5, 6, EOS, BOS, 7]])
    expected = model(**inputs, decoder_input_ids=target).logits[:, -2:]
    first = model(**inputs, decoder_input_ids=target[:, :4], use_cache=True)
    cache = {name: first[CACHE_NAME]}
    torch.testing.assert_close(model(**inputs, decoder_input_ids=target[:, 4:], **cache).logits, expected)
    with pytest.raises(ValueError, match="pass one of them"):
        model(**inputs, decoder_input_ids=target[:, 4:], **dict.fromkeys(CACHE_NAMES, cache[name]))


@pytest.fixture
def caches(monkeypatch):
    """The caches that generate() makes."""
    made = []

    def make(*args):
        made.append(DocumentCache(*args))
        return made[-1]

    for module in ("generation_gtransformer", "decoding"):
        monkeypatch.setattr(f"modeling_gtransformer.{module}.DocumentCache", make)
    return made


def test_group_layers_keep_a_sentence_and_global_layers_the_document(tiny_model, caches):
    model = tiny_model(decoder_global_layers=1, cross_global_layers=1)
    length = model.generate(**random_documents([[3] * 8]), max_length_b=2, parallel_sentences=False).shape[1]
    (cache,) = caches
    assert length > 30
    group, document = cache.targets["group"], cache.targets["global"]
    assert group.layers.keys() == {0, 1} and document.layers.keys() == {1}
    assert group.seen.shape[2] <= int(3 * 1.2 + 2) + 2 + DROPS_AFTER < document.seen.shape[2] == length - 1
    assert cache.step.index.shape == (1, 5)


class Copies(TorchDispatchMode):
    """Records how many positions of the source are picked, and whether keys and values are copied from row to row."""

    def __init__(self):
        super().__init__()
        self.picked, self.moves = [], False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.index_select.default:
            self.moves |= args[0].dim() == 4
            if args[0].dim() == 3:
                self.picked.append(len(args[2]))
        return function(*args, **(kwargs or {}))


def test_searches_of_transformers_use_one_cache(tiny_model, documents, caches):
    tiny_model().generate(**documents, do_sample=True)
    assert len(caches) == 1


def test_beams_share_their_source_and_what_they_have_in_common(tiny_model, caches):
    """Else a beam over a long document would mostly copy it."""
    inputs = {**random_documents([[2, 30]]), "max_length_a": 1.0, "max_length_b": 0, "num_beams": 3}
    prefix = torch.tensor([[BOS, 5, 5, EOS, BOS, *[6] * 25]])
    with Copies() as copies:
        tiny_model().generate(**inputs, decoder_input_ids=prefix)
    (cache,) = caches
    assert {len(keys) for (_, kind), (keys, _) in cache.sources.items() if kind == "global"} == {1}
    assert {len(keys) for tokens in cache.targets.values() for keys, _ in tokens.layers.values()} == {1}
    assert not copies.moves


@pytest.mark.parametrize("kind", ["group", "global"])
def test_beams_see_what_they_have_written_and_the_rest_is_dropped(kind):
    """Three beams of two documents, of which one leaves; a beam takes the place of another in most steps. Each starts
    a sentence now and then, of which group attention sees the last."""
    torch.manual_seed(0)
    steps, written, source_tags = 80, [[] for _ in range(6)], torch.ones(6, 3).long()
    cache, tags = DocumentCache(2, 3), torch.ones(6, 1).long()
    for length in range(1, steps):
        if length == steps // 2:
            cache.keep(torch.tensor([1]))
            written, tags = written[3:], tags[3:]
        rows = len(written)
        tags = tags + (torch.rand(rows, 1) < 0.1) * (length > 1)
        cache.start(tags, 1, source_tags)
        keys = torch.randn(rows, 1, 1, 2) if length > 1 else torch.ones(rows, 1, 1, 2)
        shared = cache.target(0, kind, keys, -keys)
        new = zip(tags[:, 0].tolist(), keys, strict=True)
        written = [[*row, token] for row, token in zip(written, new, strict=True)]
        if length == 1:  # rows begin alike
            continue
        for row, seen in enumerate(cache.targets[kind].seen.flatten(0, 1)):
            own = [key for tag, key in written[row] if kind == "global" or tag == tags[row]]
            expected = torch.cat(own, dim=1)[0]
            assert shared[0][row // 3, 0, seen].equal(expected) and shared[1][row // 3, 0, seen].equal(-expected)
        parents = torch.randint(3, (rows // 3, 3)) if length % 4 else torch.arange(3).expand(rows // 3, 3)
        parents = (parents + torch.arange(0, rows, 3)[:, None]).flatten()
        cache.reorder_cache(parents)
        written, tags = [written[parent] for parent in parents.tolist()], tags[parents]
    assert shared[0].shape[2] < 2 * steps


def test_what_ends_a_document_sees_itself_alone():
    """Else a document that has ended would keep all others waiting for ever longer sums."""
    cache, keys = DocumentCache(1, 1), torch.randn(3 * DROPS_AFTER, 1, 1, 1, 2)
    for length, key in enumerate(keys):
        cache.start(torch.full((1, 1), length == 0).long(), 1, torch.ones(1, 3).long())
        seen = cache.target(0, "group", key, key)
    assert cache.targets["group"].seen.sum() == 1 and seen[0].shape[2] <= DROPS_AFTER + 1


def test_only_searches_that_move_to_other_source_sentences_pick_them_anew():
    """Two searches of two beams over two sentences of two tokens: the beams of one stay together."""
    torch.manual_seed(0)
    cache, states = DocumentCache(2, 2), torch.randn(4, 4, 8)
    tags = torch.tensor([[1, 1, 1, 2], [1, 1, 1, 2], [1, 1, 2, 2], [1, 1, 1, 2]])
    keys = states[::2].view(2, 4, 2, 4).transpose(1, 2)
    with Copies() as copies:
        for length in (1, 2, 3, 4):
            cache.start(tags[:, :length], 1, torch.tensor([[1, 1, 2, 2]] * 4))
            picked, _ = cache.source(0, "group", lambda _: (keys, -keys), states)
            for row, tag in enumerate(tags[:, length - 1]) if length > 1 else ():
                seen = picked[row // 2, :, cache.step.mask[row // 2, row % 2]]
                assert seen.equal(keys[row // 2, :, 2 * tag - 2 : 2 * tag])
    # Keys and values: of both searches at the first two steps, as one needs both sentences, then of those that move.
    assert copies.picked == [4, 4, 8, 8, 8, 8]


def test_a_full_buffer_over_the_document_grows_by_half():
    torch.manual_seed(0)
    cache, tags, sizes = DocumentCache(1, 1), torch.ones(1, 400).long(), []
    states = torch.randn(2, 1, 2, 400, 4)
    for length in range(1, 401):
        cache.start(tags[:, :length], 1, tags[:, :3])
        visible = cache.target(0, "global", *states[:, :, :, length - 1 : length])
        sizes.append(cache.targets["global"].layers[0][0].shape[2])
    assert visible[0].equal(states[0]) and visible[1].equal(states[1])
    sizes = sorted({*sizes})
    # A buffer is full until the next token comes.
    assert sizes[1:] == [full + 1 + max(GROWTH, (full + 1) // 2) for full in sizes[:-1]] and len(sizes) > 3


@pytest.mark.parametrize("use_cache", [False, True])
def test_tags_of_padding_count_for_nothing(tiny_model, use_cache):
    """Whoever gives tags may have given padding those of a sentence."""
    model, inputs = tiny_model(init_std=0.25), random_documents([[4, 3, 4], [2, 2]])
    tags = group_tags(inputs["input_ids"], BOS, EOS)
    expected = model.generate(**inputs, group_tags=tags)
    for tag in (1, 2):
        given_tags = tags.masked_fill(inputs["attention_mask"] == 0, tag)
        assert model.generate(**inputs, group_tags=given_tags, use_cache=use_cache).equal(expected)


ODD = {
    "a row without sentences": {"input_ids": torch.tensor([[0, 5, 6, 2, 1], [5, 6, 7, 2, 48]])},
    "a hole in the mask": {"attention_mask": torch.tensor([[1, 1, 0, 1, 1]] * 2)},
    "scattered tags": {"group_tags": torch.tensor([[1, 2, 1, 2, 2]] * 2)},
    "weights over the document": {"output_attentions": True, "return_dict_in_generate": True},
    "another cache": {"cache_implementation": "static"},
    "going back": {"prompt_lookup_num_tokens": 2, "input_ids": torch.tensor([[0, 5, 6, 7, 2]])},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_left_to_others_where_it_would_not_be_exact(tiny_model, caches, odd):
    model = tiny_model()
    inputs = {"input_ids": torch.tensor([[0, 5, 6, 7, 2]] * 2), "max_new_tokens": 9} | odd
    outputs = [model.generate(**inputs, use_cache=True)]
    assert not caches
    if not odd.keys() & {"cache_implementation", "prompt_lookup_num_tokens"}:
        outputs.append(model.generate(**inputs, use_cache=False))
        sequences = [getattr(output, "sequences", output) for output in outputs]
        assert sequences[0].equal(sequences[1])


def test_prefix_whose_open_sentence_is_too_long(tiny_model):
    model = tiny_model()
    inputs = {**random_documents([[2, 2]]), "max_length_a": 1.0, "max_length_b": 0}
    inputs["decoder_input_ids"] = torch.tensor([[0, 5, 6, 7, 8, 9]])
    outputs = [model.generate(**inputs, use_cache=use_cache) for use_cache in (True, False)]
    assert outputs[0].equal(outputs[1]) and outputs[0][0, 6] == EOS


def test_returned_cache_can_be_continued(tiny_model, documents):
    model = tiny_model()
    first = model.generate(**documents, max_new_tokens=10, return_dict_in_generate=True, num_beams=1)
    again = model.generate(**documents, decoder_input_ids=first.sequences[:, :4])
    document = {name: tensor[:1] for name, tensor in documents.items()}
    start = model.generate(**document, max_new_tokens=6, return_dict_in_generate=True)
    rest = model.generate(**document, decoder_input_ids=start.sequences, past_key_values=start.past_key_values)
    assert rest.equal(model.generate(**document)) and again.shape[0] == 2


def test_rows_that_change_places_take_their_sentences_along(tiny_model, documents):
    """As in a beam search of one's own."""
    model = tiny_model()
    prefix = torch.tensor([[BOS, 5, 2, BOS, 7], [BOS, 8, 9, 6, 5]])
    source = model.get_encoder()(**{name: tensor[:1].repeat(2, 1) for name, tensor in documents.items()})
    for change, rows in (
        (lambda cache: cache.reorder_cache(torch.tensor([1, 0])), [1, 0]),
        (lambda cache: cache.batch_select_indices(torch.tensor([1])), [1]),
        (lambda cache: cache.batch_repeat_interleave(2), [0, 0, 1, 1]),
        (lambda cache: cache.crop(-1), [0, 1]),
    ):
        cache = model(encoder_outputs=source, decoder_input_ids=prefix, use_cache=True).past_key_values
        change(cache)
        given = prefix[rows, : cache.get_seq_length()]
        new = torch.full((len(rows), 1), 2)
        states = {"encoder_outputs": (source[0][rows], source.group_tags[rows])}
        expected = model(**states, decoder_input_ids=torch.cat([given, new], dim=1)).logits[:, -1:]
        actual = model(**states, decoder_input_ids=new, past_key_values=cache, use_cache=True).logits
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("template", FRAMES, ids=["paper", "marian"])
def test_samples_of_single_sentences_end_independently(tiny_model, template):
    """A sample that has ended leaves the source to the others of its document."""
    model = tiny_model(init_std=0.25, **ONLY_GROUP, **template)
    arguments = {**random_documents([[3], [4]]), "do_sample": True, "num_return_sequences": 3, "max_length_b": 6}
    for seed in range(5):
        outputs = []
        for use_cache in (False, True):
            torch.manual_seed(seed)
            outputs.append(model.generate(**arguments, use_cache=use_cache))
        assert outputs[0].equal(outputs[1])


def test_what_the_cache_cannot_do_is_refused():
    cache, tags = DocumentCache(1, 1), group_tags(torch.tensor([[0, 5, 2, 0]]), BOS, EOS)
    cache.start(tags, 4, tags)
    with pytest.raises(ValueError, match="one token at a time"):
        cache.start(tags, 2, tags)
    with pytest.raises(ValueError, match="cannot be cropped"):
        cache.crop(-1)
