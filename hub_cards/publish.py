"""Upload a trained checkpoint to the Hub in one commit: weights, processor, code and card.

    python hub_cards/publish.py outputs/mbart25 user/name [--license mit] [--dataset user/corpus] [--private]

Its users need only Transformers: `pipeline(model="user/name", trust_remote_code=True)`. A `README.md` that was written
or edited by hand is published as it is.
"""

import argparse
import sys
from pathlib import Path

from modeling_gtransformer import DocumentTranslationPipeline
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.hub_upload import add_card_options
from modeling_gtransformer.training.model_card import write_model_card
from modeling_gtransformer.translator import load_checkpoint
from modeling_gtransformer.usage_error import UsageError


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    model, processor = load_checkpoint(str(args.folder))
    if model.config.model_type != "gtransformer":
        raise UsageError(
            f"{args.folder} is not a G-Transformer but a plain {model.config.model_type}: fine-tune it first."
        )
    write_model_card(args.folder, args.license, args.dataset, args.repository, args.overwrite_card)
    translate = DocumentTranslationPipeline(model, processor=processor)
    print(translate.push_to_hub(args.repository, commit_message="Upload checkpoint", private=args.private or None))


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder of a trained checkpoint.")
    parser.add_argument(
        "repository", help="Repository on the Hub, e.g. user/name; it is created if it does not exist."
    )
    add_card_options(parser)
    parser.add_argument("--private", action="store_true", help="Create a private repository.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("publish.py", lambda: main(sys.argv[1:])))
