"""Registry of file formats, and [`SplitFile`], which reads and fills a file of any of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from pathlib import PurePath
from typing import Protocol

from ..plain_text import Splitter
from .docx import read_docx
from .epub import read_epub
from .gettext import Catalogue
from .html import read_html
from .markdown import read_markdown
from .odf import read_odf
from .pptx import read_pptx
from .runs import Alignment, Block, SplitBlock
from .substation import read_substation
from .subtitles import read_subtitles
from .wrapped_text import read_wrapped
from .xliff import read_xliff


class TranslatableFile(Protocol):
    """A parsed file: its paragraphs, and the numbers of the paragraphs that begin a document."""

    blocks: list[Block]
    document_starts: list[int]

    def fill(self, blocks: Sequence[Sequence[str]], /) -> str | bytes:
        """Returns the file with these texts, one per run of each block."""


@dataclass(frozen=True)
class FileFormat:
    """
    A file format.

    Attributes:
        extensions: file extensions.
        read: parses the content of a file. Raises `ValueError` if the file is broken.
        binary: whether `read` takes bytes instead of a string.
        options: arguments of [`SplitFile`] that are passed to `read`. With `bilingual`, it keeps each paragraph and
            translates a marked copy after it.
    """

    extensions: tuple[str, ...]
    read: Callable[..., TranslatableFile]
    binary: bool = False
    options: tuple[str, ...] = ()


BILINGUAL, CATALOGUE = ("tgt_lang", "bilingual"), ("tgt_lang", "mark_fuzzy")
FILE_FORMATS = {
    "wrapped": FileFormat((), read_wrapped),
    "markdown": FileFormat((".md", ".markdown"), read_markdown),
    "html": FileFormat((".html", ".htm", ".xhtml"), read_html, options=BILINGUAL),
    "subtitles": FileFormat((".srt", ".vtt"), read_subtitles),
    "ass": FileFormat((".ass", ".ssa"), read_substation),
    "po": FileFormat((".po", ".pot"), Catalogue, options=CATALOGUE),
    "xliff": FileFormat((".xlf", ".xliff"), read_xliff, options=CATALOGUE),
    "docx": FileFormat((".docx",), read_docx, binary=True, options=BILINGUAL),
    "pptx": FileFormat((".pptx",), read_pptx, binary=True),
    "odf": FileFormat((".odt", ".odp"), read_odf, binary=True),
    "epub": FileFormat((".epub",), read_epub, binary=True, options=BILINGUAL),
}


# Formats that can hold source and translation in parallel.
BILINGUAL_FORMATS = ("text", *(name for name, format in FILE_FORMATS.items() if "bilingual" in format.options))

# Plain text needs no reader.
EXTENSIONS = {".txt": "text", **{own: name for name, format in FILE_FORMATS.items() for own in format.extensions}}


class SplitFile:
    """
    A file split into sentences to translate and a template that does not change.

    Args:
        content: text, or the bytes of a binary format.
        splitter: splits a paragraph into sentences; by default a paragraph is one sentence.
        tgt_lang: language of the translation, for files that declare their language.
        mark_fuzzy: whether to mark new translations of a message catalogue or an XLIFF file for review.
        bilingual: whether to keep every paragraph and add its translation after it.

    Attributes:
        sentences: the sentences, in order.
        document_sizes: number of sentences of each document; documents are translated independently.
        protected: for every sentence, words that its translation must preserve, such as code.
        styled: for every sentence, whether inline markup divides its words and must move with them.

    Raises:
        ValueError: the file is broken or has another format.
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
        own = FILE_FORMATS[format]
        if bilingual and "bilingual" not in own.options:
            raise ValueError(not_bilingual(format))
        if isinstance(content, bytes) != own.binary:
            raise ValueError(f"the format {format!r} takes {'bytes' if own.binary else 'a string'}")
        self._mark = ""
        if isinstance(content, str) and content.startswith("\ufeff"):
            self._mark, content = content[0], content[1:]
        options = {"tgt_lang": tgt_lang, "mark_fuzzy": mark_fuzzy, "bilingual": bilingual}
        self._file = own.read(content, **{name: options[name] for name in own.options})
        self._blocks = [SplitBlock(block, splitter) for block in self._file.blocks]
        self.sentences, self.protected, self.styled = (
            list(chain.from_iterable(getattr(block, name) for block in self._blocks))
            for name in ("sentences", "protected", "styled")
        )
        sizes = [len(block.sentences) for block in self._blocks]
        starts = [*self._file.document_starts, len(sizes)]
        self.document_sizes = [sum(sizes[start:stop]) for start, stop in pairwise(starts)]

    def rejoin(self, translations: Sequence[str], alignments: Sequence[Alignment | None] | None = None) -> str | bytes:
        """
        Returns the translated file.

        Args:
            translations: one translation per sentence.
            alignments: for every sentence, an alignment of its words if it is `styled`. Without one, inline markup
                moves in proportion to the text.

        Raises:
            ValueError: the number of translations differs from the number of sentences.
        """
        if len(translations) != len(self.sentences):
            raise ValueError(f"expected {len(self.sentences)} translations, one per sentence, not {len(translations)}")
        rest, aligned = iter(translations), iter(alignments or [None] * len(translations))
        texts = [
            block.fill([*islice(rest, len(block.sentences))], [*islice(aligned, len(block.sentences))])
            for block in self._blocks
        ]
        filled = self._file.fill(texts)
        return self._mark + filled if isinstance(filled, str) else filled

    @property
    def untranslated(self) -> list[int]:
        """Numbers of the sentences that `rejoin` left untranslated because their placeholders changed."""
        starts = [0, *accumulate(len(block.sentences) for block in self._blocks)]
        return [starts[number] for number in getattr(self._file, "untranslated", ())]


def not_bilingual(format: str) -> str:
    supported = ", ".join(BILINGUAL_FORMATS)
    return f"the format {format!r} cannot hold source and translation in parallel; supported formats: {supported}"


def format_of(name: str) -> str:
    """
    Returns the format of a file by its extension.

    Raises:
        ValueError: the extension is unknown.
    """
    extension = PurePath(name).suffix.lower()
    if extension not in EXTENSIONS:
        known = " ".join(EXTENSIONS)
        raise ValueError(f"cannot infer the format from the extension {extension!r}; use --format, or one of {known}")
    return EXTENSIONS[extension]
