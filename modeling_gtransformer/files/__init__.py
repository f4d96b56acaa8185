"""Formats of documents, glossaries, and aligned sentence pairs."""

from .aligned_pairs import ALIGNED_FORMATS
from .consistency import Consistency
from .encoding import decode, encode, find_encoding
from .formats import BILINGUAL_FORMATS, EXTENSIONS, FILE_FORMATS, SplitFile, format_of, not_bilingual
from .glossaries import Glossary, read_glossary


__all__ = [
    "ALIGNED_FORMATS",
    "BILINGUAL_FORMATS",
    "EXTENSIONS",
    "FILE_FORMATS",
    "Consistency",
    "Glossary",
    "SplitFile",
    "decode",
    "encode",
    "find_encoding",
    "format_of",
    "not_bilingual",
    "read_glossary",
]
