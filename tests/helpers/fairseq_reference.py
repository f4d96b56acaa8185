"""What the authors' fairseq code printed for seeded random weights (`fixtures/fairseq`), and our model with them."""

import json
from pathlib import Path

from safetensors.torch import load_file

from modeling_gtransformer.training.fairseq import model_from_fairseq, rename


FIXTURES = Path(__file__).parents[1] / "fixtures" / "fairseq"
PAD, END_OF_DOCUMENT = 1, 113


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
