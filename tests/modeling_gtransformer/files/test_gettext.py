"""Message catalogues: messages without a translation get one, in all their forms."""

import re
import shutil
import subprocess
from contextlib import nullcontext
from random import Random

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


FOREIGN = """# Two empty comments

#
#
msgid ""
msgstr "X-Field: a\\n"
"Content-Type: text/plain; charset=ISO-8859-1\\n"

#, c-format
#: b.c:2 a.c:1 a.c:1
msgctxt "C"
msgid  "a \\"quoted\\"\\ttab\\n"
"second"
msgstr ""

#, fuzzy
#~ msgid "gone"
#~ msgstr "weg"

msgid "café"
msgstr   "wrapped "
"in no way that gettext does"
"""


def test_every_other_line_is_copied():
    """Other programs order and wrap in other ways. A character set goes with the encoding that the file has."""
    for content in (FOREIGN, FOREIGN.replace("\n", "\r\n")):
        file = SplitFile(content, "po")
        assert file.sentences == ['a "quoted"', "tab", "second"]
        line_end = "\r\n" if "\r" in content else "\n"
        lines = ['msgstr ""', '"Ä \\"Q\\"\\tT\\n"', '"Z\\\\"']
        expected = content.replace(f'msgstr ""{line_end}', "".join(line + line_end for line in lines))
        assert file.rejoin(['Ä "Q"', "T", "Z\\"]) == expected


@pytest.mark.parametrize(
    "language, is_refused", [("fr", True), ("de_AT", False), ("de@euro", False), ("", False), ("LANGUAGE", False)]
)
def test_a_catalogue_of_another_language_is_refused(language, is_refused):
    content = f'msgid ""\nmsgstr "Language: {language}\\n"\n\nmsgid "It is old."\nmsgstr ""\n'
    with pytest.raises(ValueError, match="its language is fr") if is_refused else nullcontext():
        SplitFile(content, "po", tgt_lang="de_DE")


def test_plural_forms_that_are_there_stay():
    partial = PO.replace("fuzzy, ", "").replace("\n", "\r\n")
    file = SplitFile(partial, "po", None)
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    assert 'msgstr[0] "Blatt"\r\nmsgstr[1] "SOME FILES"\r\n' in result


PLURAL = 'msgid ""\nmsgstr ""\n{}\n\nmsgid "{}"\nmsgid_plural "%(n)d files"\nmsgstr[0] ""\n'
SERBIAN = "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;"


@pytest.mark.parametrize(
    "forms, singular, expected",
    [
        # With one form that is for every number, the number must stay.
        ("nplurals=1; plural=0;", "a file", ["%(n)d FILES"]),
        ("nplurals=2; plural=n != 1;", "a file", ["A FILE", "%(n)d FILES"]),
        # The first form is for 21 and 31, too.
        (SERBIAN, "a file", ["%(n)d FILES"] * 3),
        (SERBIAN, "%(n)d file", ["%(n)d FILE", "%(n)d FILES", "%(n)d FILES"]),
    ],
)
def test_forms_of_a_plural(forms, singular, expected):
    file = SplitFile(PLURAL.format(f'"Plural-Forms: {forms}\\n"', singular), "po", None)
    result = file.rejoin([sentence.upper().replace("(N)D", "(n)d") for sentence in file.sentences])
    assert [line.split(" ", 1)[1] for line in result.splitlines() if line.startswith("msgstr[")] == [
        f'"{text}"' for text in expected
    ]


def test_a_template_gets_the_header_of_its_language():
    header = '"Language: \\n"\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
    header += '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"'
    file = SplitFile(PLURAL.format(header, "a file"), "po", None, tgt_lang="ja_XX")
    result = file.rejoin(["a file", "%(n)d filés"])
    for expected in ("Language: ja\\n", "charset=UTF-8\\n", "Plural-Forms: nplurals=1; plural=0;"):
        assert expected in result
    assert 'msgstr[0] "%(n)d filés"\n' in result and "msgstr[1]" not in result


def test_new_translations_may_be_marked():
    file = SplitFile(PO, "po", None, mark_fuzzy=True)
    result = file.rejoin(file.sentences)
    assert result.count("#, fuzzy\n") == 1 and result.count("#, c-format, fuzzy\n") == 1
    assert '# by hand\nmsgid "done"' in result
    old = '#, fuzzy\n#| msgid "Clos"\nmsgid "Close"\nmsgstr "Zu"\n'
    file = SplitFile(old, "po", None)
    assert file.rejoin(["Schließen"]).endswith('\n\nmsgid "Close"\nmsgstr "Schließen"\n')


