"""A ZIP package as one file: text members are templates, other members are copied."""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from urllib.parse import unquote

from .encoding import decode
from .runs import Block
from .template import TextFile
from .xml_tokens import XmlToken, xml_tokens
from .zip_package import ZipPackage


class TextPackage:
    """
    Members of a package as one file. Unchanged members are copied in compressed form.

    Args:
        readers: by member, in reading order, a function that reads its text.
        is_one_document: whether all members are one document; otherwise each has its own documents.

    Raises:
        ValueError: a member is missing or broken.
    """

    def __init__(
        self, package: ZipPackage, readers: Mapping[str, Callable[[str], TextFile]], is_one_document: bool = False
    ):
        self._package = package
        self._texts: dict[str, str] = {}
        self._files: dict[str, TextFile] = {}
        self.blocks: list[Block] = []
        starts: list[int] = []
        for name, read in readers.items():
            self._texts[name] = read_text(package, name)
            with in_member(name):
                file = self._files[name] = read(self._texts[name])
            starts += [len(self.blocks) + start for start in file.document_starts]
            self.blocks += file.blocks
        self.document_starts = [0] if is_one_document else starts

    def fill(self, blocks: Sequence[Sequence[str]]) -> bytes:
        rest = iter(blocks)
        filled = {name: file.fill([*islice(rest, len(file.blocks))]) for name, file in self._files.items()}
        changed = {name: text.encode() for name, text in filled.items() if text != self._texts[name]}
        return self._package.replaced(changed)


@contextmanager
def prefixed(place: str) -> Iterator[None]:
    """Prefixes the message of every `ValueError`, for example with "not a readable e-book"."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def in_member(name: str) -> AbstractContextManager[None]:
    return prefixed(f"{name!r} of the package")


def read_text(package: ZipPackage, name: str) -> str:
    """Returns the text of a member. Raises `ValueError` if it is missing or not text."""
    content = package.read(name)
    with in_member(name):
        return decode(content)


def start_tags(package: ZipPackage, name: str) -> list[XmlToken]:
    """Returns the start tags of an XML member."""
    text = read_text(package, name)
    with in_member(name):
        return [token for token in xml_tokens(text) if token.kind == "start"]


def member_name(reference: str, member: str) -> str:
    """
    Resolves a reference in a member to the name of another member.

    >>> member_name("../text/a%20b.xhtml#c", "OEBPS/nav/toc.ncx"), member_name("/ppt/a.xml", "ppt/slides/b.xml")
    ('OEBPS/text/a b.xhtml', 'ppt/a.xml')
    >>> member_name("../../../etc/passwd", "a/b")  # references never leave the package
    'etc/passwd'
    """
    path = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(member), path)).lstrip("/")
