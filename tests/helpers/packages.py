"""ZIP packages made of texts, and their members."""

import io
import zipfile


def packed(members, compression=zipfile.ZIP_DEFLATED):
    """A package of members by their names, without those that are `None`; `mimetype` is stored."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content, compress_type=zipfile.ZIP_STORED if name == "mimetype" else None)
    return buffer.getvalue()


def saved(document):
    """The bytes of a document of python-docx or a presentation of python-pptx."""
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
WORD_NAMESPACES = 'xmlns:w="{}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'


def word_document(body, namespace=WORD, prolog="", **members):
    """A DOCX file with this body, and more members."""
    document = f"{prolog}<w:document {WORD_NAMESPACES.format(namespace)}><w:body>{body}</w:body></w:document>"
    return packed({"word/document.xml": document} | {f"word/{name}.xml": text for name, text in members.items()})


def unpacked(content):
    """The members of a package by their names, in order: texts, but bytes where they are none in UTF-8."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: text_or_bytes(archive.read(name)) for name in archive.namelist()}


def text_or_bytes(content):
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
