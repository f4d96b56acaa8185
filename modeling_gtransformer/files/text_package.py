"""A ZIP package as one file: text members are templates, other members are copied."""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar
from urllib.parse import unquote

from .encoding import decode
from .runs import Block
from .template import TextFile
from .xml_tokens import XmlToken, xml_tokens
from .zip_package import ZipPackage


Content = TypeVar("Content")
Read = TypeVar("Read")


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
        self._package, self._texts = package, read_texts(package, [*readers])
        self._files = {name: in_member(name, read, self._texts[name]) for name, read in readers.items()}
        self.blocks: list[Block] = []
        starts: list[int] = []
        for file in self._files.values():
            starts += [len(self.blocks) + start for start in file.document_starts]
            self.blocks += file.blocks
        self.document_starts = starts if starts and not is_one_document else [0]

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


def read_texts(package: ZipPackage, names: Sequence[str]) -> dict[str, str]:
    """
    Returns the texts of members.

    Raises:
        ValueError: a member is missing or not text.
    """
    if lacking := [name for name in names if name not in package]:
        raise ValueError(f"it has no {lacking[0]!r}")
    contents = package.read([*names])
    return {name: in_member(name, decode, contents[name]) for name in names}


def start_tags(package: ZipPackage, names: Sequence[str]) -> dict[str, list[XmlToken]]:
    """Returns the start tags of XML members."""
    texts = read_texts(package, names)
    tokens = {name: in_member(name, xml_tokens, text) for name, text in texts.items()}
    return {name: [token for token in own if token.kind == "start"] for name, own in tokens.items()}


def in_member(name: str, read: Callable[[Content], Read], content: Content) -> Read:
    with prefixed(f"{name!r} of the package"):
        return read(content)


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
