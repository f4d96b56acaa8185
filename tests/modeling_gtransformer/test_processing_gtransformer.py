import copy
import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoProcessor, PreTrainedTokenizerFast

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.group_tags import group_tags


SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "[en]", "[de]", "<mask>"]


@pytest.fixture(scope="module")
def bpe_tokenizer():
    """A tokenizer of the user's own, trained on the user's own corpus."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=SPECIALS, show_progress=False)
    tokenizer.train_from_iterator(
        ["the cat sleeps .", "it is old .", "die katze schläft .", "< / s > [ ] x y z"], trainer
    )
    names = dict(zip(["bos_token", "pad_token", "eos_token", "unk_token"], SPECIALS, strict=False))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, mask_token="<mask>", extra_special_tokens=["[en]", "[de]"], **names
    )


@pytest.fixture(scope="module", params=["mbart", "bpe"])
def any_processor(request, mbart_tokenizer, bpe_tokenizer):
    if request.param == "mbart":
        return GTransformerProcessor(mbart_tokenizer)
    return GTransformerProcessor(bpe_tokenizer, src_lang="[en]", tgt_lang="[de]")


def test_token_format(processor):
    inputs = processor(["the cat", "it is old"], ["die katze", "sie ist alt"])
    tokens = processor.tokenizer.convert_ids_to_tokens
    assert tokens(inputs["input_ids"][0]) == ["<s>", "▁the", "▁cat", "</s>", "<s>", "▁it", "▁is", "▁old", "</s>"]
    labels = ["▁die", "▁katze", "</s>", "<s>", "▁sie", "▁ist", "▁alt", "</s>", "de_DE"]
    assert tokens(inputs["labels"][0]) == labels
    assert inputs["attention_mask"] == [[1] * 9]


def test_padding_and_targets_as_in_processors_of_transformers(processor):
    documents, targets = [["the cat"], ["it is", "old"]], [["die katze"], ["sie ist", "alt"]]
    batch = processor(documents, text_target=targets, padding=True)
    expected = processor(documents, targets, return_tensors="pt")
    assert {name: rows.tolist() for name, rows in expected.items()} == dict(batch)
    assert processor(documents, padding="longest") == processor(documents, padding=True)
    assert processor(documents, padding=False) == processor(documents, padding="do_not_pad") == processor(documents)
    with pytest.raises(ValueError, match=r"padding must be one of .*, not 'max_length'"):
        processor(documents, padding="max_length")


def test_what_the_decoder_reads_is_padded_on_the_right(processor):
    """Wherever the tokenizer pads: a model would otherwise start with padding."""
    rows = {name: [[5], [6, 7]] for name in ("input_ids", "attention_mask", "labels", "decoder_input_ids")}
    pad = processor.pad_token_id
    for side in ("left", "right"):
        processor.tokenizer.padding_side = side
        batch = {name: tensor[0].tolist() for name, tensor in processor.pad(rows).items()}
        source, mask = ([pad, 5], [0, 5]) if side == "left" else ([5, pad], [5, 0])
        target = {"labels": [5, -100], "decoder_input_ids": [5, pad]}
        assert batch == {"input_ids": source, "attention_mask": mask, **target}


def test_round_trip(any_processor):
    sentences = ["the cat sleeps .", "it is old ."]
    ids = any_processor(sentences)["input_ids"]
    assert any_processor.batch_decode_sentences([ids[0] + [any_processor.pad_token_id] * 2]) == [sentences]
    assert any_processor.batch_decode_sentences(torch.tensor(ids)) == [sentences]


STRUCTURE = ["</s>", "<s>", "de_DE", "en_XX", "[de]", "<mask>", "<pad>", "＜/s＞", "<unk>", "</s></s>", "<s", "s>"]


@given(st.lists(st.sampled_from([*STRUCTURE, " ", "cat", "x"]), max_size=6).map("".join).filter(str.strip))
def test_structure_in_the_text_is_harmless(any_processor, text):
    ids = any_processor(["the cat", text, "it is"])["input_ids"]
    tags = group_tags(torch.tensor(ids), any_processor.bos_token_id, any_processor.eos_token_id)
    assert tags.max() == 3 and (tags > 0).all()
    words = any_processor.encode_sentences([text])[0]
    assert not set(words) & set(any_processor.structural_token_ids)


def test_structural_text_stays_readable(processor):
    decoded = processor.batch_decode_sentences(processor(["the </s> cat de_DE"])["input_ids"])[0][0]
    assert decoded.replace(" ", "") == "the</s>catde_DE"


def test_text_is_normalised_as_for_mbart(processor):
    assert processor.encode_sentences(["ﬁ"]) == processor.encode_sentences(["fi"])
    raw = GTransformerProcessor(processor.tokenizer, normalization=None)
    assert raw.encode_sentences(["ﬁ"]) != raw.encode_sentences(["fi"])


def test_saved_with_the_checkpoint(any_processor, tiny_model, tmp_path):
    tiny_model().save_pretrained(tmp_path)
    any_processor = copy.copy(any_processor)
    any_processor.normalization, any_processor.target_ratio, any_processor.typical_confidence = "NFC", 1.2, -0.5
    any_processor.save_pretrained(tmp_path)
    loaded = AutoProcessor.from_pretrained(tmp_path)
    assert isinstance(loaded, GTransformerProcessor)
    names = ("src_lang", "tgt_lang", "normalization", "target_template", "structural_token_ids")
    for name in (*names, "target_ratio", "typical_confidence"):
        assert getattr(loaded, name) == getattr(any_processor, name)
    assert loaded(["the cat"])["input_ids"] == any_processor(["the cat"])["input_ids"]


def test_the_field_of_the_template_in_version_0_2(processor, tiny_model, tmp_path):
    """Model and processor were saved with `sentence_frame`."""
    tiny_model().save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    for name in ("config.json", "processor_config.json"):
        text = (tmp_path / name).read_text().replace("sentence_template", "sentence_frame")
        (tmp_path / name).write_text(text.replace('"paper"', '"bart"'))
    config = AutoConfig.from_pretrained(tmp_path)
    assert config.sentence_template == AutoProcessor.from_pretrained(tmp_path).sentence_template == "bart"
    assert not hasattr(config, "sentence_frame")
    assert AutoConfig.from_pretrained(tmp_path, sentence_template="paper").sentence_template == "paper"


def test_configured_model_ends_documents_with_the_tgt_lang(any_processor, tiny_model):
    model = tiny_model(vocab_size=len(any_processor.tokenizer))
    any_processor.configure(model)
    inputs = any_processor([["the cat", "it is"], ["old"]], return_tensors="pt")
    outputs = model.generate(**inputs, do_sample=True, max_length_b=30)
    assert (outputs == any_processor.target_template.end).sum(1).tolist() == [1, 1]
    templated = {any_processor.bos_token_id, any_processor.eos_token_id, any_processor.pad_token_id}
    others = set(any_processor.structural_token_ids) - templated - {any_processor.target_template.end}
    assert not others & set(outputs.flatten().tolist())
    assert [len(document) for document in any_processor.batch_decode_sentences(outputs)] == [2, 1]


def test_what_training_has_measured_counts_for_its_languages(processor):
    processor.target_ratio, processor.typical_confidence = 1.2, -0.5
    same, other = processor.for_languages("en_XX", "de_DE"), processor.for_languages("de_DE", "en_XX")
    assert (same.target_ratio, other.target_ratio, processor.target_ratio) == (1.2, 1.0, 1.2)
    assert (same.typical_confidence, other.typical_confidence) == (-0.5, None)


def test_tokens_are_looked_up_without_copying_the_vocabulary(bpe_tokenizer, monkeypatch):
    """Also those that were added later."""
    processor = GTransformerProcessor(copy.deepcopy(bpe_tokenizer), src_lang="[en]", tgt_lang="[de]")
    before = processor.structural_token_ids
    processor.tokenizer.add_tokens(["[fr]"], special_tokens=True)
    monkeypatch.setattr(type(processor.tokenizer), "get_vocab", None)
    assert processor.structural_token_ids == [*before, len(processor.tokenizer) - 1]
    french = processor.for_languages(tgt_lang="[fr]")
    assert french.build_labels([[5]])[-1] == len(processor.tokenizer) - 1
    processor.tgt_lang = "[fr]"
    assert processor.build_labels([[5]]) == french.build_labels([[5]])


def test_a_processor_in_a_subfolder(tmp_path, sentence_level_checkpoint):
    shutil.copytree(sentence_level_checkpoint("marian"), tmp_path / "opus")
    assert GTransformerProcessor.from_pretrained(tmp_path, subfolder="opus").sentence_template == "marian"


def test_a_break_inside_a_sentence_is_a_space(processor):
    [plain] = processor.encode_sentences(["the cat sleeps"])
    for gap in ("\n", "\t", "\r\n", "\u2028"):
        assert processor.encode_sentences([f"the cat{gap}sleeps"]) == [plain]


def test_batches_from_iterators(processor):
    documents = [["the cat"], ["it is", "old"]]
    for batch in (iter(documents), zip(*[iter(["the cat", "it is"])] * 1, strict=True), tuple(documents)):
        assert len(processor(batch)["input_ids"]) == 2


def test_bad_input_is_refused(processor, tiny_model):
    for documents, message in [
        (["the cat", "  "], "Sentence 2 of the document is empty"),
        (["the cat", "a \ud83d b"], "Sentence 2 of the document has an unpaired surrogate"),
        ("the cat", "not a string"),
        ([], "no sentences"),
        ([["the"], []], "no sentences"),
        (["cat " * 130], "split that sentence"),
        (["the cat sleeps"] * 40, "split the document at sentence boundaries"),
    ]:
        with pytest.raises(ValueError, match=message):
            processor(documents)
    with pytest.raises(ValueError, match="differ in the number of sentences"):
        processor(["the cat", "it is"], ["die katze"])
    with pytest.raises(ValueError, match="has no language 'de'"):
        GTransformerProcessor(processor.tokenizer, tgt_lang="de")
    with pytest.raises(ValueError, match="resize_token_embeddings"):
        processor.configure(tiny_model(vocab_size=50))


@pytest.mark.parametrize("name", ["input_ids", "labels"])
def test_either_side_may_have_as_many_tokens_as_allowed(processor, name):
    """And not one more, which is refused and not cut off."""
    sides = [["the cat"] * 3, ["old"] * 3]
    documents = sides if name == "input_ids" else sides[::-1]
    [ids] = processor(*documents)[name]
    assert processor(*documents, max_length=len(ids))[name] == [ids]
    with pytest.raises(ValueError, match=f"A document has {len(ids)} tokens, .* maximum is {len(ids) - 1}"):
        processor(*documents, max_length=len(ids) - 1)


def test_language_codes_are_those_that_a_caller_gives(processor, sentence_level_checkpoint):
    """Without the marks around them, and without tokens that are no languages."""
    assert {"en_XX", "de_DE", "ro_RO"} <= set(processor.language_codes)
    for family, some in {"m2m_100": {"en", "de"}, "marian-many": {"deu", "fra", "ron"}, "marian": set()}.items():
        codes = GTransformerProcessor.from_pretrained(sentence_level_checkpoint(family)).language_codes
        assert some <= set(codes) and not any(set(code) & set("<>_[]") for code in codes)
        assert family != "marian" or not codes


def test_other_languages_are_known_by_tokens_that_are_not_marked_as_special(bpe_tokenizer):
    """As of a tokenizer of one's own."""
    bpe_tokenizer.add_tokens(["[fr]", "[es]"])
    processor = GTransformerProcessor(bpe_tokenizer, "en", "fr")
    spanish = processor.for_languages(tgt_lang="es")
    for each, code in ((processor, "[fr]"), (spanish, "[es]")):
        assert each.target_template.end == bpe_tokenizer.convert_tokens_to_ids(code)
        assert each.target_template.end in each.structural_token_ids


def test_a_bare_code_is_a_subword_unless_it_is_declared(bpe_tokenizer):
    bpe_tokenizer.add_tokens(["fr", "[fr]", "__es__", "[es]", "it"])
    assert GTransformerProcessor(bpe_tokenizer, "en", "fr").target_template.end == bpe_tokenizer.get_vocab()["[fr]"]
    with pytest.raises(ValueError, match="has no language 'it'"):
        GTransformerProcessor(bpe_tokenizer, "en", "it")
    with pytest.raises(ValueError, match=r"'es' has several tokens: pass one of \[es\], __es__"):
        GTransformerProcessor(bpe_tokenizer, "en", "es")
    assert GTransformerProcessor(bpe_tokenizer, "en", "[es]").target_template.end == bpe_tokenizer.get_vocab()["[es]"]
    bpe_tokenizer.add_tokens(["it"], special_tokens=True)
    assert GTransformerProcessor(bpe_tokenizer, "en", "it").target_template.end == bpe_tokenizer.get_vocab()["it"]
