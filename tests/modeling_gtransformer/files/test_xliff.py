"""XLIFF: units without a translation get one, and nothing else of the file changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from split_file import translated

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter


OLD = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns='urn:oasis:names:tc:xliff:document:1.2'>
  <file original="a.html" source-language="en" datatype="html">
    <header><note>Not this.</note></header>
    <body><!-- nor this -->
      <trans-unit id="1">
        <source>Hello <g id="1">big</g> world.<x id="2" ctype="lb"/>Bye
          now.</source>
        <note>nor this</note>
      </trans-unit>
      <group translate="no"><trans-unit id="2"><source>Kept.</source></trans-unit></group>
      <trans-unit id="3"><source>Done.</source><target state="final">Fertig.</target></trans-unit>
      <trans-unit id="4"><source>Copy &amp; paste.</source><target state='new'>Copy &amp; paste.</target></trans-unit>
      <trans-unit id="5"><source>Empty.</source><target/><alt-trans><target>Leer?</target></alt-trans></trans-unit>
      <trans-unit id="6"><source>12</source></trans-unit><trans-unit id="7"><source/></trans-unit>
    </body>
  </file>
  <file original="b" source-language="en"><body>
    <trans-unit id="1"><source><![CDATA[Two & two.]]></source></trans-unit>
  </body></file>
</xliff>
"""


def targets(words, new='state="translated"'):
    """The file with targets in capitals where `words` is `str.upper`."""
    hello, big, world, bye, now = map(words, ("Hello", "big", " world.", "Bye", "now."))
    content = OLD.replace(
        "now.</source>\n",
        f'now.</source>\n        <target {new}>{hello} <g id="1">{big}</g>{world}<x id="2" ctype="lb"/>{bye}\n'
        f"          {now}</target>\n",
    )
    content = content.replace("<target/>", f"<target {new}>{words('Empty.')}</target>")
    copied = f"<target {new}>{words('Copy')} &amp; {words('paste')}"
    content = content.replace("<target state='new'>Copy &amp; paste", copied)
    content = content.replace("12</source>", f"12</source><target {new}>12</target>")
    two = "<![CDATA[Two & two.]]>" if words is str else "TWO &amp; TWO."
    return content.replace("]]></source>", f"]]></source><target {new}>{two}</target>")


UNIT = '<xliff version="1.2"><file><body><trans-unit>{}</trans-unit></body></file></xliff>'


def test_a_target_of_empty_segments_is_none():
    source = '<mrk mtype="seg" mid="0">One.</mrk> <mrk mtype="seg" mid="1">Two.</mrk>'
    target = '<mrk mtype="seg" mid="0"></mrk> <mrk mtype="seg" mid="1"/>'
    unit = f"<source>One. Two.</source><seg-source>{source}</seg-source><target>{target}</target>"
    file = SplitFile(UNIT.format(unit), "xliff", sentencex_splitter("en"))
    assert '<mrk mtype="seg" mid="1">ZWEI.</mrk></target>' in file.rejoin(["EINS.", "ZWEI."])


@pytest.mark.parametrize("words", [str, str.upper])
def test_version_1(words):
    file = SplitFile(OLD, "xliff", sentencex_splitter("en"))
    assert file.sentences == ["Hello big world.", "Bye now.", "Copy & paste.", "Empty.", "Two & two."]
    assert file.document_sizes == [4, 1]
    assert file.rejoin([*map(words, file.sentences)]) == targets(words)


def test_a_translated_file_comes_back():
    assert translated(targets(str.upper), "xliff") == ([], targets(str.upper))


def test_new_targets_may_be_marked():
    file = SplitFile(OLD, "xliff", None, mark_fuzzy=True)
    assert file.rejoin(file.sentences) == targets(str, 'state="needs-review-translation"')
    file = SplitFile(NEW, "xliff", None, mark_fuzzy=True)
    assert '<segment id="s1" state="translated" subState="gtransformer:needs-review">' in file.rejoin(file.sentences)


NEW = """<x:xliff version="2.1" srcLang="en" xmlns:x="urn:oasis:names:tc:xliff:document:2.0" xmlns:m="urn:m">
<x:file id="f1"><x:unit id="u1"><m:matches><m:match><x:source>Not.</x:source></m:match></m:matches>
<x:originalData><x:data id="d1">%s</x:data><x:data id="d2">&lt;br/&gt;</x:data></x:originalData>
<x:segment id="s1">
  <x:source>Delete <x:ph id="1" dataRef="d1"/><x:ph id="2" dataRef="d2"/> <x:pc id="3">now</x:pc> by
 <x:mrk id="4" translate="no">rm &amp; co</x:mrk>!</x:source>
</x:segment><x:ignorable><x:source> </x:source></x:ignorable><x:segment state="reviewed">
  <x:source>Yes.</x:source><x:target>Ja.</x:target></x:segment><x:segment state="initial">
  <x:source xml:space="preserve">one
two</x:source><x:target>one</x:target></x:segment></x:unit>
<x:unit id="u2" translate="no"><x:segment><x:source>No.</x:source></x:segment></x:unit></x:file></x:xliff>
""".replace("<x:", "<").replace("</x:", "</").replace("xmlns:x", "xmlns")  # fmt: skip


