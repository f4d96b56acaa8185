"""Write the card of a trained checkpoint from the files that training and scoring left in its folder.

    python hub_cards/model_card.py outputs/mbart25 [--license mit] [--dataset user/corpus] [--repository user/name]

The card shows the scores that `train/score_translations.py --json outputs/mbart25/scores/NAME.json` wrote, for any
number of test sets. The command writes `README.md`, `training.svg` (with matplotlib) and, for a dataset on the Hub,
`.eval_results`; it keeps a `README.md` that was written or edited by hand.
"""

import argparse
import sys
from pathlib import Path

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.hub_upload import add_card_options
from modeling_gtransformer.training.model_card import write_model_card
from modeling_gtransformer.translator import check_folder


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    if not args.folder.is_dir():
        raise ValueError(f"{args.folder} is not a folder: name that of a trained checkpoint.")
    check_folder(str(args.folder))
    notes = args.notes.read_text(encoding="utf-8") if args.notes else ""
    write_model_card(args.folder, args.license, args.dataset, args.repository, args.overwrite_card, notes)
    print(args.folder / "README.md")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder of a trained checkpoint.")
    add_card_options(parser)
    parser.add_argument("--repository", help="Name of the checkpoint on the Hub, e.g. user/name.")
    parser.add_argument(
        "--notes",
        type=Path,
        metavar="MARKDOWN",
        help="File with notes for the card, e.g. the attribution of the data.",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("model_card.py", lambda: main(sys.argv[1:])))
