"""Translate documents on the GPUs or cores of one machine or of a cluster, by Ray Data.

    python train/translate_ray.py outputs/mbart25 talks.jsonl.xz outputs/talks --source_column en
    python train/translate_ray.py outputs/mbart25 s3://bucket/talks/ s3://bucket/translated/ --actors 16

Reads what `translate.py` reads, at paths that all machines share or at URIs. The files of a folder are read side by
side. Writes the records that `translate.py` writes, as JSON lines or, where the input is one, as parquet tables, into
a folder: a file for every 64 documents (`--chunk_documents`), whose name has the number of the file that was read and
its own, from 0. The number of actors changes nothing of that.

Each file appears as a whole, once, when it is translated, and the same command continues from those that are there:
after it was stopped, and on other machines. A folder of another corpus, model or other settings is refused. An actor
that dies is started again. Ray is that of `RAY_ADDRESS` or of this machine, or is started on this machine.

The exit status is 0 if all is translated, 1 for an error, 2 if the command cannot begin, 130 for Ctrl-C and 143 for
SIGTERM.
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