def with_prefix(content):
    """The same file with a prefix for the names of XLIFF."""
    content = content.replace("</", "</x:").replace("</x:m:", "</m:").replace("xmlns=", "xmlns:x=")
    return content.replace("<", "<x:").replace("<x:/", "</").replace("<x:m:", "<m:").replace("<x:x:", "<x:")


@pytest.mark.parametrize("form", [str, with_prefix])
def test_version_2(form):
    file = SplitFile(form(NEW), "xliff", sentencex_splitter("en"))
    assert file.sentences == ["Delete %s now by rm & co!", "one", "two"]
    assert file.protected == [["%s", "rm & co"], [], []]
    expected = NEW.replace('<segment id="s1"', '<segment id="s1" state="translated"')
    expected = expected.replace('state="initial"', 'state="translated"')
    expected = expected.replace("<target>one</target>", "<target>eins\nzwei</target>").replace(
        "!</source>",
        '!</source>\n  <target><mrk id="4" translate="no">rm &amp; co</mrk><ph id="2" dataRef="d2"/> '
        '<pc id="3">löscht</pc> jetzt\n <ph id="1" dataRef="d1"/>!</target>',
    )
    assert file.rejoin(["rm & co löscht jetzt %s!", "eins", "zwei"]) == form(expected)


def test_sentences_that_are_segmented_stay_so():
    segments = '<mrk mtype="seg" mid="1">{} <mrk mtype="x">{}</mrk>.</mrk> <mrk mtype="seg" mid="2">{}.</mrk>'
    source = f"<source>A b. C d.</source><seg-source>{segments.format('A', 'b', 'C d')}</seg-source>"
    target = f'<target state="translated">{segments.format("X", "y", "Z")}</target>'
    file = SplitFile(UNIT.format(source), "xliff", None)
    assert file.sentences == ["A b.", "C d."] and file.rejoin(["X y.", "Z."]) == UNIT.format(source + target)


def test_the_target_language():
    for content, name in ((OLD, "target-language"), (NEW, "trgLang")):
        file = SplitFile(content, "xliff", None, tgt_lang="deu_Latn")
        result = file.rejoin(file.sentences)
        assert f'{name}="deu-Latn"' in result
        again = SplitFile(result, "xliff", None, tgt_lang="de_DE")
        assert again.rejoin(again.sentences) == result
        with pytest.raises(ValueError, match="its target language is deu-Latn, but the translation is in fr"):
            SplitFile(result, "xliff", None, tgt_lang="fr_XX")


def test_a_format_ends_with_its_unit():
    """However many units begin formats that they do not end."""
    units = "</trans-unit><trans-unit>".join(['<source>a <bx id="1"/>the cat</source>'] * 9)
    file = SplitFile(UNIT.format(units), "xliff")
    assert file.styled == [True] * 9


PARTS = [
    "A b. ", "<g id='1'>", "</g>", "<x id='2'/>", "<ph id='3'>%s</ph>", "\n ", "1", "&lt;b&gt;", "<mrk mtype='seg'>",
    "</mrk>", "<![CDATA[c]]>", "<!-- d -->", "<ph id='4' equiv-text='e. F'/>", "<bpt id='5'>&lt;i></bpt>", "猫。",
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS)).map("".join), st.lists(st.text(), min_size=1))
def test_any_unit_gets_a_target(source, words):
    """Its source stays, and what is made of it is a file that has a target for every unit, whatever is put in."""
    content = UNIT.format(f"<source>{source}</source>")
    try:
        file = SplitFile(content, "xliff", sentencex_splitter("en"))
    except ValueError:
        return
    same = file.rejoin(file.sentences)
    target = f'<target state="translated">{source}</target>'
    assert same in (content, content.replace("</source>", f"</source>{target}"))
    result = file.rejoin([words[number % len(words)] for number in range(len(file.sentences))])
    assert f"<source>{source}</source>" in result
    SplitFile(result, "xliff")


@pytest.mark.parametrize("place", ["file", "trans-unit", "source"])
def test_white_space_is_kept_where_an_element_around_says_so(place):
    content = UNIT.format("<source>one\ntwo</source>")
    assert SplitFile(content, "xliff").sentences == ["one two"]
    kept = content.replace(f"<{place}", f'<{place} xml:space="preserve"')
    assert SplitFile(kept, "xliff").sentences == ["one", "two"]
