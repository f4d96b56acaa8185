"""Draws the attention of a model in a document: weights and gates of every combined layer.

    python train/studies/show_attention.py outputs/finetuned talk.jsonl attention.svg --source_column en --stack cross

The model translates the document. Each row of the picture shows a layer: the weights of group and global attention,
averaged over heads, and the gate. The lighter a point, the more a target token (row) attends to a source token
(column). Lines are sentence boundaries. The gate panel shows the share of group attention, by token and on average.
The stacks "encoder" and "decoder" are self-attention.
"""

import sys
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib.pyplot as plt
import torch

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.attention_recording import record_attention
from modeling_gtransformer.group_tags import read_group_tags
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.translation_options import option


LABELLED_TOKENS = 60  # labels of more tokens would be illegible


@dataclass(frozen=True)
class AttentionOptions:
    model: str = option(MISSING, "Folder or Hub name of a trained G-Transformer.", argument=True)
    documents: str = option(MISSING, "Documents: .jsonl[.gz|.xz], or text with <d> lines.", argument=True)
    output: Path = option(MISSING, "Picture to write: .svg, .png or .pdf.", argument=True)
    number: int = option(1, "Number of the document to show, counted from 1.", 1)
    source_column: str = option("source", "Column with the source sentences.")
    stack: Literal["encoder", "decoder", "cross"] = option("cross", "Attention stack to show.")


def show_attention(args: AttentionOptions) -> None:
    documents = read_documents([args.documents], [args.source_column])
    if args.number > len(documents):
        raise ValueError(f"--number {args.number} exceeds the {len(documents)} documents of {args.documents}.")
    translate = Translator(args.model, device="cpu").pipeline
    model, processor = translate.model.eval(), translate.processor

    inputs = processor(documents[args.number - 1][args.source_column], return_tensors="pt")
    with torch.inference_mode():
        # Without the end of the document, after which the model predicts nothing.
        target = model.generate(**inputs)[:, :-1]
        real = torch.ones_like(target)
        sublayers = record_attention(model, **inputs, decoder_input_ids=target, decoder_attention_mask=real)
    shown = [each for each in sublayers if each.stack == args.stack and "global" in each.weights]
    if not shown:
        raise ValueError(f"No layer of the stack {args.stack} has global attention.")
    sides = {
        is_target: (
            # Matplotlib parses a dollar sign as the start of a formula.
            [token.replace("$", r"\$") for token in processor.tokenizer.convert_ids_to_tokens(ids[0].tolist())],
            read_group_tags(ids, model.config, is_target)[0].diff().nonzero()[:, 0].tolist(),
        )
        for is_target, ids in ((False, inputs["input_ids"]), (True, target))
    }
    queries, keys = sides[args.stack != "encoder"], sides[args.stack == "decoder"]
    settings: Any = {"figsize": (14, 6 * len(shown)), "width_ratios": (3, 3, 1), "squeeze": False}
    figure, axes = plt.subplots(len(shown), 3, layout="constrained", **settings)
    for panels, sublayer in zip(axes, shown, strict=True):
        for panel, (kind, weights) in zip(panels, sublayer.weights.items(), strict=False):
            panel.set_title(f"{args.stack}, layer {sublayer.layer + 1}, {kind} attention")
            # The square root makes small weights visible.
            panel.imshow(weights[0].sqrt().numpy(), aspect="auto", vmin=0, interpolation="nearest")
            name_tokens(panel.yaxis, panel.axhline, *queries)
            name_tokens(panel.xaxis, panel.axvline, *keys)
            panel.tick_params(axis="x", labelrotation=90)
        if sublayer.gate is not None:
            gate, mean = sublayer.gate[0].numpy(), float(sublayer.gate.mean())
            panels[2].barh(range(len(gate)), gate, height=1.0)
            panels[2].axvline(mean, color="black", linewidth=0.8)
            panels[2].set(xlim=(0, 1), ylim=(len(gate) - 0.5, -0.5), title=f"gate: group {mean:.2f}")
            name_tokens(panels[2].yaxis, panels[2].axhline, *queries)
            print(f"{args.stack}, layer {sublayer.layer + 1}: the gate leaves {mean:.3f} to the group")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.output)
    plt.close(figure)


def name_tokens(axis: Any, draw_line: Any, tokens: list[str], boundaries: list[int]) -> None:
    """Labels an axis with tokens, if legible, and draws sentence boundaries."""
    for boundary in boundaries:
        draw_line(boundary + 0.5, color="gray", linewidth=0.6)
    if len(tokens) <= LABELLED_TOKENS:
        axis.set_ticks(range(len(tokens)), tokens, fontsize=7)


if __name__ == "__main__":
    sys.exit(run_script((AttentionOptions, show_attention)))
