"""Tokenizers of fairseq's dictionaries give the pieces of subword-nmt and SentencePiece, with the dictionary's ids."""

import io
from collections import Counter

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.training.fairseq_tokenizer import bpe_tokenizer, read_dictionary, sentencepiece_tokenizer


# Enough repetition for merges whose results become parts of others, and never stand alone.
CORPUS = [
    "the older cat sleeps longer than the oldest dog .",
    "it &apos;s the coldest winter , and the lowest lake freezes .",
    "die ältere katze schläft länger als der älteste hund .",
    "es ist der kälteste winter , und der tiefste see gefriert .",
] * 3
UNSEEN = ["the lower lakes 雪☃ freeze older", "katzen &apos; s q qu xx .", "schlafen ä th w"]
words = st.text("theoldrcaäwsq☃.", min_size=1, max_size=9)


def write_dictionary(path, pieces):
    path.write_text("".join(f"{piece} {count}\n" for piece, count in pieces), encoding="utf-8")
    return read_dictionary(path, ["en", "de"])


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    """subword-nmt, the dictionary of what it makes of the corpus, and our tokenizer of the two."""
    folder = tmp_path_factory.mktemp("bpe")
    with open(folder / "code", "w", encoding="utf-8") as codes:
        learn_bpe(io.StringIO("\n".join(CORPUS)), codes, 60)
    with open(folder / "code", encoding="utf-8") as codes:
        theirs = BPE(codes)
    counts = Counter(piece for line in CORPUS for piece in theirs.process_line(line).split())
    dictionary = write_dictionary(folder / "dict.txt", [*counts.most_common(), ("madeupword0000", 0)])
    return theirs, dictionary, bpe_tokenizer(dictionary, folder / "code", folder)


def ids_of(pieces, dictionary):
    ids = {word: index for index, word in enumerate(dictionary.words)}
    return [ids.get(piece, ids["<unk>"]) for piece in pieces]


def test_ids_of_the_authors(tmp_path):
    dictionary = write_dictionary(tmp_path / "dict.txt", [("th@@", 9), ("e", 4), ("madeupword0000", 0)])
    specials, codes = ["<s>", "<pad>", "</s>", "<unk>"], ["[en]", "[de]"]
    assert dictionary.words == [*specials, "th@@", "e", "madeupword0000", *codes, "<mask>"]
    assert dictionary.structure == ["madeupword0000", *codes]


@pytest.mark.parametrize("line", CORPUS[:4] + UNSEEN)
def test_pieces_of_subword_nmt(bpe, line):
    theirs, dictionary, tokenizer = bpe
    pieces = theirs.process_line(line).split()
    ids = tokenizer(line, add_special_tokens=False)["input_ids"]
    assert ids == ids_of(pieces, dictionary)
    assert ("<unk>" in tokenizer.convert_ids_to_tokens(ids)) == (line in UNSEEN)
    if line in CORPUS:
        assert "@@ " in theirs.process_line(line) and tokenizer.decode(ids) == line


def test_a_merged_piece_can_be_unknown(bpe):
    """The dictionary has no more than what was left after all merges."""
    theirs, dictionary, tokenizer = bpe
    merged = {first + second for first, second in theirs.bpe_codes}
    left = {f"{piece}@@" for piece in merged if not piece.endswith("</w>")} - {*dictionary.words}
    piece = next(piece for piece in sorted(left) if theirs.process_line(piece[:-2] + "☃").split()[0] == piece)
    unknown = tokenizer.unk_token_id
    assert tokenizer(piece[:-2] + "☃", add_special_tokens=False)["input_ids"] == [unknown, unknown]


@given(st.lists(words, min_size=1, max_size=6).map(" ".join))
def test_pieces_of_any_words(bpe, line):
    theirs, dictionary, tokenizer = bpe
    ids = tokenizer(line, add_special_tokens=False)["input_ids"]
    assert ids == ids_of(theirs.process_line(line).split(), dictionary)


