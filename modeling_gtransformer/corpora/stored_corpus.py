"""Checked documents on disk, in the cache of `datasets`: read once, memory-mapped by all processes of a machine.

A fingerprint of content, columns and code names the Arrow files in the cache (`HF_DATASETS_CACHE`). So copies of a
corpus in other places share the cache, and a changed corpus is read again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from datasets import Dataset, Features, IterableDataset, List, Value
from datasets.exceptions import DatasetGenerationError
from datasets.fingerprint import Hasher

from .corpus import Document, iterate_dataset, iterate_documents
from .corpus_files import files_of_all, has_columns, open_table
from .fingerprint import hash_of_code, hash_of_file


@dataclass(frozen=True)
class StoredCorpus:
    """
    Checked documents with a source and a target column, on disk.

    Attributes:
        documents: dataset of the two columns, each a list of sentences.
        columns: names of the source and of the target column.
        fingerprint: hash of the content.
        read: reads the documents again, with their files and lines.
    """

    documents: Dataset
    columns: tuple[str, str]
    fingerprint: str
    read: Callable[[], Iterator[Document]]

    @classmethod
    def from_files(cls, files: Sequence[str], columns: tuple[str, str]) -> "StoredCorpus":
        """Reads documents of files with [`iterate_documents`].

        Raises:
            ValueError: lists all problems of the files, or the files change during reading.
        """
        files = files_of_all(files, len(columns))
        hashes = [hash_of_file(file) for file in files]
        content = [(has_columns(file), digest) for file, digest in zip(files, hashes, strict=True)]
        return cls._stored(partial(_read_unchanged, files, columns, hashes), columns, content)

    @classmethod
    def from_dataset(
        cls,
        dataset: Dataset | IterableDataset,
        columns: tuple[str, str],
        name: str = "dataset",
        version: str | None = None,
    ) -> "StoredCorpus":
        """Reads documents of a `datasets` dataset with columns of lists of sentences. Errors have places such as
        `name[i]`. A streamed dataset is read once for each `version`.

        Raises:
            ValueError: lists all problems of the documents, or a streamed dataset has no `version`.
        """
        version = version or getattr(dataset, "_fingerprint", None)
        if version is None:
            raise ValueError("A streamed dataset needs a version, such as the revision of its repository.")
        return cls._stored(partial(iterate_dataset, dataset, columns, name), columns, version)

    @classmethod
    def _stored(cls, read: Callable[[], Iterator[Document]], columns: tuple[str, str], content: Any) -> "StoredCorpus":
        fingerprint = Hasher.hash([content, columns, hash_of_code(iterate_documents, open_table, StoredCorpus)])
        try:
            documents = Dataset.from_generator(
                lambda: ({column: document[column] for column in columns} for document in read()),
                features=Features({column: List(Value("string")) for column in columns}),
                fingerprint=fingerprint,
            )
        except DatasetGenerationError as error:
            raise error.__cause__ or error from None
        return cls(documents, columns, fingerprint, read)

    def where(self, document: int, sentence: int) -> str:
        """Returns the place of a source sentence, e.g. `train.en:57`. Reads the corpus again, so use it for errors."""
        places = (found.where for index, found in enumerate(self.read()) if index == document)
        return next(places)(self.columns[0], sentence)


def _read_unchanged(files: Sequence[str], columns: tuple[str, str], hashes: list[str]) -> Iterator[Document]:
    """Yields documents of files. Raises `ValueError` at the end if the files no longer have their hashes."""
    yield from iterate_documents(files, columns)
    changed = [file for file, digest in zip(files, hashes, strict=True) if hash_of_file(file) != digest]
    if changed:
        raise ValueError(f"{', '.join(changed)} changed while being read: start again when nothing writes to it.")
