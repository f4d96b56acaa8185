"""The one definition of the tiny models of the tests: their ids, their size, and the attention kinds to try."""

import torch

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration


BOS, PAD, EOS, END_OF_DOCUMENT = 0, 1, 2, 49
# For models whose vocabulary is that of a tokenizer.
SIZE = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "max_position_embeddings": 128,
}
TINY = {**SIZE, "vocab_size": 50, "scale_embedding": True}

STACKS = ("encoder", "decoder", "cross")
# With two layers, the default is combined attention in both.
ONLY_GROUP = {f"{stack}_global_layers": 0 for stack in STACKS}
ONLY_GLOBAL = {f"{stack}_attention_types": ["global", "global"] for stack in STACKS}
GROUP_BELOW_COMBINED = {f"{stack}_global_layers": 1 for stack in STACKS}
ATTENTION_KINDS = [
    {},
    {"decoder_global_layers": 0},
    ONLY_GROUP,
    {"decoder_attention_types": ["global", "group"], "cross_attention_types": ["combined", "global"]},
    {"position_scope": "sentence"},
    {"position_scope": "sentence", "global_positions": "none"},
]


def seeded_model(**config):
    """A tiny model that is the same in every test; `init_std` says how much its layers matter."""
    torch.manual_seed(3)
    model = GTransformerForConditionalGeneration(GTransformerConfig(**(TINY | config))).eval()
    model.generation_config.eos_token_id = END_OF_DOCUMENT
    return model


def random_documents(lengths):
    """Random documents with sentences of these lengths, padded on the left."""
    rows = [
        [token for words in document for token in (BOS, *torch.randint(4, 48, (words,)).tolist(), EOS)]
        for document in lengths
    ]
    longest = max(map(len, rows))
    ids = torch.tensor([[PAD] * (longest - len(row)) + row for row in rows])
    return {"input_ids": ids, "attention_mask": ids.ne(PAD).long()}


def watch_implementation(model):
    """Collects the attention implementations that the model has whenever one of its layers runs."""
    seen = set()
    for layer in (*model.model.encoder.layers, *model.model.decoder.layers):
        layer.register_forward_pre_hook(lambda *_: seen.add(model.config._attn_implementation))
    return seen


def watch_generate(model, monkeypatch):
    """Collects the arguments of every call of `generate`."""
    calls, generate = [], model.generate
    monkeypatch.setattr(model, "generate", lambda **arguments: calls.append(arguments) or generate(**arguments))
    return calls


def words_per_sentence(row):
    """Checks that a generated row is a document and counts the words of its sentences."""
    row = [token for token in row.tolist() if token != PAD]
    assert row[0] == BOS and row[-2:] == [EOS, END_OF_DOCUMENT]
    counts = []
    for token in row[:-1]:
        if token == BOS:
            counts.append(0)
        elif token != EOS:
            counts[-1] += 1
    assert row.count(BOS) == row.count(EOS) == len(counts) and row.count(END_OF_DOCUMENT) == 1
    return counts


def sentences_of(ids):
    """The ids of every sentence, from `<s>` to `</s>`."""
    starts = [place for place, token in enumerate(ids) if token == BOS]
    return [ids[start : ids.index(EOS, start) + 1] for start in starts]
