"""Profile of a training step: where its time goes, and what it keeps in memory for the gradient.

python benchmarks/training_profile.py [--length 512] [--systems mbart gtransformer]
"""

import argparse
import sys

from measure import BASE, kept_for_the_gradient, make_model, make_source, save, seconds_by_kind
from training import make_step


# Names of operations that belong together; the rest is element by element.
KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::addmm_"),
    "attention": ("scaled_dot_product", "SentenceAttention"),
    "dropout masks": ("aten::bernoulli_", "aten::random_"),
    "AdamW": ("aten::_fused_adamw_",),
    "clearing memory": ("aten::fill_", "aten::zero_"),
    "copies": ("aten::copy_", "aten::cat", "aten::index_select"),
}


def kept_per_activation(system: str, length: int) -> float:
    """Bytes that autograd keeps between forward and backward pass, parameters excepted, over tokens * width * 4."""
    model, batch = make_model(system).train(), make_source(system, length)
    with kept_for_the_gradient(model) as kept:
        loss = model(**batch, decoder_input_ids=batch["input_ids"], labels=batch["input_ids"].roll(-1, dims=1)).loss
    assert loss.requires_grad
    return sum(storage.nbytes() for storage in kept.values()) / (length * BASE["d_model"] * 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--systems", nargs="+", default=["mbart", "gtransformer"])
    args = parser.parse_args()
    results = {}
    for system in args.systems:
        seconds = seconds_by_kind(make_step(system, "base", args.length), KINDS)
        kept = kept_per_activation(system, args.length)
        results[system] = {"seconds": seconds, "kept_over_tokens_times_width": kept}
        print(f"{system}: {', '.join(f'{kind} {time:.2f} s' for kind, time in seconds.items())}; keeps {kept:.0f}")
    save(f"training-profile-{args.length}", sys.argv, results)


if __name__ == "__main__":
    main()
