"""Draws what a model attends to in one document: the attention and the gates of every combined layer.

    python train/studies/show_attention.py outputs/finetuned talk.jsonl attention.svg --source_column en --stack cross

The model translates the document, unless `--target_column` names a translation to look at. The picture has one row per
layer, with the weights of group attention and of global attention, averaged over the heads: the lighter a place is,
the more a target token (row) attends to a source token (column); lines are sentence borders. On the right is the share
that the gate gives to group attention, by token and on average. The stacks "encoder" and "decoder" are those of
self-attention.
"""

import sys
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.attention_recording import LayerAttention, record_attention
from modeling_gtransformer.group_tags import read_group_tags
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.translation_options import check_bounds, option


LABELLED_TOKENS = 60  # with more tokens, their names would be too small to read


@dataclass(frozen=True)
class AttentionOptions:
    model: str = option(MISSING, "Folder or Hub name of a trained G-Transformer.", argument=True)
    documents: str = option(MISSING, "Documents: .jsonl[.gz|.xz], or text with <d> lines.", argument=True)
    output: Path = option(MISSING, "Picture to write: .svg, .png or .pdf.", argument=True)
    number: int = option(1, "Number of the document to show, counted from 1.", 1)
    src_lang: str | None = option(None, "Code of the source language; default: that of the processor.")
    tgt_lang: str | None = option(None, "Code of the target language; default: that of the processor.")
    source_column: str = option("source", "Column that holds the source sentences.")
    target_column: str | None = option(None, "Column that holds a translation; default: the model translates.")
    stack: Literal["encoder", "decoder", "cross"] = option("cross", "Attention stack to show.")
    all_layers: bool = option(False, "Show layers with group attention only as well.")

    def __post_init__(self) -> None:
        check_bounds(self)


def show_attention(args: AttentionOptions) -> None:
    """Draws the attention of one document."""
    columns = [column for column in (args.source_column, args.target_column) if column]
    documents = read_documents([args.documents], columns)
    if args.number > len(documents):
        raise ValueError(f"{args.documents} has {len(documents)} documents, none with number {args.number}.")
    document = documents[args.number - 1]
    translate = Translator(args.model, args.src_lang, args.tgt_lang, device="cpu").pipeline
    model, processor = translate.model.eval(), translate.processor

    inputs = processor(document[args.source_column], return_tensors="pt")
    with torch.inference_mode():
        if args.target_column:
            sentences = processor.encode_sentences(document[args.target_column], is_target=True)
            target = model.prepare_decoder_input_ids_from_labels(torch.tensor([processor.build_labels(sentences)]))
        else:
            # The end of the document is left out, because the model predicts nothing after it.
            target = model.generate(**inputs)[:, :-1]
        real = torch.ones_like(target)
        sublayers = record_attention(model, **inputs, decoder_input_ids=target, decoder_attention_mask=real)
    shown = [sublayer for sublayer in sublayers if sublayer.stack == args.stack and sublayer.weights]
    if not args.all_layers:
        shown = [sublayer for sublayer in shown if "global" in sublayer.weights]
    if not shown:
        raise ValueError(f"No layer of the stack {args.stack} has global attention: use --all_layers.")
    sides = {
        is_target: Axis(
            processor.tokenizer.convert_ids_to_tokens(ids[0].tolist()),
            read_group_tags(ids, model.config, is_target)[0].diff().nonzero()[:, 0].tolist(),
        )
        for is_target, ids in ((False, inputs["input_ids"]), (True, target))
    }
    draw(shown, sides[args.stack != "encoder"], sides[args.stack == "decoder"], args.output)
    for sublayer in shown:
        if sublayer.gate is not None:
            print(f"{args.stack}, layer {sublayer.layer + 1}: the gate leaves {sublayer.gate.mean():.3f} to the group")


class Axis(NamedTuple):
    """Gives the tokens along a side of a picture, and the positions of the last tokens of sentences."""

    tokens: list[str]
    borders: list[int]


def draw(sublayers: list[LayerAttention], queries: Axis, keys: Axis, file: Path) -> None:
    """Draws sublayers with equal queries and keys into a file of any type that matplotlib writes."""
    figure, axes = plt.subplots(
        len(sublayers),
        3,
        figsize=(14, 6 * len(sublayers)),
        width_ratios=(3, 3, 1),
        squeeze=False,
        layout="constrained",
    )
    for panels, sublayer in zip(axes, sublayers, strict=True):
        for panel, kind in zip(panels, ("group", "global"), strict=False):
            panel.set_title(f"{sublayer.stack}, layer {sublayer.layer + 1}, {kind} attention")
            if kind in sublayer.weights:
                # The square root makes small weights visible.
                panel.imshow(sublayer.weights[kind][0].sqrt().numpy(), aspect="auto", vmin=0, interpolation="nearest")
                name_tokens(panel, queries, "y")
                name_tokens(panel, keys, "x")
            else:
                panel.axis("off")
        if sublayer.gate is None:
            panels[2].axis("off")
        else:
            draw_gate(panels[2], sublayer.gate[0].numpy())
            name_tokens(panels[2], queries, "y")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def draw_gate(panel: Axes, gate: np.ndarray) -> None:
    panel.barh(np.arange(len(gate)), gate, height=1.0)
    panel.axvline(gate.mean(), color="black", linewidth=0.8)
    panel.set(xlim=(0, 1), ylim=(len(gate) - 0.5, -0.5), title=f"gate: group {gate.mean():.2f}")


def name_tokens(panel: Axes, axis: Axis, side: str) -> None:
    """Labels an axis with tokens, if they would be readable, and draws lines between sentences."""
    for border in axis.borders:
        (panel.axvline if side == "x" else panel.axhline)(border + 0.5, color="gray", linewidth=0.6)
    if len(axis.tokens) <= LABELLED_TOKENS:
        # Matplotlib would read a dollar sign in a token as the start of a formula.
        names = [token.replace("$", r"\$") for token in axis.tokens]
        (panel.set_xticks if side == "x" else panel.set_yticks)(range(len(names)), names, fontsize=7)
        if side == "x":
            panel.tick_params(axis="x", labelrotation=90)


if __name__ == "__main__":
    sys.exit(run_script((AttentionOptions, show_attention)))
