"""Members of a package are read in bounds, and the others copied as they are packed."""

import io
import zipfile
from contextvars import ContextVar

import pytest
from packages import packed

from modeling_gtransformer.files import zip_package
from modeling_gtransformer.files.zip_package import ZipPackage


MEMBERS = {"a": b"one" * 100, "b/c": bytes(range(256)) * 50, "ä": b""}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_other_members_are_copied(compression, monkeypatch):
    package = ZipPackage(packed(MEMBERS, compression))
    monkeypatch.setattr(zipfile.ZipFile, "read", None)  # nothing is unpacked
    result = package.replaced({"a": b"two"})
    monkeypatch.undo()
    with zipfile.ZipFile(io.BytesIO(result)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == MEMBERS | {"a": b"two"}
        assert list(archive.namelist()) == list(MEMBERS)
        assert archive.getinfo("b/c").compress_type == compression


def test_sizes_behind_the_content_come_in_front():
    """As they are written to a pipe."""

    class Pipe(io.BytesIO):
        def tell(self):
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"one")
        archive.writestr("b", b"two")
    result = ZipPackage(pipe.getvalue()).replaced({"b": b"three"})
    with zipfile.ZipFile(io.BytesIO(result)) as archive:
        assert (archive.read("a"), archive.read("b")) == (b"one", b"three") and archive.testzip() is None
        assert not archive.getinfo("a").flag_bits & zip_package.SIZES_BEHIND


def changed(content, field, value, width=2):
    """A package of one member with another value in its central directory."""
    place = content.index(b"PK\x01\x02") + field
    return content[:place] + value.to_bytes(width, "little") + content[place + width :]


ONE = packed({"a": b"one"}, zipfile.ZIP_STORED)
LONG = packed({"a": b"\1" * 200}, zipfile.ZIP_STORED)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"no package", "it is not a ZIP package"),
        (ONE.replace(b"one", b"two", 1), "'a' of the package is broken: Bad CRC-32"),
        (changed(ONE, 8, 1), "'a' of the package is encrypted: remove the password first"),
        (changed(ONE, 10, 99), "'a' of the package has an unknown compression"),
        (changed(ONE, 24, 2**31, 4), "its text takes more than 64 MiB unpacked"),
        (changed(ONE, 24, 5, 4), "'a' of the package is broken"),
        (changed(ONE, 20, 2**20, 4), "members of the package overlap"),
        # The local header claims a name of 150 bytes, which the message must not repeat.
        (LONG[:26] + b"\x96\0" + LONG[28:], "'a' of the package is broken: File name in directory"),
    ],
)
def test_broken_packages(content, message):
    with pytest.raises(ValueError, match=message) as caught:
        ZipPackage(content).read("a")
    assert len(str(caught.value)) < 120


def test_members_of_one_name(recwarn):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", b"one")
        archive.writestr("a", b"two")
    with pytest.raises(ValueError, match="have the same name"):
        ZipPackage(buffer.getvalue())


def test_a_bomb_is_not_unpacked(monkeypatch):
    """
    Neither one that says how large it is, nor one that says less, nor one of many members; what is not read may be as
    large as it likes.
    """
    monkeypatch.setattr(zip_package, "MAX_BYTES", ContextVar("", default=1000))
    bomb = packed({"a": b"\0" * 10**6, "b": b"\0" * 100})
    with pytest.raises(ValueError, match="unpacked"):
        ZipPackage(bomb).read("a")
    with pytest.raises(ValueError, match="is broken"):
        ZipPackage(changed(bomb, 24, 500, 4)).read("a")
    package = ZipPackage(bomb)
    assert len(package.replaced({"b": package.read("b")})) < 3000
    with pytest.raises(ValueError, match="unpacked"):
        for _ in range(10):
            package.read("b")


def test_names_in_utf_8_that_do_not_say_so():
    """As `zip -X` writes them; names in the code page of DOS stay what they are."""
    for name, stored in (("M\u00fcller.png", "M\u00fcller.png".encode()), ("\u00fc.png", b"\x81.png")):
        plain = packed({"x" * len(stored): b"picture", "page": b"words"})
        package = ZipPackage(plain.replace(b"x" * len(stored), stored))
        assert [*package.members] == [name, "page"] and package.read(name) == b"picture"
        again = ZipPackage(package.replaced({"page": b"more"}))
        assert (again.read(name), again.read("page")) == (b"picture", b"more")


def test_extra_fields_go_with_what_they_described():
    """Such as the times and the sizes of a content that was replaced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        member = zipfile.ZipInfo("a")
        member.extra = b"\x99\x99\x02\x00ok"
        archive.writestr(member, b"one")
    [changed] = zipfile.ZipFile(io.BytesIO(ZipPackage(buffer.getvalue()).replaced({"a": b"two"}))).infolist()
    assert changed.extra == b""
