"""Generation of one document: tokens per second against MBart of the same size on the document as one sequence.

    python benchmarks/generation.py [--lengths 512 2048] [--beams 1 5] [--repeats 3]
    python benchmarks/generation.py --name precision --size mbart25 --lengths 128 --beams 5 --systems gtransformer \\
        gtransformer-bfloat16 gtransformer-int8

Weights are random, so both are made to generate as many tokens as the source has: every sentence of the G-Transformer
takes as many words as its source sentence, and MBart's end is suppressed until then. Speeds are compared to the first
of the systems. The floor of a step is the time to read the decoder's weights once, at the rate of a product of a large
matrix and a vector, measured in the same run; it leaves out keys, values and all arithmetic.
"""

import argparse
import statistics
import sys
import time

import torch
from measure import interleaved, make_model, make_source, ratios, save, show


def make_run(system: str, size: str, length: int, beams: int):
    """A function that generates one translation."""
    model, settings = make_model(system, size).eval(), {"num_beams": beams, "do_sample": False}
    source = make_source(system, length)
    if system.startswith("mbart"):
        longest = source["input_ids"].shape[1]
        settings |= {"min_new_tokens": longest, "max_new_tokens": longest, "decoder_start_token_id": 0}
    else:
        # Words end where the limit forces them to: banning </s> before it would cost nothing to either.
        settings |= {"max_length_a": 1.0, "max_length_b": 0, "parallel_sentences": False}

    def run() -> None:
        output = model.generate(**source, **settings)
        run.tokens = length if len(output) > 1 else output.shape[1] - 1

    return run


def weights_of_a_step(system: str, size: str) -> int:
    """Bytes of the weights that a step of decoding reads: no embeddings, which it picks from, and no projections of
    the source, which are made once."""
    model = make_model(system.removesuffix("-int8"), size)
    once = ("embed_", "encoder_attn.k_proj", "encoder_attn.v_proj", "encoder_attn_global.k", "encoder_attn_global.v")
    decoder = [
        weight for name, weight in model.get_decoder().named_parameters() if not any(part in name for part in once)
    ]
    whole = sum(weight.numel() * weight.element_size() for weight in [*decoder, model.lm_head.weight])
    return whole // 4 if system.endswith("-int8") else whole


def reading_rate() -> float:
    """Bytes per second of the product of a large matrix and a vector, the best of several."""
    matrix, vector = torch.randn(16384, 8192), torch.randn(8192)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        matrix @ vector
        seconds.append(time.perf_counter() - start)
    return matrix.numel() * matrix.element_size() / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--systems", nargs="+", default=["mbart", "gtransformer", "gtransformer-k0"])
    parser.add_argument("--size", choices=("base", "mbart25"), default="base")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--name", default="generation", help="Name of the results file.")
    args = parser.parse_args()
    rate = reading_rate()
    floors = {system: weights_of_a_step(system, args.size) / rate for system in args.systems}
    results: dict[str, dict] = {}
    for length in args.lengths:
        for beams in args.beams:
            runs = {system: make_run(system, args.size, length, beams) for system in args.systems}
            seconds = interleaved(runs, args.repeats)
            per_token = {
                system: [second / runs[system].tokens for second in times] for system, times in seconds.items()
            }
            speed = ratios(per_token, args.systems[0])
            row = results[f"{length} tokens, {beams} beams"] = {
                system: {
                    "tokens": runs[system].tokens,
                    "tokens_per_second": 1 / statistics.median(per_token[system]),
                    "speed_ratio": speed[system],
                    "share_of_floor": floors[system] / statistics.median(per_token[system]),
                }
                for system in args.systems
            }
            show(f"{length:5} tokens, {beams} beams", row)
    save(args.name, sys.argv, results)


if __name__ == "__main__":
    main()
