"""Translate documents on the GPUs or cores of one machine or of a cluster, with Ray Data.

    python train/translate_ray.py outputs/mbart25 talks.jsonl.xz outputs/talks --source_column en
    python train/translate_ray.py outputs/mbart25 s3://bucket/talks/ s3://bucket/translated/ --actors 16

Reads the inputs that `translate.py` reads, at paths that all machines share or at URIs. The files of a folder are read
in parallel. Writes the records that `translate.py` writes into a folder, as parquet tables if the input is parquet,
otherwise as JSON lines: one file for every 64 documents (`--chunk_documents`), whose name has the number of the input
file and its own, from 0. The number of actors does not change this.

Each file appears once and complete, when it is translated, and the same command continues from the existing files,
after it was stopped and on other machines, too. A folder of another corpus, model or other settings is refused. An
actor that dies is started again. The command uses the Ray cluster of `RAY_ADDRESS` or of this machine, or starts Ray
on this machine.

The exit status is 0 if everything is translated, 1 for an error, 2 if the command cannot begin, 130 for Ctrl-C and 143
for SIGTERM.
"""

import sys

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.corpora.ray_translation import ActorPool, translate_with_ray
from modeling_gtransformer.corpora.translation_settings import parse_translation


OUTPUT = "Folder to write to, which all machines can reach."


def main(argv: list[str]) -> None:
    translate_with_ray(*parse_translation(argv, __doc__, OUTPUT, ActorPool))


if __name__ == "__main__":
    sys.exit(run("translate_ray.py", lambda: main(sys.argv[1:])))
