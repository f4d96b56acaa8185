"""What the authors' fairseq code printed for seeded random weights (`fixtures/fairseq`), our model with them, and the
files that such a run leaves behind."""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from modeling_gtransformer.training.fairseq import model_from_fairseq, rename


FIXTURES = Path(__file__).parents[1] / "fixtures" / "fairseq"
CONFIGS = ["postnorm_sin_k2", "postnorm_sin_k0", "mbart_prenorm_learned_k2"]
PAD, END_OF_DOCUMENT = 1, 113
# The runs have 115 tokens, of which the dictionary has neither the special ones nor language codes and <mask>.
PIECES = ["the", "cat", "it", "is", "ol@@", "d", ".", "s@@", "leeps", "die", "katze", "sch@@", "läft", "alt"]
WORDS = [*PIECES, *(f"word{number}" for number in range(91)), *(f"madeupword{number:04d}" for number in range(3))]
MERGES = ["t h", "th e</w>", "c a", "ca t</w>", "i t</w>", "i s</w>"]
MERGES += ["o l", "p s</w>", "l e", "e ps</w>", "le eps</w>"]


class Reference:
    """A model with the authors' weights, and what their code printed for it."""

    def __init__(self, name):
        self.meta = json.loads((FIXTURES / name / "meta.json").read_text())
        self.tensors = load_file(FIXTURES / name / "tensors.safetensors")
        self.weights = load_file(FIXTURES / name / "model.safetensors")
        self.model = model_from_fairseq(self.meta["args"], self.weights)
        self.model.generation_config.eos_token_id = END_OF_DOCUMENT

    def batch(self, name):
        source, target = self[f"{name}.src_tokens"], self[f"{name}.target"]
        return {
            "input_ids": source,
            "attention_mask": source.ne(PAD).long(),
            "decoder_input_ids": self[f"{name}.prev_output_tokens"],
            "labels": target.masked_fill(target == PAD, -100),
        }

    def __getitem__(self, name):
        return self.tensors[name]


def renamed(printed):
    """The authors' parameter names under ours; the tied matrix is listed once."""
    ours = {rename(name): value for name, value in printed.items()}
    ours["model.shared.weight"] = ours.pop("model.encoder.embed_tokens.weight")
    return ours


def write_run(folder, args, weights, **kwargs):
    """A checkpoint, its dictionary and its codes, as fairseq and subword-nmt write them."""
    checkpoint = {
        "args": argparse.Namespace(**args),
        "model": weights,
        "optimizer_history": [{"optimizer_name": "FairseqAdam", "lr_scheduler_state": {"best": None}}],
        "extra_state": {"train_iterator": {"epoch": 3}, "val_loss": 4.2},
        "last_optimizer_state": {"state": {0: {"step": 8, "exp_avg": torch.zeros(2)}}, "param_groups": [{"lr": 1e-3}]},
    }
    torch.save(checkpoint, folder / "checkpoint_best.pt", **kwargs)
    (folder / "dict.en.txt").write_text("".join(f"{word} 1\n" for word in WORDS), encoding="utf-8")
    (folder / "code").write_text("\n".join(["#version: 0.2", *MERGES]) + "\n", encoding="utf-8")
