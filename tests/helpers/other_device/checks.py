"""What the model does on a GPU, or on a stand-in: the same as on the CPU, with few waits for the device."""

import re
from itertools import product

import pytest
import torch
from accelerate import dispatch_model
from tiny import END_OF_DOCUMENT, PAD, TINY
from transformers import MBartConfig, MBartForConditionalGeneration

import modeling_gtransformer.sentence_attention as sa
from modeling_gtransformer import DocumentTranslationPipeline
from modeling_gtransformer.jacobi_decoding import JacobiDecoder


if torch.cuda.is_available():
    DEVICE, waits = torch.device("cuda:0"), None
else:
    from stand_in import DEVICE, waits

counts_waits = pytest.mark.skipif(waits is None, reason="the stand-in alone counts how often the program waits")
DOCUMENTS = [[0, 5, 6, 2, 0, 7, 8, 9, 2, 0, 10, 2], [0, 5, 2, 0, 4, 2]]
LABELS = [[5, 2, 0, 6, 7, 2, 0, 7, 2, END_OF_DOCUMENT], [8, 2, 0, 9, 2, END_OF_DOCUMENT]]
CONTINUED = {"decoder_input_ids": [[0, 5, 2, 0], [0, 6, 2, 0]]}
SEARCHES: list[dict] = [
    {"max_new_tokens": 20},
    {"max_new_tokens": 20, "parallel_sentences": False},
    {"num_beams": 3, "max_new_tokens": 20, **CONTINUED},
    {"num_beams": 2, "use_cache": False, "max_new_tokens": 15},
    {"return_dict_in_generate": True, **CONTINUED},
    {"cache_implementation": "static", "max_new_tokens": 15},
    {"align_sentences": False, "max_new_tokens": 5},
    {"parallel_sentences": True, **CONTINUED},
    {"parallel_sentences": True, "num_beams": 2},
]


def batch(rows, fill, left=False):
    longest = max(map(len, rows))
    filling = [[fill] * (longest - len(row)) for row in rows]
    return torch.tensor([f + row if left else row + f for f, row in zip(filling, rows, strict=True)])


def inputs(device, left=False):
    ids = batch(DOCUMENTS, PAD, left).to(device)
    return {"input_ids": ids, "attention_mask": ids.ne(PAD).long()}


@pytest.fixture
def models(tiny_model):
    """The same model on both devices."""

    def make(**config):
        here, there = tiny_model(**config), tiny_model(**config)
        there.load_state_dict(here.state_dict())
        there.to(DEVICE).tie_weights()  # which moving a tensor of another type has undone
        return here, there

    return make


@pytest.mark.parametrize(("left", "skip_logits"), list(product([False, True], repeat=2)))
def test_training(models, left, skip_logits):
    results = []
    for model in models(dropout=0.0):
        labels = batch(LABELS, -100).to(model.device)
        arguments = {**inputs(model.device, left), "labels": labels, "label_smoothing": 0.1}
        loss = model.train()(**arguments, skip_logits=skip_logits).loss
        loss.backward()
        results.append([loss.item(), *(parameter.grad.cpu() for parameter in model.parameters())])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attn_implementation", ["eager", "sdpa"])
def test_logits_and_attention_weights(models, attn_implementation):
    results = []
    for model in models():
        model.set_attn_implementation(attn_implementation)
        target = batch([[0, *row[:-1]] for row in LABELS], PAD).to(model.device)
        given = {"decoder_input_ids": target, "decoder_attention_mask": target.ne(PAD)}
        outputs = model(**inputs(model.device), **given, output_attentions=attn_implementation == "eager")
        logits = outputs.logits[target.ne(PAD)].cpu()
        results.append([logits, *(weights.cpu() for weights in outputs.cross_attentions or ())])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "search",
    [{}, {"num_beams": 3}, {"parallel_sentences": True}, {"parallel_sentences": True, "num_beams": 3}],
    ids=str,
)
def test_layers_on_several_devices(tiny_model, search):
    """As with `device_map`, which moves what a layer is given, but not what that refers to."""
    whole, split = tiny_model(), tiny_model()
    split.load_state_dict(whole.state_dict())
    names = [name for name, _ in [*split.named_parameters(remove_duplicate=False), *split.named_buffers()]]
    names = {re.sub(r"(layers\.\d).*|\.weight$|\.bias$", r"\1", name) for name in names}
    dispatch_model(split, {name: DEVICE if name.endswith("layers.1") else "cpu" for name in names}, main_device="cpu")
    documents = inputs("cpu", left=True)
    losses = [model(**documents, labels=batch(LABELS, -100)).loss.item() for model in (whole, split)]
    assert losses[0] == pytest.approx(losses[1])
    assert whole.generate(**documents, **search).equal(split.generate(**documents, **search))


