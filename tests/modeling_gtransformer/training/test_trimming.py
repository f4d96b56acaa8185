"""A trimmed checkpoint has the pieces and the logits of the original for the given text, and spells other words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sentence_level_translators import FAMILIES, PAIRS
from tiny import TINY
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    pipeline,
)

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.training import trimming
from modeling_gtransformer.training.licenses import base_license
from modeling_gtransformer.training.tokenizer import SPECIAL_TOKENS, train_tokenizer
from modeling_gtransformer.training.trimming import VocabularyOptions, convert_vocabulary, tokens_to_keep


CORPUS = ["the cat is old.", "it sleeps.", "the old cat sleeps.", "die katze ist alt.", "sie schläft.", "alt ist sie."]
SOURCE, TARGET = ["the cat is old.", "it </s> is."], ["die katze ist alt.", "alt."]
UNSEEN = "sleeps cats schläft"


def byte_level_tokenizer():
    """BART's kind; its special tokens come last, so that their ids change."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet))
    model = json.loads(backend.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    return RobertaTokenizer(model["vocab"], merges, add_prefix_space=True, extra_special_tokens=["[en]", "[de]"])


@pytest.fixture(params=["mbart", "bpe", "byte_level"])
def tokenizer(request, mbart_tokenizer):
    if request.param == "mbart":
        return mbart_tokenizer
    if request.param == "byte_level":
        return byte_level_tokenizer()
    return train_tokenizer(CORPUS, ["[en]", "[de]"], 80)


@pytest.fixture
def save(tiny_model, tmp_path):
    """Saves a checkpoint that has more rows than tokens, and text for it, and gives the options that trim it."""

    def save(tokenizer, **config):
        ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "pad_token_id", "eos_token_id")}
        languages = ["en_XX", "de_DE"] if isinstance(tokenizer, MBartTokenizer) else ["[en]", "[de]"]
        model = tiny_model(vocab_size=len(tokenizer) + 3, **ids, **config)
        torch.nn.init.normal_(model.final_logits_bias)
        processor = GTransformerProcessor(tokenizer, *languages)
        processor.configure(model)
        model.generation_config.sequence_bias = [[[len(tokenizer) - 1], 1.0]]
        for part in (model, processor):
            part.save_pretrained(tmp_path / "large")
        (tmp_path / "text.jsonl").write_text(json.dumps({"en": SOURCE, "de": TARGET}), encoding="utf-8")
        (tmp_path / "text.txt").write_text("the cat\n")
        texts = [str(tmp_path / "text.jsonl"), str(tmp_path / "text.txt")]
        return VocabularyOptions(str(tmp_path / "large"), tmp_path / "new" / "small", texts, "en", "de")

    return save


def load(folder):
    return GTransformerProcessor.from_pretrained(folder), GTransformerForConditionalGeneration.from_pretrained(folder)


def old_ids(processor, small_processor):
    """The ids of the trimmed tokenizer's tokens in the original one."""
    tokens = small_processor.tokenizer.convert_ids_to_tokens(range(len(small_processor.tokenizer)))
    return processor.tokenizer.convert_tokens_to_ids(tokens)


