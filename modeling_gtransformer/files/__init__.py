"""Files in, the same files out: formats of documents, and aligned sentence pairs."""

from .aligned_pairs import ALIGNED_FORMATS
from .encoding import decode
from .formats import ENDINGS, FILE_FORMATS, SplitFile, format_of


__all__ = ["ALIGNED_FORMATS", "ENDINGS", "FILE_FORMATS", "SplitFile", "decode", "format_of"]
