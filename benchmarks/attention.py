"""Parts of the model: group attention against dense attention with a mask, and the loss against computing all logits.

    python benchmarks/attention.py [--lengths 512 2048 8192] [--backward] [--repeats 10]
    python benchmarks/attention.py --loss [--lengths 512 2048] [--backward] [--label_smoothing 0.1] [--size base]

Attention runs on a document of random sentences with 8 heads of size 64. Plans and block masks are precomputed,
because all layers share them. A CUDA device uses bfloat16 and torch's kernel for sequences of different lengths. A CPU
uses float32, where FlexAttention has no backward pass. The loss includes the backward pass to the weights of the
output layer. It is compared with `linear_cross_entropy` if torch provides it.
"""

from collections.abc import Callable
from functools import partial

import torch
from measure import DEVICE, interleaved, parse_options, ratios, save, show
from systems import BOS, EOS, SIZES, make_sentences
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from modeling_gtransformer import sentence_attention as sa
from modeling_gtransformer.document_loss import document_loss, linear_document_loss
from modeling_gtransformer.group_tags import group_tags, same_group


HEADS, HEAD_SIZE = 8, 64
Runs = dict[str, Callable[[], None]]


def attention_runs(length: int, backward: bool) -> Runs:
    """Returns implementations of the encoder's group attention, on a document of `length` tokens."""
    tags = group_tags(torch.cat(make_sentences(length))[None].to(DEVICE), BOS, EOS)
    dtype = torch.bfloat16 if DEVICE == "cuda" else torch.float32
    states = [torch.randn(1, length, HEADS, HEAD_SIZE, device=DEVICE, dtype=dtype).transpose(1, 2) for _ in range(3)]
    states = [tensor.requires_grad_(backward) for tensor in states]
    plan, scaling = sa.plan_sentences(tags.cpu(), tags.cpu()), HEAD_SIZE**-0.5
    ways: dict[str, Callable[..., Tensor]] = {
        "dense": partial(scaled_dot_product_attention, attn_mask=same_group(tags, tags), scale=scaling),
        "gathered": partial(sa.gathered_attention, plan=plan, dropout=0.0, scaling=scaling),
        "chosen": partial(sa.sentence_attention, plan=plan, dropout=0.0, scaling=scaling),
    }
    if DEVICE == "cuda" or not backward:
        groups = tags[0]
        block_mask = create_block_mask(
            lambda _, __, query, key: groups[query] == groups[key], None, None, length, length, device=DEVICE
        )
        ways["flex"] = partial(torch.compile(flex_attention), block_mask=block_mask, scale=scaling)

    def attend(way: Callable[..., Tensor]) -> None:
        with torch.set_grad_enabled(backward):
            output = way(*states)
        if backward:
            torch.autograd.grad(output.sum(), states)

    return {name: partial(attend, way) for name, way in ways.items()}


def loss_runs(length: int, size: str, label_smoothing: float) -> Runs:
    """Returns implementations of the loss of `length` tokens, with gradients of states and output layer."""
    vocabulary, width = SIZES[size]["vocab_size"], SIZES[size]["d_model"]
    hidden = torch.randn(1, length, width, device=DEVICE, requires_grad=True)
    weight = (torch.randn(vocabulary, width, device=DEVICE) * width**-0.5).requires_grad_()
    bias = torch.zeros(1, vocabulary, device=DEVICE)
    labels = torch.randint(vocabulary, (1, length), device=DEVICE)

    def of_torch() -> Tensor:
        settings = {"label_smoothing": label_smoothing, "options": nn.LinearCrossEntropyOptions()}
        return nn.functional.linear_cross_entropy(hidden[0], weight, labels[0], linear_bias=bias[0], **settings)

    ways: dict[str, Callable[[], Tensor]] = {
        "logits": lambda: document_loss(hidden @ weight.T + bias, labels, label_smoothing),
        "chunked": lambda: linear_document_loss(hidden, weight, bias, labels, label_smoothing),
    }
    if hasattr(nn.functional, "linear_cross_entropy"):
        ways["torch"] = of_torch
    losses = [way().item() for way in ways.values()]
    assert max(losses) - min(losses) < 1e-3, losses
    return {name: lambda way=way: torch.autograd.grad(way(), (hidden, weight)) for name, way in ways.items()}


def main() -> None:
    args = parse_options(
        __doc__,
        lengths=[512, 2048, 8192],
        backward=False,
        loss=False,
        size="base",
        label_smoothing=0.1,
        repeats=10,
    )
    results: dict[int, dict[str, float]] = {}
    for length in args.lengths:
        torch.compiler.reset()
        runs = (
            loss_runs(length, args.size, args.label_smoothing) if args.loss else attention_runs(length, args.backward)
        )
        results[length] = ratios(interleaved(runs, args.repeats), next(iter(runs)))
        show("speed ratios", {f"{length} tokens": results[length]})
    attention = f"attention-{DEVICE}{'-backward' * args.backward}"
    save(args, f"loss-{args.size}-{args.label_smoothing}" if args.loss else attention, results)


if __name__ == "__main__":
    main()
