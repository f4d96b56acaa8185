"""Plain translators of every family: a document is translated as its sentences are alone, before any fine-tuning."""

import pytest
import torch
from plain_translators import FAMILIES, PAIRS, encode
from tiny import ONLY_GROUP
from transformers import AutoTokenizer, pipeline
from transformers.utils import logging

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.group_tags import read_group_tags


FRESH = ("_global.", "_gate.")
SENTENCES = [*PAIRS]
DOCUMENTS = [SENTENCES[:3], SENTENCES[3:4], [*SENTENCES, *SENTENCES[:2]]]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Folders of tiny trained translators, made when they are asked for."""
    folders = {}

    def folder(family):
        if family.name not in folders:
            folders[family.name] = family.save(tmp_path_factory.mktemp("plain") / family.name)
        return folders[family.name]

    return folder


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request, checkpoints):
    family = request.param
    folder = checkpoints(family)
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
        translations.append(processor.target_frame.split(output[0].tolist())[0])
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
    expected = dict(
        zip(
            SENTENCES,
            alone(family, plain, tokenizer, processor, model, SENTENCES, num_beams=SEARCHES[search]["num_beams"]),
            strict=True,
        )
    )
    assert processor.split_sentences(outputs) == [[expected[s] for s in document] for document in DOCUMENTS]
    assert processor.batch_decode_sentences(outputs)[0] == [PAIRS[s] for s in DOCUMENTS[0]]


def test_one_sentence_has_the_beam_of_the_plain_model(family):
    family, folder, plain, tokenizer = family
    processor, model = load(folder, family, **ONLY_GROUP)
    expected = alone(family, plain, tokenizer, processor, model, SENTENCES, num_beams=4)
    outputs = model.generate(**processor([[s] for s in SENTENCES], return_tensors="pt"), num_beams=4)
    assert processor.split_sentences(outputs) == [[words] for words in expected]


def test_pipeline_of_a_plain_checkpoint(family, caplog):
    """One call on what Transformers saved: languages at call time, and said once that no context is used."""
    family, folder, *_ = family
    if family.name == "bart":
        with pytest.raises(ValueError, match="is pretrained, but no translator"):
            pipeline("document-translation", model=folder)
        return
    with caplog.at_level("WARNING"):
        logging.get_logger("transformers").addHandler(caplog.handler)
        translate = pipeline("document-translation", model=folder, tgt_lang=family.languages[1])
    assert "no sentence of a document sees the others" in caplog.text
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
    assert loaded.sentence_frame == processor.sentence_frame == again.config.sentence_frame
    batch = processor(DOCUMENTS, return_tensors="pt")
    outputs = [each.generate(**batch, num_beams=2) for each in (model, again)]
    assert outputs[0].equal(outputs[1]) and loaded.split_sentences(outputs[1]) == processor.split_sentences(outputs[0])
    assert {name: t.shape for name, t in model.state_dict().items()} == {
        name: t.shape for name, t in again.state_dict().items()
    }
