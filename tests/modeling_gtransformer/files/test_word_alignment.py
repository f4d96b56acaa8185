import pytest
import torch
from transformers import pipeline

from modeling_gtransformer import files
from modeling_gtransformer.files import SplitFile, word_alignment
from modeling_gtransformer.files.boundaries import WORD
from modeling_gtransformer.files.word_alignment import align_words


PAIR = ("the old cat sleeps.", "sie schläft. die alt katze")


def words(text):
    return [word[0] for word in WORD.finditer(text)]


@pytest.fixture
def pay_attention(monkeypatch):
    """Makes a model look at one word of the sentence whenever it predicts another of the translation."""

    def make(model, processor, links):
        forward = model.model.forward

        def forward_with_weights(**inputs):
            outputs = forward(**inputs)
            weights = torch.zeros_like(outputs.cross_attentions[0])
            tokenizer = processor.tokenizer
            for row, (source, target) in enumerate(zip(inputs["input_ids"], inputs["decoder_input_ids"], strict=True)):
                read, predicted = (tokenizer.convert_ids_to_tokens(ids.tolist()) for ids in (source, target[1:]))
                for place, token in enumerate(predicted):
                    if (seen := links.get(token)) in read:
                        weights[row, :, place, read.index(seen)] = 1.0
            outputs["cross_attentions"] = (weights,) * len(outputs.cross_attentions)
            return outputs

        monkeypatch.setattr(model.model, "forward", forward_with_weights)

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
    pay_attention(model, processor, {"▁katze": "▁cat", "▁alt": "▁old", "▁die": "▁the"})
    [alignment] = align_words(model, processor, [("the old cat", "katze die alt")])
    assert alignment == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_words_in_pieces_and_words_that_stay(translation_model, processor, pay_attention):
    """A word of several tokens has the mean of these; what both have is aligned without the model."""
    model = translation_model()
    pay_attention(model, processor, {"x": "▁old", "y": "▁cat"})
    [alignment] = align_words(model, processor, [("xe old cat", "xyxy xe")])
    assert alignment == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]


def test_two_words_that_look_at_the_same_one(translation_model, processor, monkeypatch):
    """An article that agrees with its noun looks at it more than at the article."""
    weights = torch.tensor([[0.4, 0.6], [0.0, 1.0]])
    monkeypatch.setattr(word_alignment, "_attention", lambda *_: [weights])
    [alignment] = align_words(translation_model(), processor, [("the cat", "die katze")])
    assert alignment[0][0] > alignment[0][1] and alignment[1] == [0.0, 1.0]


def test_a_sentence_beyond_the_positions_is_not_aligned(translation_model, processor):
    model = translation_model(max_position_embeddings=16)
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
    pay_attention(model, processor, {"▁katze": "▁cat", "▁alt": "▁old", "▁die": "▁the"})
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
    given = []
    monkeypatch.setattr(files, "align_words", lambda *args: [*args[2]])
    monkeypatch.setattr(SplitFile, "rejoin", lambda *args: given.append(args[2]) or "")
    unit = "<file><body><trans-unit><source>{}</source></trans-unit></body></file>"
    sources = "it is old.", "the <g id='1'>old</g> cat.", "it <g id='1'>is</g> old."
    content = f'<xliff version="1.2">{"".join(map(unit.format, sources))}</xliff>'
    translate = pipeline("document-translation", model=translation_model(), processor=processor)
    result = translate(content, format="xliff", splitter="line")
    pairs = [(pair["source_text"], pair["translation_text"]) for pair in result["sentences"]]
    assert len(result["segments"]) == 3 and given == [[None, *pairs[1:]]]


def test_the_pipeline_aligns_what_has_markup(translation_model, processor, monkeypatch):
    asked, given = [], []
    monkeypatch.setattr(files, "align_words", lambda *args: asked.extend(args[2]) or [*range(len(args[2]))])
    monkeypatch.setattr(SplitFile, "rejoin", lambda *args: given.append(args[2:]) or "")
    translate = pipeline("document-translation", model=translation_model(), processor=processor)
    page = "<p>it is old.</p><p>the <b>old</b> cat.</p><p>it <i>is</i> old.</p>"
    sentences = translate(page, format="html", splitter="line")["sentences"]
    assert asked == [(pair["source_text"], pair["translation_text"]) for pair in sentences[1:]]
    assert given.pop() == ([None, 0, 1],)
    asked.clear()
    translate("<p>it is old.</p>", format="html", splitter="line")
    translate("it is old.")
    assert not asked and given == [()]
