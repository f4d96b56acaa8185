"""Formats of documents: a name, the endings of its files, and how its text is found and put back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import PurePath
from typing import Protocol

from ..plain_text import Splitter, SplitText, split_text
from .epub import read_epub
from .gettext import Catalogue
from .html import read_html
from .html_bilingual import read_bilingual_html
from .markdown import read_markdown
from .presentation import read_presentation
from .runs import (
    Alignment,
    Block,
    has_words,
    join_across_kept_runs,
    kept_words,
    styled_sentences,
    text_of,
    translated_runs,
)
from .substation import read_substation
from .subtitles import read_subtitles
from .word import WordDocument
from .wrapped_text import read_wrapped
from .xliff import read_xliff


class TranslatableFile(Protocol):
    """A file that a format has taken apart: its paragraphs, and the numbers of those that begin a document."""

    blocks: list[Block]
    document_starts: list[int]

    def fill(self, blocks: Sequence[Sequence[str]], /) -> str | bytes:
        """Returns the file with these texts for the runs of its blocks."""


@dataclass(frozen=True)
class FileFormat:
    """
    A format of files. `read` takes the text of a file, or its bytes if it is `binary`, and those of the arguments of
    [`SplitFile`] that `options` names; so does `read_bilingual`, which leaves the source where it is, and finds the
    text in a marked copy of each paragraph.
    """

    endings: tuple[str, ...]
    read: Callable[..., TranslatableFile]
    binary: bool = False
    options: tuple[str, ...] = ()
    read_bilingual: Callable[..., TranslatableFile] | None = None


FILE_FORMATS = {
    "wrapped": FileFormat((), read_wrapped),
    "markdown": FileFormat((".md", ".markdown"), read_markdown),
    "html": FileFormat((".html", ".htm", ".xhtml"), read_html, False, ("tgt_lang",), read_bilingual_html),
    "subtitles": FileFormat((".srt", ".vtt"), read_subtitles),
    "ass": FileFormat((".ass", ".ssa"), read_substation),
    "po": FileFormat((".po", ".pot"), Catalogue, options=("tgt_lang", "mark_fuzzy")),
    "xliff": FileFormat((".xlf", ".xliff"), read_xliff, options=("tgt_lang", "mark_fuzzy")),
    "docx": FileFormat((".docx",), WordDocument, True, ("tgt_lang",), partial(WordDocument, bilingual=True)),
    "pptx": FileFormat((".pptx",), read_presentation, binary=True),
    "epub": FileFormat((".epub",), read_epub, True, ("tgt_lang",), partial(read_epub, bilingual=True)),
}


# Formats that can hold source and translation side by side.
BILINGUAL_FORMATS = ("text", *(name for name, format in FILE_FORMATS.items() if format.read_bilingual))

# Plain text needs no reader.
ENDINGS = {".txt": "text", **{ending: name for name, kind in FILE_FORMATS.items() for ending in kind.endings}}


class SplitFile:
    """
    A file that was taken apart into its `sentences`, in order; `document_sizes` are the numbers of sentences of each
    of its documents, which are translated independently of each other.

    Args:
        content: text, or the bytes of a binary format.
        splitter: returns the sentences of a paragraph; by default a paragraph is one sentence.
        tgt_lang: language of the translation, for files that say what language they are in.
        mark_fuzzy: whether to mark new translations of a message catalogue or an XLIFF file for review.
        bilingual: whether every paragraph stays, followed by its translation.

    Raises:
        ValueError: the file is broken, or not of this format.
    """

    def __init__(
        self,
        content: str | bytes,
        format: str,
        splitter: Splitter | None = None,
        tgt_lang: str | None = None,
        mark_fuzzy: bool = False,
        bilingual: bool = False,
    ):
        read = FILE_FORMATS[format].read_bilingual if bilingual else FILE_FORMATS[format].read
        if read is None:
            raise ValueError(not_bilingual(format))
        binary = FILE_FORMATS[format].binary
        if isinstance(content, bytes) != binary:
            raise ValueError(f"the format {format!r} takes {'bytes' if binary else 'a string'}")
        self._mark = ""
        if isinstance(content, str) and content.startswith("\ufeff"):
            self._mark, content = content[0], content[1:]
        options = {"tgt_lang": tgt_lang, "mark_fuzzy": mark_fuzzy}
        self._file = read(content, **{name: options[name] for name in FILE_FORMATS[format].options})
        self._splits = [
            join_across_kept_runs(block, split_text(text, splitter)) if has_words(block) else SplitText([], [text])
            for block in self._file.blocks
            for text in [text_of(block)]
        ]
        self.sentences = [sentence for split in self._splits for sentence in split.sentences]
        sizes = [len(split.sentences) for split in self._splits]
        starts = [*self._file.document_starts, len(sizes)]
        self.document_sizes = [sum(sizes[start:stop]) for start, stop in pairwise(starts)]
        # Words that the translation of each sentence must keep, such as code.
        self.kept = [
            words
            for block, split in zip(self._file.blocks, self._splits, strict=True)
            for words in kept_words(block, split)
        ]
        # Whether each sentence has inline markup between its words, which must move with them.
        self.styled = [
            styled
            for block, split in zip(self._file.blocks, self._splits, strict=True)
            for styled in styled_sentences(block, split)
        ]

    def rejoin(self, translations: Sequence[str], alignments: Sequence[Alignment | None] | None = None) -> str | bytes:
        """
        Returns the file with these sentences in place of its own.

        Args:
            alignments: for every sentence, an alignment of its words if it is `styled`; without one, inline markup
                moves in proportion to the text.

        Raises:
            ValueError: the number of sentences differs.
        """
        if len(translations) != len(self.sentences):
            raise ValueError(f"{len(translations)} sentences in place of {len(self.sentences)}.")
        rest, aligned = iter(translations), iter(alignments or [None] * len(translations))
        blocks = [
            translated_runs(
                block, split, [*islice(rest, len(split.sentences))], [*islice(aligned, len(split.sentences))]
            )
            for block, split in zip(self._file.blocks, self._splits, strict=True)
        ]
        filled = self._file.fill(blocks)
        return self._mark + filled if isinstance(filled, str) else filled


def not_bilingual(format: str) -> str:
    """Says that a format has no place for source and translation."""
    return (
        f"the format {format!r} has no place for source and translation side by side; supported are "
        f"{', '.join(BILINGUAL_FORMATS)}"
    )


def format_of(name: str) -> str:
    """
    Returns the format of a file by its ending.

    Raises:
        ValueError: the ending is unknown.
    """
    ending = PurePath(name).suffix.lower()
    if ending not in ENDINGS:
        known = " ".join(ENDINGS)
        raise ValueError(f"the ending {ending!r} says nothing about its format; use --format, or one of {known}")
    return ENDINGS[ending]
