"""A ZIP package. Its members are read within a size limit, or copied in compressed form."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from contextvars import ContextVar
from copy import copy
from textwrap import shorten


# Maximum unpacked size in bytes of all members that are read; the server sets a lower limit. Documents of 1,000 pages
# have a few million bytes.
MAX_BYTES = ContextVar("MAX_BYTES", default=64 * 2**20)
ENCRYPTED, SIZES_BEHIND, UTF_8_NAME = 0x1, 0x8, 0x800
LOCAL_HEADER = struct.Struct("<4s22xHH")


class ZipPackage:
    """
    A ZIP file, with its `members` by name.

    Raises:
        ValueError: the file is not a ZIP file, or is inconsistent.
    """

    def __init__(self, content: bytes):
        self._content = content
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise ValueError(f"it is not a ZIP package: {error}") from error
        members = self._archive.infolist()
        for member in members:
            member.filename = _name(member)
        self.members = {member.filename: member for member in members}
        if len(self.members) < len(members):
            raise ValueError("several members of the package have the same name")
        if sum(member.compress_size for member in members) > len(content):
            raise ValueError("members of the package overlap")
        self._unpacked = 0  # bytes that were read

    def read(self, name: str) -> bytes:
        """
        Returns the unpacked content of a member.

        Raises:
            ValueError: the member is missing, encrypted, compressed by an unknown method, broken or of another size
                than declared, or it exceeds the limit together with those that were read before.
        """
        if name not in self.members:
            raise ValueError(f"it has no {name!r}")
        member = self.members[name]
        if member.flag_bits & ENCRYPTED:
            raise ValueError(f"{name!r} of the package is encrypted: remove the password first")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name!r} of the package has an unknown compression ({member.compress_type})")
        self._unpacked += member.file_size
        if self._unpacked > MAX_BYTES.get():
            raise ValueError(f"its text takes more than {round(MAX_BYTES.get() / 2**20, 1):g} MiB unpacked")
        try:
            content = self._archive.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, OSError) as error:
            # Python's message may contain the raw name of the member.
            raise ValueError(f"{name!r} of the package is broken: {shorten(str(error), 80)}") from error
        if len(content) != member.file_size:
            raise ValueError(f"{name!r} of the package is broken: the package states another length")
        return content

    def replaced(self, contents: Mapping[str, bytes]) -> bytes:
        """Returns the package with new contents of some members. Other members are copied in compressed form."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for member in self.members.values():
                if member.filename in contents:
                    new = copy(member)
                    new.extra = b""
                    archive.writestr(new, contents[member.filename], compress_type=zipfile.ZIP_DEFLATED)
                else:
                    self._copy(archive, member)
        return buffer.getvalue()

    def _copy(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        """Copies the compressed bytes of a member, with its sizes in the local header."""
        header = self._content[member.header_offset : member.header_offset + LOCAL_HEADER.size]
        if len(header) < LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
            raise ValueError(f"{member.filename!r} of the package is broken: it has no header")
        _, name_length, extra_length = LOCAL_HEADER.unpack(header)
        start = member.header_offset + LOCAL_HEADER.size + name_length + extra_length
        packed = self._content[start : start + member.compress_size]
        if len(packed) < member.compress_size:
            raise ValueError(f"{member.filename!r} of the package is broken: it ends too early")
        new = copy(member)
        new.flag_bits &= ~SIZES_BEHIND
        new.extra = b""
        stream = archive.fp
        assert stream is not None
        new.header_offset = stream.tell()
        stream.write(new.FileHeader())
        stream.write(packed)
        # Bookkeeping of `ZipFile.writestr`.
        archive.start_dir = stream.tell()
        archive.filelist.append(new)
        archive.NameToInfo[new.filename] = new
        archive._didModify = True  # type: ignore[attr-defined]


def _name(member: zipfile.ZipInfo) -> str:
    """Returns the name of a member. Some programs write UTF-8 without setting its flag."""
    if member.flag_bits & UTF_8_NAME:
        return member.filename
    try:
        return member.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return member.filename
