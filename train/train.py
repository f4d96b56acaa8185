"""`gtransformer train`, as a script for launchers.

    accelerate launch train/train.py mbart25 \\
        --train_files train.jsonl --validation_files dev.jsonl --source_column en --target_column de

The recipe, a name or a YAML file, contains the arguments of an experiment. The command line can override each of them.
The same command continues an interrupted training from the last checkpoint in `output_dir`.
"""

import sys

from modeling_gtransformer.cli.main import main


if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
