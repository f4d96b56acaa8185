"""Boundaries between runs: between sentences they stay, inside of one they come to about the same words."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modeling_gtransformer.files import boundaries
from modeling_gtransformer.files.boundaries import WORD
from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.files.runs import Run, SplitBlock
from modeling_gtransformer.plain_text import SplitText, split_text


def text_of(block):
    return "".join(run.text for run in block)


def translate(runs, *translations, splitter=None):
    block = [run if isinstance(run, Run) else Run(run) for run in runs]
    return SplitBlock(block, splitter).fill(translations)


@pytest.mark.parametrize(
    "runs, translation, expected",
    [
        (["The ", "old", " cat"], "Die alte Katze", ["Die ", "alte", " Katze"]),
        (["The old ", "cat", "."], "Die alte Katze.", ["Die alte ", "Katze", "."]),
        (["Good ", "morning"], "Hallo", ["Hallo", ""]),
        (["one two ", "three"], "eins", ["eins", ""]),
        (["a ", "very very very very long", " b"], "x y z", ["x ", "y", " z"]),
        (["He paid 300 euros to ", "Anna Berg", " and went away very quickly."],
         "Schnell weg, 300 Euro an Anna Berg gezahlt.",
         ["Schnell weg, 300 Euro an ", "Anna Berg", " gezahlt."]),
        (["我喜欢", "猫", "。"], "猫が好きです。", ["猫が好き", "です", "。"]),
        (["The ", "cat"], "", ["", ""]),
    ],
)  # fmt: skip
def test_boundaries_inside_a_sentence(runs, translation, expected):
    assert translate(runs, translation) == expected


def test_boundaries_between_sentences_stay():
    runs = ["One. ", " Two", ". ", "Three."]
    sentences = ["Eins zwei.", "Drei vier.", "Fünf."]
    # No translation of one sentence goes into the run of another.
    assert translate(runs, *sentences, splitter=lambda line: ["One.", "Two.", "Three."]) == [
        "Eins zwei. ", " Drei vier", ". ", "Fünf.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "translation, expected",
    [
        ("Nutze foo() und bar() jetzt", ["Nutze ", "`foo()`", " und ", "`bar()`", " jetzt"]),
        ("Nutze bar() und Foo() jetzt", ["Nutze ", "`bar()`", " und ", "`foo()`", " jetzt"]),
        # Words that a translation lost come back.
        ("Nutze foo() jetzt", ["Nutze ", "`foo()`", " ", "`bar()`", " jetzt"]),
        ("Jetzt", ["", "`foo()`", " ", "`bar()`", " Jetzt"]),
    ],
)
def test_what_is_kept(translation, expected):
    runs = ["Use ", Run("foo()", "`foo()`"), " and ", Run("bar()", "`bar()`"), " now"]
    assert translate(runs, translation) == expected


def test_kept_runs_at_the_ends():
    runs = [Run("a", "<a>"), " and ", Run("b", "<b>")]
    assert translate(runs, "sowohl a als auch b dann") == ["<a>", "sowohl als auch dann", "<b>"]


WORDS = st.text("ab1 .,猫", max_size=12)


@given(st.lists(st.builds(Run, WORDS, st.none() | st.just("<>")), min_size=1, max_size=6), WORDS)
@example([Run("1"), Run(". 1")], "")
@example([Run("11"), Run("1"), Run("1")], "1.1.1")
def test_nothing_is_lost(block, translation):
    split = split_text(text_of(block))
    own = SplitBlock(block)
    assert own.fill(own.sentences) == [run.text if run.markup is None else run.markup for run in block]
    if len(own.sentences) != 1:
        return
    runs = own.fill([translation])
    if all(run.markup is None for run in block):
        assert "".join(runs) == split.separators[0] + translation + split.separators[1]
        if WORD.search(split.separators[0]):  # the number of a list, which is no part of the sentence
            return
        bounds = pairwise([0, *accumulate(len(run.text) for run in block)])
        ends = [word.end() for word in WORD.finditer(text_of(block))]
        busy = [i for i, (start, stop) in enumerate(bounds) if any(start < end <= stop for end in ends)]
        assert sum(WORD.search(runs[i]) is not None for i in busy) == min(len(busy), len(WORD.findall(translation)))
    elif any(WORD.search(run.text) for run in block if run.markup is None):
        assert runs.count("<>") >= sum(run.markup is not None for run in block)


def test_a_sentence_through_a_thousand_cues(monkeypatch):
    """Counted, not clocked: its words are looked up for every boundary, not searched in all of it again."""
    times = [f"00:{second // 60:02}:{second % 60:02}" for second in range(1000)]
    cues = "".join(f"1\n{time},000 --> {time},900\nsome more words\n\n" for time in times)
    file = SplitFile(cues, "subtitles", None)
    assert len(file.sentences) == 1
    searched: list[tuple[int, ...]] = []

    class Counted:
        search = boundaries.WORD.search

        def finditer(self, text, *start, word=boundaries.WORD):
            searched.append(start)
            return word.finditer(text, *start)

    monkeypatch.setattr(boundaries, "WORD", Counted())
    assert file.rejoin([file.sentences[0].upper() + " AND MORE"]).count("-->") == 1000
    assert searched.count(()) < 10


STYLED = [Run("The "), Run("black", style=(1,)), Run(" cat "), Run("foo()", "`foo()`"), Run(" sleeps"), Run(" here.")]


def align(runs, translation, links):
    """Translates one sentence, whose words (columns) belong to those of the translation (rows) as linked."""
    source = WORD.findall(text_of(runs))
    alignment = [[float(links.get(word) == other) for other in source] for word in WORD.findall(translation)]
    return SplitBlock(runs).fill([translation], [alignment])


def test_words_go_to_the_runs_that_they_are_aligned_with():
    runs = [Run("The "), Run("black", style=(1,)), Run(" cat, here.")]
    links = {"Hier": "here", "le": "The", "chat": "cat", "noir": "black"}
    assert align(runs, "Hier, le chat noir!", links) == ["Hier, le chat ", "noir", "!"]
    # Also to an empty run at the edge of the sentence.
    runs = [Run(""), Run("Black", style=(1,)), Run(" cats")]
    assert align(runs, "Chats noirs", {"Chats": "cats", "noirs": "Black"}) == ["Chats ", "noirs", ""]


def test_alignment_beside_what_is_kept():
    links = {"chat": "cat", "noir": "black", "dort": "sleeps", "Le": "The", "ici": "here"}
    runs = align(STYLED, "Le chat noir foo() dort ici.", links)
    assert [run.strip() for run in runs] == ["Le chat", "noir", "", "`foo()`", "dort", "ici."]


def test_too_many_runs_for_an_alignment(monkeypatch):
    """Then boundaries are in proportion, in linear time."""
    monkeypatch.setattr("modeling_gtransformer.files.runs.MAX_PLACES", 3)
    runs = [Run("The "), Run("black", style=(1,)), Run(" cat")]
    assert align(runs, "le chat noir", {"noir": "black"}) == translate(["The ", "black", " cat"], "le chat noir")


@given(st.data())
def test_any_alignment_keeps_the_text(data):
    """Nothing is lost or doubled."""
    text = st.text("ab ,-猫", max_size=6)
    runs = data.draw(
        st.lists(st.builds(Run, text, style=st.sampled_from([(), (1,), (1, 2), (3,)])), min_size=1, max_size=6)
    )
    split = SplitBlock(runs)
    translations = [data.draw(st.text("xy ,-猫犬", max_size=12)) for _ in split.sentences]
    alignments = []
    for sentence, translation in zip(split.sentences, translations, strict=True):
        columns = len(WORD.findall(sentence))
        row = st.lists(st.floats(0, 1), min_size=columns, max_size=columns)
        alignments.append([data.draw(row) for _ in WORD.findall(translation)])
    result = split.fill(translations, alignments)
    text = split_text(text_of(runs)) if split.sentences else SplitText([], [text_of(runs)])
    assert len(result) == len(runs) and "".join(result) == text.rejoin(translations)