@pytest.mark.parametrize(
    "forms", ["nplurals=1000000000; plural=0;", "nplurals=2; plural=n % 0;", "nplurals=2; plural=x;", "two"]
)
def test_broken_plural_forms(forms):
    with pytest.raises(ValueError, match="invalid header Plural-Forms"):
        SplitFile(PLURAL.format(f'"Plural-Forms: {forms}\\n"', "a file"), "po")


def test_a_catalogue_without_a_header_gets_one():
    """Readers need the character set and the forms of plurals."""
    po = 'msgid "a file"\nmsgid_plural "some files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    file = SplitFile(po, "po", tgt_lang="ru")
    translated = file.rejoin(["\u0444\u0430\u0439\u043b"] * 2)
    assert "charset=UTF-8" in translated and "Language: ru" in translated and "nplurals=3" in translated


def test_a_catalogue_without_anything_to_translate_keeps_its_header():
    content = 'msgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n"X-Note: y\\n"\n\nmsgid "Gate"\nmsgstr "Tür"\n'
    file = SplitFile(content, "po", None, tgt_lang="de_DE")
    assert file.sentences == [] and file.rejoin([]) == content


HEAD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
BAD = [
    ("%(n)d orders", "%(n) %(ners %(n)ders %"),
    ("%1$s sent %2$d files", "%1$s %2$daten %2$d"),
    ("{a} and {b}", "{a} und {a}"),
    ("Use %s", "Nutze"),
    ("%s has %d files", "%d Dateien hat %s"),
    ("{:d} of {}", "{} von {:d}"),
]


@pytest.mark.parametrize("message, translation", BAD)
def test_a_message_whose_translation_has_other_placeholders_does_not_change(message, translation):
    flag = "python-format" if "%(" in message else "python-brace-format" if "{" in message else "c-format"
    content = f'{HEAD}#, {flag}\nmsgid "{message}"\nmsgstr ""\n\nmsgid "Go"\nmsgstr ""\n'
    file = SplitFile(content, "po")
    assert file.rejoin([translation, "Los"]) == content.replace('"Go"\nmsgstr ""', '"Go"\nmsgstr "Los"')
    assert file.untranslated == [0]
    unit = f'<trans-unit id="1"><source>{message} <g id="1">now</g></source></trans-unit>'
    content = f'<xliff version="1.2"><file><body>{unit}</body></file></xliff>'
    file = SplitFile(content, "xliff")
    assert (file.rejoin([f"{translation} jetzt"]), file.untranslated) == (content, [0])
    assert "<target" in file.rejoin([f"{message} jetzt"])
    assert file.untranslated == []


@pytest.mark.parametrize("translation", ["Sichern %", "{Sichern", "Sichern $", "%s"])
def test_a_format_without_placeholders_gets_none(translation):
    content = f'{HEAD}#, c-format\nmsgid "Save"\nmsgstr ""\n'
    assert SplitFile(content, "po").rejoin([translation]) == content
    ordinary = content.replace("#, c-format\n", "#, no-c-format\n")
    assert (SplitFile(ordinary, "po").rejoin([translation]) == ordinary) == (translation == "%s")


def spoiled(message, random):
    """What a bad model makes of a message."""
    words = message.split(" ")
    place = random.randrange(len(message))
    kinds = [
        random.sample(words, len(words)),
        [message[: place + 1]],
        [message[:place] + random.choice(["%", "{", "}", "% ", "%%", "%(", "$"]) + message[place:]],
        words * 2,
        ["".join(character for character in message if random.random() > 0.1) or "x"],
    ]
    return " ".join(random.choice(kinds)).replace("\\", "")


CATALOGUE = [
    ("c-format", "%s of %d files, %5.2f %%"),
    ("c-format", "%1$s sent %2$d files"),
    ("python-format", "%dm %.3fs in file%s"),
    ("python-format", "%(n)d orders from %(name)s"),
    ("python-brace-format", "{a} and {b}, {}"),
    ("python-brace-format", "Save"),
    ("c-format", "Save all\\n"),
]


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="needs msgfmt: apt-get install gettext")
def test_catalogues_of_a_bad_model_are_valid(tmp_path):
    random = Random(0)
    entries = [
        f'#, {flag}\nmsgctxt "{n}"\nmsgid "{message}"\nmsgstr ""\n' for n in range(40) for flag, message in CATALOGUE
    ]
    file = SplitFile(HEAD + "\n".join(entries), "po")
    catalogue = file.rejoin([spoiled(message, random) for message in file.sentences])
    (tmp_path / "de.po").write_text(catalogue)
    assert len(re.findall(r'msgstr "[^"]', catalogue)) > 10
    subprocess.run(["msgfmt", "-c", "-o", tmp_path / "de.mo", tmp_path / "de.po"], check=True)
