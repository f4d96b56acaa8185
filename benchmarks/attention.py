"""Group attention alone: our paths against dense attention under the group mask, and against FlexAttention.

    python benchmarks/attention.py [--lengths 512 2048 8192] [--backward] [--repeats 10]

One document of random sentences, 8 heads of 64. On a CUDA device in bfloat16, where torch's kernel for sequences of
unlike length takes part; on a CPU in float32, where FlexAttention has no backward pass. Plans and block masks are made
beforehand, as one serves all layers.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial

import torch
from measure import interleaved, make_document, ratios, save
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from modeling_gtransformer import sentence_attention as sa
from modeling_gtransformer.group_tags import group_tags, same_group


HEADS, HEAD_SIZE = 8, 64
SCALING = HEAD_SIZE**-0.5


def make_ways(tags: Tensor, states: list[Tensor], backward: bool) -> dict[str, Callable[..., Tensor]]:
    """Functions of query, key and value that compute the encoder's group attention."""
    device, length = states[0].device, tags.shape[1]
    plan = sa.plan_sentences(tags.cpu(), tags.cpu())
    assert plan is not None
    mask = same_group(tags, tags)
    ways = {
        "dense": partial(scaled_dot_product_attention, attn_mask=mask, scale=SCALING),
        "gathered": partial(sa.gathered_attention, plan=plan, dropout=0.0, scaling=SCALING),
        "chosen": partial(sa.sentence_attention, plan=plan, dropout=0.0, scaling=SCALING),
    }
    if device.type != "cpu" or not backward:
        groups = tags[0]
        block_mask = create_block_mask(
            lambda _, __, query, key: groups[query] == groups[key], None, None, length, length, device=device
        )
        ways["flex"] = partial(torch.compile(flex_attention), block_mask=block_mask, scale=SCALING)
    return ways


def attend(way: Callable[..., Tensor], states: list[Tensor], backward: bool) -> None:
    """Runs the attention once and synchronises with the device."""
    with torch.set_grad_enabled(backward):
        output = way(*states)
    if backward:
        torch.autograd.grad(output.sum(), states)
    if states[0].is_cuda:
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 8192])
    parser.add_argument("--backward", action="store_true", help="Time the backward pass as well.")
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    on_cuda = torch.cuda.is_available()
    place = {"device": "cuda", "dtype": torch.bfloat16} if on_cuda else {"device": "cpu", "dtype": torch.float32}
    results: dict[int, dict[str, float]] = {}
    for length in args.lengths:
        tags = group_tags(make_document(length).to(place["device"]), 0, 2)
        states = [torch.randn(1, length, HEADS, HEAD_SIZE, **place).transpose(1, 2) for _ in range(3)]
        states = [tensor.requires_grad_(args.backward) for tensor in states]
        torch.compiler.reset()
        ways = make_ways(tags, states, args.backward)
        runs = {name: partial(attend, way, states, args.backward) for name, way in ways.items()}
        results[length] = ratios(interleaved(runs, args.repeats), "dense")
        rounded = {name: round(ratio, 2) for name, ratio in results[length].items()}
        print(f"{length:5} tokens, times as fast as dense attention: {json.dumps(rounded)}", flush=True)
    save(f"attention-{place['device']}{'-backward' * args.backward}", sys.argv, results)


if __name__ == "__main__":
    main()