def test_documents_of_bpe(bpe, tmp_path):
    _, dictionary, tokenizer = bpe
    GTransformerProcessor(tokenizer, "[en]", "[de]", normalization=None).save_pretrained(tmp_path)
    processor = GTransformerProcessor.from_pretrained(tmp_path)
    document = ["the older cat .", "it &apos;s [de] madeupword0000 </s> ."]
    inputs = processor(document, document)
    assert inputs["labels"][0][-1] == dictionary.words.index("[de]")
    assert inputs["input_ids"][0].count(processor.eos_token_id) == 2
    assert not {dictionary.words.index(word) for word in dictionary.structure} & {*inputs["input_ids"][0]}
    # A sentence that is cut off inside a word, as an untrained model writes it.
    cut = next(i for i, word in enumerate(dictionary.words) if word.endswith("@@"))
    assert processor.decode_sentences([[cut], [dictionary.words.index("the"), cut]]) == [
        dictionary.words[cut][:-2],
        f"the {dictionary.words[cut][:-2]}",
    ]


@pytest.fixture(scope="module")
def spm(tmp_path_factory):
    """Trains a SentencePiece model, of this type and with these settings."""
    folder = tmp_path_factory.mktemp("spm")

    def train(**settings):
        settings = {"vocab_size": 55, "model_type": "unigram", "minloglevel": 2} | settings
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS), model_prefix=str(folder / "spm"), **settings
        )
        return sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model")), folder / "spm.model"

    return train


def pieces_of(theirs):
    return [theirs.id_to_piece(index) for index in range(3, len(theirs))]


@pytest.mark.parametrize("line", [*CORPUS[:4], "Ⅳ  ﬁx½", "雪☃ the \u3000 cat☃ ", "thecat sleeps"])
def test_pieces_of_sentencepiece(spm, tmp_path, line):
    """Whatever the order of the dictionary, as mBART's, and with SentencePiece's own normalisation."""
    theirs, file = spm()
    dictionary = write_dictionary(tmp_path / "dict.txt", [(piece, 1) for piece in reversed(pieces_of(theirs))])
    tokenizer = sentencepiece_tokenizer(dictionary, file)
    ids = tokenizer(line, add_special_tokens=False)["input_ids"]
    assert ids == ids_of(theirs.encode(line, out_type=str), dictionary)
    if tokenizer.unk_token_id not in ids:
        assert tokenizer.decode(ids) == theirs.decode(theirs.encode(line))


def test_a_dictionary_of_running_text(spm, tmp_path, caplog):
    """It lacks pieces that did not occur, and has characters that did, though SentencePiece does not know them."""
    theirs, file = spm()
    missing = max(pieces_of(theirs), key=len)
    known = [(piece, 1) for piece in pieces_of(theirs) if piece != missing]
    tokenizer = sentencepiece_tokenizer(write_dictionary(tmp_path / "dict.txt", [*known, ("☃", 1)]), file)
    assert f"lacks 1 pieces of {file}, such as ['{missing}']" in caplog.text
    word = missing.replace("▁", "")
    tokens = tokenizer.tokenize(f"{word} ☃")
    assert "☃" in tokens and "<unk>" not in tokens and tokenizer.convert_tokens_to_string(tokens) == f"{word} ☃"


@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "bpe"},
        {"byte_fallback": True, "vocab_size": 311},
        {"user_defined_symbols": "<x>"},
        {"add_dummy_prefix": False},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_other_kinds_of_sentencepiece_are_refused(spm, tmp_path, settings):
    theirs, file = spm(**settings)
    dictionary = write_dictionary(tmp_path / "dict.txt", [(piece, 1) for piece in pieces_of(theirs)])
    with pytest.raises(ValueError, match="only SentencePiece models of the type unigram"):
        sentencepiece_tokenizer(dictionary, file)


@pytest.mark.parametrize("line", ["the", "the x", "the 1 #fairseq:overwrite", " 3", "<s> 1", "cat 2"])
def test_broken_dictionaries(tmp_path, line):
    (tmp_path / "dict.txt").write_text(f"cat 7\n{line}\n")
    with pytest.raises(ValueError, match="line 2: expected a new word and its count"):
        read_dictionary(tmp_path / "dict.txt", ["en", "de"])


@pytest.mark.parametrize(
    "codes, problem",
    [
        ("t h\n", "begins with 't h'"),
        ("#version: 0.1\nt h\n", "begins with '#version: 0.1'"),
        ("#version: 0.2\nt h\nth e</w> 25\n", "line 3: expected two pieces"),
    ],
)
def test_broken_codes(tmp_path, codes, problem):
    (tmp_path / "code").write_text(codes)
    dictionary = write_dictionary(tmp_path / "dict.txt", [("e", 1)])
    with pytest.raises(ValueError, match=problem):
        bpe_tokenizer(dictionary, tmp_path / "code", tmp_path)
