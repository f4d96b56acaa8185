"""Sentence-level translators of every family: a document is translated as its sentences are alone, before any
fine-tuning."""

import ast
import shutil

import pytest
import torch
from sentence_level_translators import CODES, FAMILIES, PAIRS, encode
from tiny import ONLY_GROUP
from transformers import AutoTokenizer, MarianMTModel, pipeline
from transformers.utils import logging

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.group_tags import read_group_tags


FRESH = ("_global.", "_gate.")
SENTENCES = [*PAIRS]
DOCUMENTS = [SENTENCES[:3], SENTENCES[3:4], [*SENTENCES, *SENTENCES[:2]]]


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request, sentence_level_checkpoint):
    family = request.param
    folder = sentence_level_checkpoint(family.name)
    plain = family.model_class.from_pretrained(folder).eval()
    return family, folder, plain, AutoTokenizer.from_pretrained(folder)


def load(folder, family, **config):
    processor = GTransformerProcessor.from_pretrained(folder, tgt_lang=family.languages[1])
    model = GTransformerForConditionalGeneration.from_pretrained(folder, **config).eval()
    processor.configure(model)
    return processor, model


def alone(family, plain, tokenizer, processor, model, sentences, language=None, **search):
    """Translations of single sentences by the plain model, which must not write what ours does not."""
    language = language or family.languages[1]
    batch = encode(tokenizer, sentences, family.languages[0], language)
    settings = processor.for_languages(tgt_lang=language).generation_settings(model) | {"max_new_tokens": 60}
    translations = []
    for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
        ids = row[mask.bool()][None]
        output = plain.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **settings, **search)
        translations.append(processor.target_template.split(output[0].tolist())[0])
    return translations


def test_every_tensor_is_used(family):
    family, folder, plain, _ = family
    model, info = GTransformerForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
    ours, theirs = model.state_dict(), plain.state_dict()
    missing = {name for name in info["missing_keys"] if any(part in name for part in FRESH)}
    assert missing == {name for name in ours if any(part in name for part in FRESH)}
    assert not info["unexpected_keys"] and not info["mismatched_keys"]
    for name, tensor in theirs.items():
        if not name.endswith("embed_positions.weight") or model.config.position_embedding_type == "learned":
            assert tensor.equal(ours[name]), name


def test_codes_of_languages_are_subwords_as_well(family):
    """Every published vocabulary has the pieces `en` and `de`."""
    family, folder, _, tokenizer = family
    processor, model = load(folder, family)
    texts = ["hen lichen", "is here to stay", "por favor", "the garden de en is to por"]
    expected = tokenizer(texts, add_special_tokens=False).input_ids
    assert processor.encode_sentences(texts) == expected
    subwords = {index for index in tokenizer.convert_tokens_to_ids(CODES) if index != tokenizer.unk_token_id}
    assert len(subwords) == len(CODES)
    assert subwords.isdisjoint(processor.generation_settings(model)["suppress_tokens"])


def test_a_document_reads_as_its_sentences(family):
    """Logits of every sentence, tags, and a batch of unlike documents."""
    family, folder, plain, tokenizer = family
    processor, model = load(folder, family, **ONLY_GROUP)
    batch = processor(DOCUMENTS, [[PAIRS[s] for s in document] for document in DOCUMENTS], return_tensors="pt")
    logits = model(**batch).logits
    read = model.prepare_decoder_input_ids_from_labels(batch["labels"])
    tags = read_group_tags(read, model.config, True, model.target_mask(read))
    source_tags = read_group_tags(batch["input_ids"], model.config, False, batch["attention_mask"])
    for row, document in enumerate(DOCUMENTS):
        assert source_tags[row].max() == len(document)
        inputs = encode(tokenizer, document, *family.languages[:2], [PAIRS[s] for s in document])
        for number, sentence in enumerate(document, 1):
            source = inputs["input_ids"][number - 1][inputs["attention_mask"][number - 1].bool()]
            assert batch["input_ids"][row][source_tags[row] == number].tolist() == source.tolist(), sentence
            labels = inputs["labels"][number - 1]
            labels = labels[: (labels != tokenizer.pad_token_id).sum()][None]
            expected = plain(input_ids=source[None], labels=labels).logits[0]
            found = logits[row][tags[row] == number]
            torch.testing.assert_close(found, expected[: len(found)], rtol=1e-5, atol=1e-5)
            # What is read beyond is the end of the sentence alone.
            assert len(expected) - len(found) <= 1


