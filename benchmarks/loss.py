"""The loss of training and its gradients: ours without logits against all logits at once, and against torch's.

    python benchmarks/loss.py [--tokens 512 2048] [--size base] [--label_smoothing 0.1] [--repeats 5]

`torch.nn.functional.linear_cross_entropy`, chunked as it chooses itself, takes part where this torch has it. With
label smoothing it falls back to all logits, and says so. The output layer has a gradient.
"""

import argparse
import json
import sys
from functools import partial

import torch
from measure import SIZES, interleaved, ratios, save
from torch import nn

from modeling_gtransformer.document_loss import document_loss, linear_document_loss


def with_logits(hidden, weight, bias, labels, smoothing):
    return document_loss(hidden @ weight.T + bias, labels, smoothing)


def chunked(hidden, weight, bias, labels, smoothing):
    return linear_document_loss(hidden, weight, bias, labels, smoothing)


def of_torch(hidden, weight, bias, labels, smoothing):
    settings = {"label_smoothing": smoothing, "options": nn.LinearCrossEntropyOptions()}
    return nn.functional.linear_cross_entropy(hidden[0], weight, labels[0], linear_bias=bias[0], **settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--label_smoothing", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    ways = {"logits": with_logits, "chunked": chunked}
    if hasattr(nn.functional, "linear_cross_entropy"):
        ways["torch"] = of_torch
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    vocabulary, width = SIZES[args.size]["vocab_size"], SIZES[args.size]["d_model"]
    results: dict[int, dict[str, float]] = {}
    for tokens in args.tokens:
        hidden = torch.randn(1, tokens, width, device=device, requires_grad=True)
        weight = (torch.randn(vocabulary, width, device=device) * width**-0.5).requires_grad_()
        inputs = (hidden, weight, torch.zeros(1, vocabulary, device=device))
        labels = torch.randint(vocabulary, (1, tokens), device=device)
        losses: dict[str, float] = {}

        def step(name, way, inputs=inputs, labels=labels, losses=losses):
            loss = way(*inputs, labels, args.label_smoothing)
            torch.autograd.grad(loss, inputs[:2])
            losses[name] = loss.item()

        runs = {name: partial(step, name, way) for name, way in ways.items()}
        results[tokens] = ratios(interleaved(runs, args.repeats), "logits")
        assert max(losses.values()) - min(losses.values()) < 1e-3, losses
        rounded = {name: round(ratio, 2) for name, ratio in results[tokens].items()}
        print(f"{tokens:5} tokens, times as fast as with all logits: {json.dumps(rounded)}", flush=True)
    save(f"loss-{args.size}-{args.label_smoothing}", sys.argv, results)


if __name__ == "__main__":
    main()
