"""Download one of the paper's corpora from the Hub, and print where its files are.

python train/paper_corpora.py news
"""

import argparse
import sys

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.training.paper_corpora import CORPORA, SPLITS, paper_corpus


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA, help="The corpus, as the paper names it.")
    args = parser.parse_args(argv)
    for split in SPLITS:
        print(split, *paper_corpus(args.corpus, split))


if __name__ == "__main__":
    sys.exit(run("paper_corpora.py", lambda: main(sys.argv[1:])))
