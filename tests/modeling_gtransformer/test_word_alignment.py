from types import SimpleNamespace

import pytest
import torch
from transformers import pipeline

from modeling_gtransformer import word_alignment
from modeling_gtransformer.files import SplitFile
from modeling_gtransformer.plain_text import WORD
from modeling_gtransformer.segment_plan import PlannedDocument, SegmentLimits
from modeling_gtransformer.segment_translation import SegmentTranslator
from modeling_gtransformer.sentence import Sentence


PAIR = ("the old cat sleeps.", "sie schläft. die alt katze")


def words(text):
    return [word[0] for word in WORD.finditer(text)]


def align_words(model, processor, pairs, decoder=None):
    """The alignments that a model, or the decoder given, gives to pairs of a sentence and its translation, each a
    document of its own."""
    limits = SegmentLimits(model, processor, 512, 1, {})
    documents = [PlannedDocument([Sentence(source, is_aligned=True)], processor, limits) for source, _ in pairs]
    segments = [document.segments[0] for document in documents]
    encoded = SegmentTranslator(model, processor, False, {}).encode(segments)
    for segment, (_, translation) in zip(segments, pairs, strict=True):
        [segment.parts[0].target] = processor.encode_sentences([translation], True) if translation else [[]]
        segment.parts[0].text = translation
    places = [(segment.parts[0], row, 1) for row, segment in enumerate(segments)]
    word_alignment.align_parts(decoder or model, processor, places, encoded["encoder_outputs"])
    return [document.parts[0][0].alignment for document in documents]


@pytest.fixture
def pay_attention(monkeypatch):
    """Makes a model look at one word of the sentence whenever it predicts another of the translation."""

    def make(processor, links):
        def attention(model, processor, rows, *_):
            tokens = processor.tokenizer.convert_ids_to_tokens
            for part, _, _ in rows:
                read = tokens(part.ids)
                weights = torch.zeros(len(part.target), len(read))
                for place, token in enumerate(tokens(part.target)):
                    if (seen := links.get(token)) in read:
                        weights[place, read.index(seen)] = 1.0
                yield weights

        monkeypatch.setattr(word_alignment, "_attention", attention)

    return make


def test_rows_are_words_of_the_translation_and_columns_those_of_the_sentence(translation_model, processor):
    model = translation_model()
    implementation = model.config._attn_implementation
    pairs = [PAIR, ("it is old.", "die katze, die."), ("the cat", "")]
    *alignments, blank = align_words(model, processor, pairs)
    for alignment, (sentence, translation) in zip(alignments, pairs, strict=False):
        assert len(alignment) == len(words(translation)) and {*map(len, alignment)} == {len(words(sentence))}
        assert [sum(row) for row in alignment] == pytest.approx([1.0] * len(alignment))
    assert blank is None and model.config._attn_implementation == implementation


def test_a_batch_changes_nothing(translation_model, processor):
    model = translation_model()
    longer = ("it is old. the cat sleeps.", "sie ist alt. die katze schläft.")
    alone, together = align_words(model, processor, [PAIR]), align_words(model, processor, [longer, PAIR])
    torch.testing.assert_close(torch.tensor(alone[0]), torch.tensor(together[1]))


def test_the_word_that_is_looked_at_while_predicting(translation_model, processor, pay_attention):
    model = translation_model()
    pay_attention(processor, {"▁katze": "▁cat", "▁alt": "▁old", "▁die": "▁the"})
    [alignment] = align_words(model, processor, [("the old cat", "katze die alt")])
    assert alignment == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_punctuation_belongs_to_no_word(translation_model, processor, pay_attention):
    pay_attention(processor, {"▁die": "▁the", ".": "▁old", "▁katze": "▁cat"})
    pairs = [("the old cat", ". die katze"), ("the old cat", "die. katze")]
    assert align_words(translation_model(), processor, pairs) == [[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]] * 2


def test_each_row_of_attention_is_that_of_the_position_that_predicts_the_token(translation_model, processor):
    def look(decoder_input_ids, attention_mask, **_):
        place = torch.arange(max(decoder_input_ids.shape[1], attention_mask.shape[1]))
        looks = place[: decoder_input_ids.shape[1], None] + 1 == place[: attention_mask.shape[1]]
        return SimpleNamespace(cross_attentions=[looks.expand(len(attention_mask), 1, -1, -1).float()])

    model = translation_model()
    pairs = [("the old cat", "die alt katze"), ("it is", "sie ist")]
    alignments = align_words(model, processor, pairs, SimpleNamespace(model=look))
    assert alignments == [torch.eye(3).tolist(), torch.eye(2).tolist()]


