"""Translation of whole corpora in chunks, by one process or several, continued where it was stopped."""

import argparse
import contextlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import torch
from accelerate import PartialState
from transformers import HfArgumentParser
from transformers.utils.logging import disable_progress_bar, tqdm

from ..document_translation import translate_documents
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from .corpus import Document, iterate_documents


# Documents that are translated and written together: what is lost if a process is stopped.
CHUNK = 64


@dataclass
class TranslationSettings:
    """Settings of the translation of a corpus: options of `translate.py`, and of a study under `generation`."""

    source_column: str = field(default="source", metadata={"help": "Column that holds the list of source sentences."})
    segment_tokens: int = field(
        default=512, metadata={"help": "Upper bound on the source tokens of a segment, which is translated at once."}
    )
    segment_sentences: int | None = field(
        default=None, metadata={"help": "Upper bound on the sentences of a segment; 1 for a sentence-level model."}
    )
    carried_sentences: int = field(
        default=0, metadata={"help": "Number of sentences of a segment that open the next one as well."}
    )
    max_tokens: int = field(
        default=4096, metadata={"help": "Upper bound on the source tokens of a batch, padding included."}
    )
    num_beams: int | None = field(
        default=None, metadata={"help": "Number of beams; default: that of the model's generation config."}
    )
    parallel_sentences: bool = field(
        default=False, metadata={"help": "Decode the sentences of a segment side by side."}
    )

    def translation_arguments(self) -> dict[str, Any]:
        """The keyword arguments of [`translate_documents`]; without those that the model's own settings decide."""
        arguments = asdict(self)
        del arguments["source_column"]
        undecided = {"num_beams": None, "parallel_sentences": False}
        return {name: value for name, value in arguments.items() if (name, value) not in undecided.items()}


def parse_translation(
    argv: Sequence[str], description: str | None = None
) -> tuple[str, str, str, TranslationSettings]:
    """Parses `model input output [--option value ...]`."""
    parser = HfArgumentParser(
        TranslationSettings,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("model", help="Folder or Hub name of a trained G-Transformer.")
    parser.add_argument("input", help="Documents: .jsonl[.gz|.xz], or text with <d> lines.")
    parser.add_argument("output", help="JSON-lines file to write.")
    values = vars(parser.parse_args(argv))
    files = [values.pop(name) for name in ("model", "input", "output")]
    return *files, TranslationSettings(**values)


def translate_corpus(model: str, input: str, output: str, settings: TranslationSettings) -> None:
    """
    Translates a corpus of any size, with the processes that Accelerate has launched, and writes its documents with a
    `translation` (list of sentences) and `segments` (numbers of sentences that were translated at once).

    Args:
        model: folder or Hub name.
        input: documents as [`iterate_documents`] reads them.
        output: JSON lines; until all is done every process appends to a file of its own beside it, from which the same
            call continues.

    Raises:
        ValueError: the corpus has problems, or an unfinished translation with other settings is in the way.
    """
    state = PartialState(cpu=not torch.cuda.is_available())
    if not state.is_local_main_process:
        disable_progress_bar()
    # All of it is checked before any is translated.
    number = sum(1 for _ in iterate_documents([input], [settings.source_column]))
    job = {"model": model, "input": input, **asdict(settings), "input_size": os.path.getsize(input)}
    shards = Shards(output, job, state.num_processes)
    if state.is_main_process:
        shards.begin()
    state.wait_for_everyone()

    done = shards.resume(state.process_index)
    own = [chunk for chunk in range(-(-number // CHUNK)) if chunk % state.num_processes == state.process_index]
    if own[done:]:
        documents = iterate_documents([input], [settings.source_column])
        left = set(own[done:])
        wanted = (chunk for index, chunk in enumerate(chunks(documents)) if index in left)
        with shards.open(state.process_index) as file:
            translate_chunks(model, settings, wanted, len(left), state.device, file)
    state.wait_for_everyone()
    if state.is_main_process:
        shards.merge(number)
    state.wait_for_everyone()


def translate_chunks(
    name: str,
    settings: TranslationSettings,
    wanted: Iterator[list[Document]],
    number: int,
    device: torch.device,
    file: IO[str],
) -> None:
    """Translates so many chunks of documents, and appends each to the file."""
    processor = GTransformerProcessor.from_pretrained(name)
    model = GTransformerForConditionalGeneration.from_pretrained(name).eval().to(device)
    for documents in tqdm(wanted, total=number, unit=" chunks"):
        translations = translate_documents(
            model,
            processor,
            [document[settings.source_column] for document in documents],
            progress=number == 1,
            **settings.translation_arguments(),
        )
        for document, translated in zip(documents, translations, strict=True):
            row = {**document.record, "translation": translated.sentences, "segments": translated.segments}
            print(json.dumps(row, ensure_ascii=False), file=file)
        file.flush()


def chunks(documents: Iterator[Document]) -> Iterator[list[Document]]:
    while chunk := list(itertools.islice(documents, CHUNK)):
        yield chunk


class Shards:
    """The files that hold what has been translated so far, one per process, in turn a chunk of each."""

    def __init__(self, output: str, job: dict[str, Any], processes: int):
        self.output = Path(output)
        self.settings = {**job, "processes": processes}
        self.settings_file = self.output.with_name(f"{self.output.name}.settings.partial")
        self.files = [self.output.with_name(f"{self.output.name}.{rank}.partial") for rank in range(processes)]

    def begin(self) -> None:
        """
        Notes what is being translated, and how.

        Raises:
            ValueError: an unfinished translation with other settings is in the way.
        """
        if not self.settings_file.exists():
            self.output.parent.mkdir(parents=True, exist_ok=True)
            self.settings_file.write_text(json.dumps(self.settings), encoding="utf-8")
        before = json.loads(self.settings_file.read_text(encoding="utf-8"))
        if before != self.settings:
            changed = sorted(name for name in self.settings if self.settings[name] != before.get(name))
            raise ValueError(
                f"{self.output} was begun with another {', '.join(changed)}: continue as it was begun, or remove "
                f"{self.output.name}.*partial."
            )

    def resume(self, rank: int) -> int:
        """Counts the chunks that the process has finished, and removes what it wrote of another one."""
        with self.files[rank].open("ab+") as file:
            file.seek(0)
            ends = [file.tell() for line in iter(file.readline, b"") if line.endswith(b"\n")]
            done = len(ends) // CHUNK
            file.truncate(ends[done * CHUNK - 1] if done else 0)
        return done

    def open(self, rank: int) -> IO[str]:
        return self.files[rank].open("a", encoding="utf-8")

    def merge(self, documents: int) -> None:
        """Puts the output together, of so many documents, and removes the shards."""
        whole = self.output.with_name(f"{self.output.name}.partial")
        with whole.open("wb") as output, contextlib.ExitStack() as stack:
            shards = [stack.enter_context(file.open("rb")) for file in self.files]
            for number in range(documents):
                line = shards[number // CHUNK % len(shards)].readline()
                if not line.endswith(b"\n"):
                    raise RuntimeError(f"The translation of document {number + 1} is missing: run the command again.")
                output.write(line)
        os.replace(whole, self.output)
        for file in (*self.files, self.settings_file):
            file.unlink(missing_ok=True)