@pytest.mark.parametrize("config", [{}, {"tie_word_embeddings": False}], ids=["tied", "untied"])
def test_pieces_and_logits_stay(save, mbart_tokenizer, config):
    options = save(mbart_tokenizer, **config)
    large, small = options.checkpoint, options.output
    convert_vocabulary(options)
    (processor, model), (small_processor, small_model) = load(large), load(small)
    kept = old_ids(processor, small_processor)
    inputs, small_inputs = (p(SOURCE, TARGET, return_tensors="pt") for p in (processor, small_processor))
    for name in ("input_ids", "labels"):
        assert torch.equal(torch.tensor(kept)[small_inputs[name]], inputs[name])
    with torch.no_grad():
        logits, small_logits = model(**inputs).logits, small_model(**small_inputs).logits
    assert small_logits.shape[-1] == len(kept)
    # The licence of what it was made of holds for it, and for what is trained from it.
    (Path(large) / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    assert base_license(str(small)) == "cc-by-nc-4.0"
    torch.testing.assert_close(small_logits, logits[..., kept], rtol=0, atol=1e-6)


def test_every_kind_of_vocabulary(save, tokenizer, capsys):
    """Everything that holds ids follows: tokenizer, configurations, and so translations; other words are spelled."""
    options = save(tokenizer)
    large, small = options.checkpoint, options.output
    convert_vocabulary(options)
    (processor, model), (small_processor, small_model) = load(large), load(small)
    kept, size = old_ids(processor, small_processor), model.config.vocab_size
    assert kept == sorted(kept) and len(kept) < len(tokenizer)
    assert f"{size} -> {len(kept)} tokens" in capsys.readouterr().out

    for config in ("config", "generation_config"):
        for name in ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"):
            assert kept[getattr(getattr(small_model, config), name)] == getattr(getattr(model, config), name)
    settings = small_model.generation_config
    # The model has three rows without a token, which it must not generate.
    suppressed = model.generation_config.suppress_tokens
    assert [kept[token] for token in settings.suppress_tokens] == suppressed[:-3]
    assert suppressed[-3:] == [*range(size)][-3:]
    assert settings.sequence_bias == [[[len(kept) - 1], 1.0]]
    # The file by itself, of which a tokenizer's class may build parts anew.
    file, small_file = (Tokenizer.from_file(f"{folder}/tokenizer.json") for folder in (large, small))
    assert [kept[token] for token in small_file.encode(SOURCE[0]).ids] == file.encode(SOURCE[0]).ids

    unwanted = [*{*range(size)} - {*kept}, *model.generation_config.suppress_tokens]
    [expected] = translate_documents(model, processor, [SOURCE], suppress_tokens=unwanted)
    sentences = pipeline("document-translation", model=str(small))(SOURCE, keep_placeholders=False)["sentences"]
    assert [sentence["translation_text"] for sentence in sentences] == expected.texts and all(expected.texts)

    [ids], [spelled] = processor.encode_sentences([UNSEEN]), small_processor.encode_sentences([UNSEEN])
    assert len(spelled) > len(ids) and small_processor.tokenizer.unk_token_id not in spelled
    assert small_processor.tokenizer.decode(spelled).strip() == UNSEEN


def test_a_plain_mbart_keeps_all_languages(save, mbart_tokenizer):
    options = save(mbart_tokenizer)
    large, small = options.checkpoint, options.output
    plain = MBartForConditionalGeneration(MBartConfig(**TINY | {"vocab_size": len(mbart_tokenizer)}))
    plain.save_pretrained(large)
    convert_vocabulary(options)
    processor, model = GTransformerProcessor.from_pretrained(small, src_lang="fr_XX", tgt_lang="cs_CZ"), load(small)[1]
    rows = old_ids(load(large)[0], processor)
    assert torch.equal(model.model.shared.weight, plain.model.shared.weight[rows])
    # Global attention stays missing, so it is not taken for trained.
    assert model.missing_tensors and model.missing_tensors == load(large)[1].missing_tensors


@pytest.mark.parametrize("family", ["m2m_100-nllb", "mbart-50", "mbart"])
def test_plain_translators_translate_as_before(family, sentence_level_checkpoint, tmp_path, capsys):
    large, small = sentence_level_checkpoint(family), str(tmp_path / "small")
    pairs = [*PAIRS.items()][:4]
    (tmp_path / "text.jsonl").write_text(
        json.dumps({"source": [s for s, _ in pairs], "target": [t for _, t in pairs]})
    )
    convert_vocabulary(VocabularyOptions(str(large), Path(small), [str(tmp_path / "text.jsonl")]))
    assert " -> " in capsys.readouterr().out
    languages = next(each.languages for each in FAMILIES if each.name == family)
    for language in languages[1:]:
        translate, translate_small = (
            pipeline("document-translation", model=folder, src_lang=languages[0], tgt_lang=language)
            for folder in (large, small)
        )
        sources = [source for source, _ in pairs]
        expected = [pair["translation_text"] for pair in translate(sources)["sentences"]]
        assert expected == [target for _, target in pairs]
        assert [pair["translation_text"] for pair in translate_small(sources)["sentences"]] == expected
    model, small_model = translate.model, translate_small.model
    assert small_model.num_parameters() < model.num_parameters()
    assert small_model.get_output_embeddings().out_features < model.get_output_embeddings().out_features
    for is_target in (False, True):
        [ids] = translate_small.processor.encode_sentences(["es soll"], is_target)
        assert translate.processor.tokenizer.unk_token_id not in ids and len(ids) >= len("essoll")


def test_unknown_characters_displace_no_pieces(save, tmp_path):
    """A Unigram model scores them below its lowest piece, which the text does not have."""
    pieces = {"▁": -2.0, "a": -1.0, "abc": -9.0, "cde": -1.0, "d": -9.0, "e": -9.0, "other": -5.0, "lowest": -30.0}
    vocab = [(token, 0.0) for token in SPECIAL_TOKENS] + [*pieces.items()]
    options = save(MBartTokenizer(vocab=vocab, src_lang="en_XX", tgt_lang="de_DE"))
    (tmp_path / "text.txt").write_text("abcde cde\n")
    convert_vocabulary(options)
    tokenizer = load(options.output)[0].tokenizer
    assert tokenizer.tokenize("abcde") == ["▁", "abc", "d", "e"] and "other" not in tokenizer.get_vocab()


def test_nothing_wrong_is_saved(save, mbart_tokenizer, tmp_path, monkeypatch):
    def too_few(*arguments):
        return [token for token in tokens_to_keep(*arguments) if token != mbart_tokenizer.get_vocab()["▁cat"]]

    options = save(mbart_tokenizer)
    monkeypatch.setattr(trimming, "tokens_to_keep", too_few)
    with pytest.raises(ValueError, match=r"tokenizes 'the cat is old\.' differently"):
        convert_vocabulary(options)
    assert list(tmp_path.glob("new/*")) == []


def test_what_cannot_be_trimmed_is_refused(save, mbart_tokenizer):
    options = save(mbart_tokenizer)
    with pytest.raises(FileExistsError, match="choose another one"):
        convert_vocabulary(replace(options, output=Path(options.checkpoint)))
    words = Tokenizer(models.WordLevel({token: i for i, token in enumerate([*SPECIAL_TOKENS, "[de]"])}, "<unk>"))
    special_tokens = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    GTransformerProcessor(PreTrainedTokenizerFast(tokenizer_object=words, **special_tokens)).save_pretrained(
        options.checkpoint
    )
    with pytest.raises(ValueError, match="WordLevel"):
        convert_vocabulary(options)


def test_nothing_to_trim_is_said(save, mbart_tokenizer, capsys):
    options = save(mbart_tokenizer)
    convert_vocabulary(options)
    smaller = options.output.with_name("smaller")
    convert_vocabulary(replace(options, checkpoint=str(options.output), output=smaller))
    assert "nothing to trim" in capsys.readouterr().out and not smaller.exists()


@pytest.mark.parametrize("family", ["plbart", "marian", "m2m_100"])
def test_other_kinds_are_refused(sentence_level_checkpoint, tmp_path, family):
    (tmp_path / "text.txt").write_text("the cat\n")
    options = VocabularyOptions(str(sentence_level_checkpoint(family)), tmp_path / "new", [str(tmp_path / "text.txt")])
    with pytest.raises(ValueError, match=r"Only tokenizer.json of the types Unigram and BPE can be trimmed"):
        convert_vocabulary(options)
