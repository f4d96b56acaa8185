"""Message catalogues: messages without a translation get one, in all their forms."""

import pytest

from modeling_gtransformer.files.formats import SplitFile


PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=3; plural=(n != 1);\\n"

#: main.c:1
msgid "Open"
msgstr ""

# by hand
msgid "done"
msgstr "fertig"

#, fuzzy, c-format
msgid "a file"
msgid_plural "some files"
msgstr[0] "Blatt"
msgstr[1] ""
msgstr[2] ""

#~ msgid "gone"
#~ msgstr "weg"
"""


def test_gettext():
    file = SplitFile(PO, "po", None)
    assert file.sentences == ["Open", "a file", "some files"]
    expected = PO.replace('"Open"\nmsgstr ""', '"Open"\nmsgstr "OPEN"').replace("fuzzy, ", "")
    expected = expected.replace('[0] "Blatt"', '[0] "A FILE"')
    for form in (1, 2):
        expected = expected.replace(f'msgstr[{form}] ""', f'msgstr[{form}] "SOME FILES"')
    assert file.rejoin([sentence.upper() for sentence in file.sentences]) == expected


def test_plural_forms_that_are_there_stay():
    partial = PO.replace("fuzzy, ", "").replace("\n", "\r\n")
    file = SplitFile(partial, "po", None)
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    assert 'msgstr[0] "Blatt"\r\nmsgstr[1] "SOME FILES"\r\n' in result


@pytest.mark.parametrize(
    "content, message",
    [
        ("just text", "no messages in it"),
        ('msgid "a"\nmsgstr "b"\nnonsense\n', "line 3"),
        ('msgid "broken\nmsgstr ""\n', "line 1 has no string"),
    ],
)
def test_broken_catalogues(content, message):
    with pytest.raises(ValueError, match=message):
        SplitFile(content, "po")
