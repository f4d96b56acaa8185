"""Documents become segments at sentence borders, once; what cannot be one is announced, never lost in silence."""

import random

import datasets
import pytest
from word_processor import WordProcessor

from modeling_gtransformer import GTransformerConfig
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus
from modeling_gtransformer.evaluation.translations import segment_sizes
from modeling_gtransformer.training import segments as module
from modeling_gtransformer.training.sampler import TokenBatchSampler
from modeling_gtransformer.training.segments import (
    fit_positions,
    make_segments,
    sample,
    segment_lengths,
    segment_texts,
    target_ratio,
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def record_of(*lengths):
    """A document with sentences of so many words; the target's are one word shorter."""
    return {"en": [" ".join("w" * n) for n in lengths], "de": [" ".join("v" * max(n - 1, 1)) for n in lengths]}


def corpus_of(*records):
    return StoredCorpus.from_dataset(datasets.Dataset.from_list(list(records)), ("en", "de"), "corpus")


def places(segments):
    names = ("document", "first_sentence", "sentences")
    return [tuple(row[name] for name in names) for row in segments.with_format(None)]


def test_short_documents_are_left_out_and_announced_at_every_start(caplog):
    # Words and template of the longer side: ten, eleven and four tokens.
    corpus = corpus_of(record_of(3, 3), record_of(3, 4), record_of(2))
    for _ in range(2):
        caplog.clear()
        segments = make_segments(corpus, WordProcessor(), min_document_tokens=11)
        assert places(segments) == [(1, 0, 2)]
        assert "Dropped 2 of 3 documents with fewer than 11 tokens" in caplog.text
    with pytest.raises(ValueError, match="No document has min_document_tokens=999 tokens"):
        make_segments(corpus, WordProcessor(), min_document_tokens=999)


def test_segments_are_cut_at_sentence_borders():
    corpus = corpus_of(record_of(3, 4, 5, 20, 2), record_of(2))
    segments = make_segments(corpus, WordProcessor(), segment_tokens=15)
    assert places(segments) == [(0, 0, 2), (0, 2, 1), (0, 3, 1), (0, 4, 1), (1, 0, 1)]
    assert segment_lengths(segments)[:2].tolist() == [[11, 9], [7, 6]]
    assert segments[0]["labels"].tolist() == [1, 1, 2, 0, 1, 1, 1, 2, 9]
    texts = [(["w w w", "w w w w"], ["v v", "v v v"]), (["w w w w w"], ["v v v v"])]
    assert segment_texts(segments, corpus)[:2] == texts
    assert len(make_segments(corpus, WordProcessor(), segment_tokens=15, segment_sentences=1)) == 6


@pytest.mark.parametrize(
    ("scope", "what", "kept", "advice"),
    [
        ("document", "2 of 3 segments are", [0], "lower segment_tokens, or split long sentences."),
        ("sentence", "1 of 3 segments have a sentence that is", [0, 2], "split long sentences."),
    ],
)
def test_segments_beyond_the_positions_are_announced_or_refused(caplog, scope, what, kept, advice):
    corpus = corpus_of(record_of(3, 38), record_of(8, 8, 8))
    segments = make_segments(corpus, WordProcessor(), segment_tokens=40)
    message = f"{what} longer than the 16 positions of the model, the first at corpus[0] (en, sentence 2)"
    config = GTransformerConfig(max_position_embeddings=16, position_scope=scope)
    assert places(fit_positions(segments, corpus, config, drop=True)) == [places(segments)[i] for i in kept]
    assert f"{message}: dropped from training." in caplog.text
    with pytest.raises(ValueError) as error:
        fit_positions(segments, corpus, config, drop=False)
    assert str(error.value) == f"{message}: {advice}"
    config.position_embedding_type = "sinusoidal"
    assert fit_positions(segments, corpus, config, drop=False) is segments


def test_the_ratio_covers_nine_tenths_of_the_text():
    """Words without templates: nine segments of ten words have twelve, the last has thirty."""
    pairs = [(10, 12)] * 8 + [(10, 15), (10, 30)]
    records = [{"en": [" ".join("w" * n)], "de": [" ".join("v" * m)]} for n, m in pairs]
    processor = WordProcessor()
    assert target_ratio(make_segments(corpus_of(*records), processor), processor) == 1.5
    longer = [*records, {"en": [" ".join("w" * 100)], "de": [" ".join("v" * 80)]}]
    assert target_ratio(make_segments(corpus_of(*longer), processor), processor) == 1.2
    several = {"en": ["w w"] * 5, "de": ["v v v"] * 5}
    assert target_ratio(make_segments(corpus_of(several), processor), processor) == 1.5


def test_segments_of_a_test_set_are_those_of_training():
    records = [record_of(3, 4, 9), record_of(2), {"en": ["w", "w w"], "de": ["v v v v v v v", "v"]}]
    processor = WordProcessor()
    sizes = segment_sizes(processor, *([record[name] for record in records] for name in ("en", "de")), 12)
    trained = make_segments(corpus_of(*records), processor, 12)
    assert sizes == [[2, 1], [1], [1, 1]]
    assert [size for document in sizes for size in document] == [size for *_, size in places(trained)]
    with pytest.raises(ValueError, match="1 source documents of 2 sentences and 1 target documents of 1 are not par"):
        segment_sizes(processor, [["w", "w"]], [["v"]], 12)


def test_a_sample_is_drawn_by_the_seed_without_replacement():
    segments = make_segments(corpus_of(*(record_of(n) for n in range(1, 9))), WordProcessor())
    drawn = [places(sample(segments, 5, seed)) for seed in (1, 1, 2)]
    assert len(set(drawn[0])) == 5 and drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(ValueError, match="train_segments=9, but the corpus has 8"):
        sample(segments, 9, 1)


@pytest.mark.parametrize("bytes_per_process", [module.BYTES_PER_PROCESS, 1])
def test_sentences_without_tokens_are_all_named(bytes_per_process, monkeypatch):
    """Also by several processes."""
    monkeypatch.setattr(module, "BYTES_PER_PROCESS", bytes_per_process)
    monkeypatch.setattr(module, "DOCUMENTS_AT_ONCE", 1)
    corpus = corpus_of({"en": ["a", "..."], "de": ["b", "c"]}, record_of(1), {"en": ["a"], "de": ["."]})
    with pytest.raises(ValueError) as error:
        make_segments(corpus, WordProcessor())
    assert "2 sentences without any token" in str(error.value)
    assert "corpus[0] (en, sentence 2): nothing to translate" in str(error.value)
    assert "corpus[2] (de, sentence 1): nothing to translate" in str(error.value)


def test_several_processes_give_the_same_segments(monkeypatch, cache):
    corpus, segments = corpus_of(*(record_of(n, n + 1) for n in range(1, 30))), []
    for bytes_per_process in (module.BYTES_PER_PROCESS, 1):
        monkeypatch.setattr(module, "BYTES_PER_PROCESS", bytes_per_process)
        monkeypatch.setattr(WordProcessor, "language", str(bytes_per_process))
        made = make_segments(corpus, WordProcessor(), segment_tokens=20)
        segments.append([*zip(places(made), [row["input_ids"].tolist() for row in made], strict=True)])
    assert len(list(cache.rglob("cache-*_of_*.arrow"))) > 1
    assert segments[0] == segments[1]


def test_a_second_start_tokenizes_only_what_has_changed(tmp_path):
    texts = {"train.en": "a b\nc\n<d>\nd\n", "train.de": "A\nC c\n<d>\nD\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def start(folder=tmp_path, segment_tokens=9, processor=None):
        processor = processor or WordProcessor()
        files = [str(folder / name) for name in texts]
        segments = make_segments(StoredCorpus.from_files(files, ("en", "de")), processor, segment_tokens)
        assert segments.cache_files, "held in memory"
        return [segment["input_ids"].tolist() for segment in segments], processor.encoded

    first, encoded = start()
    assert first == [[0, 1, 1, 2, 0, 1, 2], [0, 1, 2]] and encoded == 6
    assert start() == (first, 0)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in texts:
        (tmp_path / name).rename(moved / name)
    assert start(moved) == (first, 0)
    assert start(moved, segment_tokens=4)[1] == 6
    other = WordProcessor()
    other.language = "fr"
    assert start(moved, processor=other)[1] == 6
    (moved / "train.en").write_text(texts["train.en"].replace("d\n", "dd\n"))
    assert start(moved)[1] == 6


def test_segments_and_batches_are_the_same_in_every_version():
    """A seed means the same training for ever: that of the first version, which kept everything in memory."""
    rng = random.Random(5)
    corpus = corpus_of(*(record_of(*(rng.randint(1, 12) for _ in range(rng.randint(2, 8)))) for _ in range(40)))
    segments = make_segments(corpus, WordProcessor(), segment_tokens=24, min_document_tokens=30)
    assert len(segments) == 97
    segments = fit_positions(segments, corpus, GTransformerConfig(max_position_embeddings=21), drop=True)
    assert len(segments) == 83
    segments = sample(segments, 40, seed=7)
    assert places(segments)[:5] == [(21, 5, 1), (11, 3, 1), (25, 0, 2), (3, 2, 2), (5, 4, 1)]
    batches = TokenBatchSampler(segment_lengths(segments), 64, seed=3, rank=1, world_size=2, accumulation=2)
    epochs = [
        [[17, 33, 35], [23, 30, 12], [10, 24, 19], [29, 39, 31, 37], [18, 16, 14, 3], [15, 20, 25]],
        [[76, 72, 51, 40], [50, 64, 59], [58, 56, 54, 43], [57, 73, 75], [55, 60, 65], [74, 66, 62, 53]],
    ]
    for epoch, expected in enumerate(epochs):
        batches.set_epoch(epoch)
        assert list(batches) == expected


def test_the_longer_side_of_a_pair_counts():
    """A target that is longer than its source fills segments, and has to fit the positions."""
    texts = {"en": ["w", "w w", "w"], "de": [" ".join("v" * n) for n in (4, 5, 20)]}
    corpus = corpus_of(texts)
    segments = make_segments(corpus, WordProcessor(), segment_tokens=15)
    assert places(segments) == [(0, 0, 2), (0, 2, 1)]
    assert places(make_segments(corpus, WordProcessor(), segment_tokens=13)) == [(0, 0, 1), (0, 1, 1), (0, 2, 1)]
    assert segment_lengths(segments).tolist() == [[7, 13], [3, 22]]
    for scope in ("document", "sentence"):
        fits, too_few = (GTransformerConfig(max_position_embeddings=n, position_scope=scope) for n in (22, 21))
        assert len(fit_positions(segments, corpus, fits, drop=False)) == 2
        assert places(fit_positions(segments, corpus, too_few, drop=True)) == [(0, 0, 2)]
        with pytest.raises(ValueError, match=r"1 of 2 segments .* longer than the 21 positions"):
            fit_positions(segments, corpus, too_few, drop=False)