def test_words_in_pieces_and_words_that_stay(translation_model, processor, pay_attention):
    """A word of several tokens has the mean of these; what both have is aligned without the model."""
    model = translation_model()
    pay_attention(processor, {"x": "▁old", "y": "▁cat"})
    [alignment] = align_words(model, processor, [("xe old cat", "xyxy xe")])
    assert alignment == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]
    # "▁xyxy" has five tokens. Its mean of 0.4 has 0.4 of 1.4 looks at the cat, and all of those at "old".
    pay_attention(processor, {"x": "▁old", "y": "▁cat", "▁die": "▁cat"})
    [alignment] = align_words(model, processor, [("old cat", "xyxy die")])
    assert alignment == [pytest.approx([1 / (1 + 0.4 / 1.4), 0.4 / 1.4 / (1 + 0.4 / 1.4)]), [0.0, 1.0]]
    pay_attention(processor, {"▁die": "x", "▁katze": "y"})
    assert align_words(model, processor, [("x y", "die katze")]) == [[[1.0, 0.0], [0.0, 1.0]]]
    pay_attention(processor, {"▁katze": "x", "▁alt": "▁cat"})
    assert align_words(model, processor, [("x cat", "katze alt")]) == [[[1.0, 0.0], [0.0, 1.0]]]


def test_two_words_that_look_at_the_same_one(translation_model, processor, monkeypatch):
    """An article that agrees with its noun looks at it more than at the article."""
    weights = torch.tensor([[0.4, 0.6], [0.0, 1.0]])
    monkeypatch.setattr(word_alignment, "_attention", lambda *_: [weights])
    [alignment] = align_words(translation_model(), processor, [("the cat", "die katze")])
    assert alignment[0][0] > alignment[0][1] and alignment[1] == [0.0, 1.0]
    # One that stays counts as much: 0.6 of 1.6 looks are left for the article, beside all of those at its own.
    [alignment] = align_words(translation_model(), processor, [("the cat", "die cat")])
    assert alignment == [pytest.approx([1 / 1.375, 0.375 / 1.375]), [0.0, 1.0]]


def test_a_long_sentence_is_not_aligned(translation_model, processor, monkeypatch):
    monkeypatch.setattr(word_alignment, "MAX_SENTENCE_TOKENS", 12)
    model = translation_model()
    long, short = align_words(model, processor, [("the cat " * 10, "die katze"), ("the cat", "die katze")])
    assert long is None and short is not None


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("html", "<p>the <b>old</b> cat</p>", "<p>katze die <b>alt</b></p>"),
        ("html", "<p><i>the</i> old cat</p>", "<p>katze <i>die</i> alt</p>"),
        ("html", "<p>the old <a href='x'>cat</a>.</p>", "<p><a href='x'>katze</a> die alt.</p>"),
        ("html", "<p><b>the <i>old</i></b> cat.</p>", "<p>katze <b>die <i>alt</i></b>.</p>"),
        ("markdown", "the **old** cat\n", "katze die **alt**\n"),
        ("markdown", "[the](x.md) old cat\n", "katze [die](x.md) alt\n"),
    ],
)
def test_markup_goes_with_its_words(translation_model, processor, pay_attention, format, text, expected):
    model = translation_model()
    pay_attention(processor, {"▁katze": "▁cat", "▁alt": "▁old", "▁die": "▁the"})
    file = SplitFile(text, format)
    translation = "katze die alt" + "." * file.sentences[0].endswith(".")
    assert file.styled == [True]
    alignments = align_words(model, processor, [(file.sentences[0], translation)])
    assert file.rejoin([translation], alignments) == expected
    assert file.rejoin([translation]) != expected


def test_text_without_markup_asks_for_no_alignment():
    assert SplitFile("<p>the old<br>cat</p><p>it\nis old.</p><p>the <b>cat</b></p>", "html").styled == [
        False,
        False,
        False,
        True,
    ]


def test_the_pipeline_aligns_in_files_of_several_documents(translation_model, processor, monkeypatch):
    """Only sentences with markup between their words."""
    given = []
    monkeypatch.setattr(SplitFile, "rejoin", lambda *args: given.append(args[2:]) or "")
    unit = "<file><body><trans-unit><source>{}</source></trans-unit></body></file>"
    sources = "it is old.", "the <g id='1'>old</g> cat.", "it <g id='1'>is</g> old."
    content = f'<xliff version="1.2">{"".join(map(unit.format, sources))}</xliff>'
    translate = pipeline("document-translation", model=translation_model(), processor=processor)
    result = translate(content, format="xliff", splitter="line")
    [(alignments,)] = given
    assert len(result["segments"]) == 3 and [alignment is None for alignment in alignments] == [True, False, False]
    for pair, alignment in zip(result["sentences"][1:], alignments[1:], strict=True):
        assert len(alignment) == len(words(pair["translation_text"]))
        assert {*map(len, alignment)} == {len(words(pair["source_text"]))}
    translate("<p>it is old.</p>", format="html", splitter="line")
    assert given[1:] == [()]


def test_the_pipeline_returns_alignments_where_they_are_asked_for(translation_model, processor):
    translate = pipeline("document-translation", model=translation_model(), processor=processor)
    copied, sentence = translate(["42", "the old cat"], word_alignment=True)["sentences"]
    assert copied["alignment"] is None and "alignment" not in translate("the old cat")["sentences"][0]
    assert [sum(row) for row in sentence["alignment"]] == pytest.approx([1.0] * len(sentence["alignment"]))
