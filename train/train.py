"""Train a G-Transformer on documents.

    accelerate launch train/train.py train/recipes/mbart25.yaml \\
        --train_files train.jsonl --validation_files dev.jsonl --source_column en --target_column de

The recipe holds the arguments of one experiment, and the command line can override each of them. The same command
continues an interrupted training from the last checkpoint in `output_dir`.
"""

import sys

from modeling_gtransformer.training.experiment import train
from modeling_gtransformer.training.recipe import parse_recipe


def main(argv: list[str]) -> dict[str, float]:
    """Runs the training that the command line describes, and returns the validation scores of its final model."""
    return train(*parse_recipe(argv))


if __name__ == "__main__":
    main(sys.argv[1:])