SEARCHES = {
    "greedy": {"num_beams": 1},
    "no_cache": {"num_beams": 1, "use_cache": False},
    "parallel": {"num_beams": 1, "parallel_sentences": True},
    "beams": {"num_beams": 5, "parallel_sentences": True},
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_document_is_translated_as_its_sentences(family, search):
    family, folder, plain, tokenizer = family
    processor, model = load(folder, family, **ONLY_GROUP)
    outputs = model.generate(**processor(DOCUMENTS, return_tensors="pt"), **SEARCHES[search])
    num_beams = SEARCHES[search]["num_beams"]
    translations = alone(family, plain, tokenizer, processor, model, SENTENCES, num_beams=num_beams)
    expected = dict(zip(SENTENCES, translations, strict=True))
    assert processor.split_sentences(outputs) == [[expected[s] for s in document] for document in DOCUMENTS]
    assert processor.batch_decode_sentences(outputs)[0] == [PAIRS[s] for s in DOCUMENTS[0]]


def test_one_sentence_has_the_beam_of_the_plain_model(family):
    family, folder, plain, tokenizer = family
    processor, model = load(folder, family, **ONLY_GROUP)
    expected = alone(family, plain, tokenizer, processor, model, SENTENCES, num_beams=4)
    outputs = model.generate(**processor([[s] for s in SENTENCES], return_tensors="pt"), num_beams=4)
    assert processor.split_sentences(outputs) == [[words] for words in expected]


def test_confidences_are_those_of_the_sentences_alone(family):
    """A `</s>` counts for the sentence that it closes, also where the decoder reads it as part of the next one."""
    family, folder, *_ = family
    processor, model = load(folder, family, **ONLY_GROUP)
    [together] = translate_documents(model, processor, [SENTENCES], confidence=True)
    apart = translate_documents(model, processor, [[sentence] for sentence in SENTENCES], confidence=True)
    expected = [sentence.confidence for document in apart for sentence in document.sentences]
    assert [sentence.confidence for sentence in together.sentences] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_pipeline_of_a_plain_checkpoint(family, caplog):
    """One call on what Transformers saved: languages at call time, and said once that no context is used."""
    family, folder, *_ = family
    if family.name == "bart":
        with pytest.raises(ValueError, match="is pretrained, but cannot translate yet"):
            pipeline("document-translation", model=folder)
        return
    with caplog.at_level("WARNING"):
        logging.get_logger("transformers").addHandler(caplog.handler)
        translate = pipeline("document-translation", model=folder, tgt_lang=family.languages[1])
    assert "document context is unused until it is fine-tuned" in caplog.text
    expected = [PAIRS[sentence] for sentence in SENTENCES[:3]]
    assert [pair["translation_text"] for pair in translate(SENTENCES[:3])["sentences"]] == expected
    assert translate("\n\n".join(SENTENCES[:3]))["translation_text"] == "\n\n".join(expected)
    for language in family.languages[1:]:
        assert [p["translation_text"] for p in translate(SENTENCES[:3], tgt_lang=language)["sentences"]] == expected


def test_save_and_load(family, tmp_path):
    family, folder, *_ = family
    processor, model = load(folder, family)
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    again = GTransformerForConditionalGeneration.from_pretrained(tmp_path).eval()
    loaded = GTransformerProcessor.from_pretrained(tmp_path)
    assert loaded.sentence_template == processor.sentence_template == again.config.sentence_template
    batch = processor(DOCUMENTS, return_tensors="pt")
    outputs = [each.generate(**batch, num_beams=2) for each in (model, again)]
    assert outputs[0].equal(outputs[1]) and loaded.split_sentences(outputs[1]) == processor.split_sentences(outputs[0])
    assert {name: t.shape for name, t in model.state_dict().items()} == {
        name: t.shape for name, t in again.state_dict().items()
    }


@pytest.mark.parametrize("positions", ["none", "sentence"])
def test_closed_gates_change_no_translation(family, positions):
    """With global attention on top, before anything was learned: what the options of its start promise."""
    family, folder, plain, tokenizer = family
    processor, model = load(folder, family, global_positions=positions, gate_bias=30.0)
    assert set(model.config.encoder_attention_types) == {"combined"}
    expected = alone(family, plain, tokenizer, processor, model, SENTENCES[:3], num_beams=1)
    for search in ({}, {"use_cache": False}, {"parallel_sentences": True}):
        outputs = model.generate(**processor(DOCUMENTS[:1], return_tensors="pt"), num_beams=1, **search)
        assert processor.split_sentences(outputs) == [expected]


@pytest.mark.parametrize(
    "family",
    [family for family in FAMILIES if len(family.languages) >= 4],
    ids=lambda family: family.name,
    indirect=True,
)
def test_three_target_languages_in_one_process(family):
    family, folder, plain, tokenizer = family
    processor, model = load(folder, family, **ONLY_GROUP)
    for language in family.languages[1:]:
        of_language = processor.for_languages(tgt_lang=language)
        # Opus-MT reads the language in the source, the others write it into the target.
        inputs = of_language(DOCUMENTS[:1], return_tensors="pt")
        outputs = model.generate(**inputs, **of_language.generation_settings(model), num_beams=1)
        expected = alone(family, plain, tokenizer, of_language, model, SENTENCES[:3], language, num_beams=1)
        assert of_language.split_sentences(outputs) == [expected]
        code = of_language._id_of("tgt_lang")
        assert (inputs["input_ids"] == code).sum() + (outputs == code).sum() >= 3


CODE_LIKE = ["</s> a dog", "<s>", "a >>deu<< dog", ">>deu<< a dog", ">>de<<", "eng_Latn", "deu_Latn is", "__de__ old"]
CODE_LIKE += ["en_XX", "de_DE the cat", "<pad>", "<unk> dog", "[de]"]


def test_text_that_looks_like_a_code_is_text(family):
    family, folder, *_ = family
    processor, model = load(folder, family)
    encoded = processor.encode_sentences(CODE_LIKE)
    assert not {*processor.structural_token_ids}.intersection(token for ids in encoded for token in ids)
    batch = processor([CODE_LIKE], [CODE_LIKE], return_tensors="pt")
    assert read_group_tags(batch["input_ids"], model.config, False).max() == len(CODE_LIKE)
    outputs = model.generate(**batch | {"labels": None}, num_beams=1, max_length_a=0.0, max_length_b=8)
    assert len(processor.split_sentences(outputs)[0]) == len(CODE_LIKE)


def test_a_training_step(family, tmp_path):
    """What is fresh gets a gradient, and so does what was pretrained; layers are never dropped."""
    family, folder, *_ = family
    processor, model = load(folder, family)
    batch = processor(DOCUMENTS, [[PAIRS[s] for s in document] for document in DOCUMENTS], return_tensors="pt")
    model.train()
    losses = [model(**batch).loss for _ in range(2)]
    assert losses[0].equal(losses[1])
    losses[0].backward()
    read = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert read == {name for name, _ in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    optimizer.step()
    assert model(**batch).loss < losses[0]


def test_tokenizer_of_another_model_is_refused(sentence_level_checkpoint):
    marian, many = map(sentence_level_checkpoint, ("marian", "marian-many"))
    model = GTransformerForConditionalGeneration.from_pretrained(marian)
    with pytest.raises(ValueError, match="load both from one checkpoint"):
        GTransformerProcessor.from_pretrained(many, tgt_lang="deu").configure(model)
    with pytest.raises(ValueError, match="model has the sentence template 'marian'"):
        GTransformerProcessor.from_pretrained(sentence_level_checkpoint("mbart-50"), tgt_lang="de_DE").configure(model)


def test_bare_checkpoints_translate_with_code_from_the_hub(sentence_level_checkpoint, run_without_package, tmp_path):
    """All families at once, in a process that has Transformers only."""
    expected = {}
    for family in FAMILIES:
        if family.name != "bart":
            translate = pipeline(
                "document-translation", model=sentence_level_checkpoint(family.name), tgt_lang=family.languages[1]
            )
            translate.save_pretrained(tmp_path / family.name)
            expected[family.name] = translate(SENTENCES[:3])["translation_text"]
    code = f"""
from transformers import pipeline
for name in {[*expected]!r}:
    translate = pipeline(model={str(tmp_path)!r} + "/" + name, trust_remote_code=True)
    print(repr((name, translate({SENTENCES[:3]!r})["translation_text"])))
"""
    found = dict(map(ast.literal_eval, run_without_package(code).splitlines()))
    assert found == expected


def test_old_files_of_torch(sentence_level_checkpoint, tmp_path):
    """A pickled `pytorch_model.bin` with a table of positions that is computed here."""
    folder = shutil.copytree(sentence_level_checkpoint("marian"), tmp_path / "old")
    plain = MarianMTModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    state = plain.state_dict() | {"model.encoder.embed_positions.weight": torch.randn(64, 32)}
    torch.save(state, folder / "pytorch_model.bin")
    model, info = GTransformerForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
    assert not info["mismatched_keys"] and not {*info["unexpected_keys"]} - {*state}
    assert model.final_logits_bias.equal(plain.final_logits_bias) and model.lm_head.weight.equal(plain.lm_head.weight)
    assert {name.rpartition("layers.")[2][2:].partition(".")[0] for name in info["missing_keys"]} == {
        f"{attention}_{part}" for attention in ("self_attn", "encoder_attn") for part in ("global", "gate")
    }
