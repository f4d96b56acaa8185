"""The Space: the server with its page, and limits for public use. `GTRANSFORMER_MODEL` sets the checkpoint."""

import os
import sys

from modeling_gtransformer.cli.main import main


LIMITS = {"max_characters": 50_000, "max_bytes": 5_000_000, "max_tokens": 1024, "max_waiting": 64, "max_per_client": 4}


def serve() -> int:
    model = os.environ.get("GTRANSFORMER_MODEL")
    if not model:
        sys.exit("No model: set the variable GTRANSFORMER_MODEL to the name of a checkpoint.")
    # Only the proxy of the Hub reaches the port, so its headers are trustworthy.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "*")
    limits = [word for name, value in LIMITS.items() for word in (f"--{name}", str(value))]
    return main(["serve", "--model", model, "--host", "0.0.0.0", "--port", "7860", *limits])


if __name__ == "__main__":
    sys.exit(serve())