def test_kernel_of_unlike_lengths_gets_its_places_on_the_device(models, monkeypatch):
    calls = []

    def varlen_attn(query, key, value, *cu_seqlens_and_max, **__):
        assert {each.device for each in (query, key, value, *cu_seqlens_and_max[:2])} == {query.device}
        calls.append(query.device)
        return query

    monkeypatch.setattr(sa, "has_variable_length_kernel", lambda _: True)
    monkeypatch.setattr(sa, "varlen_attn", varlen_attn)
    for model in models():
        model(**inputs(model.device), labels=batch(LABELS, -100).to(model.device))
    # Two layers of every kind; on the device, global attention, too.
    assert calls == [torch.device("cpu")] * 6 + [DEVICE] * 12


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_generation(models, search):
    results = []
    for model in models(encoder_layers=1):
        given = {name: torch.tensor(ids, device=model.device) for name, ids in search.items() if isinstance(ids, list)}
        outputs = model.generate(**inputs(model.device, left=True), **(search | given))
        sequences = outputs if isinstance(outputs, torch.Tensor) else outputs.sequences
        assert sequences.device == model.device
        results.append(sequences.tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize(("documents", "drafted"), [(16, True), (17, False)])
def test_sentences_are_drafted_in_parallel(models, monkeypatch, documents, drafted):
    """Of more documents than on a CPU."""
    monkeypatch.setattr("modeling_gtransformer.generation_gtransformer.PARALLEL_SENTENCES", 0)
    decode, calls = JacobiDecoder.decode, []
    monkeypatch.setattr(JacobiDecoder, "decode", lambda *args: calls.append(args) or decode(*args))
    _, model = models(encoder_layers=1)
    model.generate(**{name: each[:1].repeat(documents, 1) for name, each in inputs(DEVICE).items()})
    assert bool(calls) == drafted


@pytest.mark.skipif(DEVICE.type != "cuda", reason="torch's kernel computes on NVIDIA GPUs alone")
def test_training_in_half_precision(models):
    """In torch's kernel, against masks on the CPU."""
    losses = []
    for model in models(dropout=0.0):
        labels = batch(LABELS, -100).to(model.device)
        model.set_attn_implementation("sdpa" if model.device.type == "cuda" else "eager")
        with torch.autocast(model.device.type, torch.bfloat16, enabled=model.device.type == "cuda"):
            loss = model(**inputs(model.device), labels=labels).loss
        loss.backward()
        losses.append([loss.item(), *(parameter.grad.cpu() for parameter in model.parameters())])
    torch.testing.assert_close(*losses, rtol=0.1, atol=0.02)


def test_sampling(models):
    _, model = models(encoder_layers=1)
    rows = model.generate(**inputs(DEVICE, left=True), do_sample=True, max_new_tokens=15).tolist()
    assert [row.count(0) for row in rows] == [3, 2]


def test_pipeline(models, processor):
    """Segments, a glossary, confidences, and sentences as they come."""
    results = []
    for model in models(vocab_size=len(processor.tokenizer), encoder_layers=1):
        processor.configure(model)
        model.generation_config.max_length_a, model.generation_config.max_length_b = 0, 3
        translate = DocumentTranslationPipeline(model=model, processor=processor, device=model.device)
        settings = {"segment_sentences": 1, "glossary": {"cat": "katze"}, "confidence": True}
        output = translate(["the cat", "it is"], **settings)
        results.append([output["translation_text"], *(pair.pop("confidence") for pair in output["sentences"])])
        assert [pair["source_text"] for pair in translate.stream("it is")] == ["it is"]
    assert results[0] == [results[1][0], *map(pytest.approx, results[1][1:])]


@counts_waits
@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_step_of_decoding_waits_no_more_often_than_mbarts(models, num_beams):
    """The difference of two lengths, so what is done once does not count."""
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    peer = MBartForConditionalGeneration(MBartConfig(**(TINY | layers))).eval().to(DEVICE)
    peer.tie_weights()
    model = models(**layers)[1]
    steps = []
    for each in (peer, model):
        each.generation_config.eos_token_id = each.generation_config.forced_eos_token_id = None
        counts = []
        for length in (15, 20):
            waits.clear()
            outputs = each.generate(**inputs(DEVICE), num_beams=num_beams, max_new_tokens=length)
            assert outputs.shape[1] == length + 1
            counts.append(waits.total())
        steps.append(counts[1] - counts[0])
    assert 0 < steps[1] <= steps[0], waits


@counts_waits
def test_a_step_of_training_waits_a_few_times(models):
    """For the tags of every side of an attention, for which labels count, and for whether the gradient is scaled."""
    _, model = models()
    labels = batch(LABELS, -100).to(DEVICE)
    documents = inputs(DEVICE)
    waits.clear()
    model.train()(**documents, labels=labels).loss.backward()
    ours = {name: count for name, count in waits.items() if name.startswith("modeling_gtransformer")}
    assert ours == {"modeling_gtransformer.group_tags": 4, "modeling_gtransformer.document_loss": 2}
