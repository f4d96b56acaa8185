"""Converted checkpoints compute and generate what the authors' code printed for them, and translate text."""

import json

import pytest
import sentencepiece
import torch
from fairseq_reference import MERGES, PAD, WORDS, Reference, older_names, write_run
from transformers import AutoModelForSeq2SeqLM, pipeline

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.training.fairseq_conversion import FairseqOptions, convert_fairseq


CONFIGS = ["postnorm_sin_k2", "postnorm_sin_k0", "mbart_prenorm_learned_k2"]
UNTIED = {"share_all_embeddings": False, "share_decoder_input_output_embed": False}
DOCUMENT = ["the cat is old .", "it sleeps ."]


@pytest.fixture
def run(tmp_path):
    """Writes what a run leaves behind, and gives a function that converts it with changed options."""

    def write(args, weights, **kwargs):
        write_run(tmp_path, args, weights, **kwargs)
        files = {"checkpoint": tmp_path / "checkpoint_best.pt", "dict": tmp_path / "dict.en.txt"}
        files |= {"output": tmp_path / "new" / "model", "bpe_codes": tmp_path / "code"}
        return lambda **changes: convert_fairseq(FairseqOptions(**{**files, **changes}))

    return write


@pytest.mark.parametrize("generation", ["2021", "older"])
@pytest.mark.parametrize("name", CONFIGS)
def test_states_logits_and_beams_of_the_authors(run, tmp_path, name, generation):
    reference, batch = Reference(name), "valid_ragged"
    if generation == "2021":
        run(reference.meta["args"], reference.weights)()
    else:
        # As torch 1.4 wrote it, trained before the models were called gtransformer.
        args = reference.meta["args"] | {
            "arch": reference.meta["args"]["arch"].replace("gtransformer", "transformer_doc")
        }
        run(args, older_names(reference.weights), _use_new_zipfile_serialization=False)()
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "new" / "model").eval()
    inputs = reference.batch(batch)
    outputs = model(**inputs)
    real, real_target = inputs["attention_mask"].bool(), inputs["decoder_input_ids"] != PAD
    states = outputs.encoder_last_hidden_state
    torch.testing.assert_close(states[real], reference[f"{batch}.encoder_out"][real], rtol=1e-4, atol=2e-5)
    theirs = reference[f"{batch}.logits"][real_target]
    torch.testing.assert_close(outputs.logits[real_target], theirs, rtol=1e-4, atol=2e-5)
    # The authors let a model write made-up words, [en] and <mask>, and their limit is short of one source token.
    model.generation_config.suppress_tokens = None
    sequences = model.generate(
        inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        num_beams=5,
        early_stopping=True,
        max_length_b=10 - 1.2 + 1e-6,
    )
    documents = reference.meta["generation"][f"{batch}.beam5"]["hyps"]
    ours = [[token for token in row if token != PAD] for row in sequences[:, 1:].tolist()]
    assert ours == [best["tokens"] for best, *_ in documents]


def test_the_result_translates(run, tmp_path, capsys):
    reference = Reference("postnorm_sin_k2")
    run(reference.meta["args"], reference.weights)()
    assert "115 source and 115 target tokens" in capsys.readouterr().out
    output = tmp_path / "new" / "model"
    assert [path.name for path in output.parent.iterdir()] == ["model"]
    for file in output.glob("*.json"):
        assert str(tmp_path) not in file.read_text()
    processor = GTransformerProcessor.from_pretrained(output)
    ids = processor(DOCUMENT, DOCUMENT)
    pieces = ["the", "cat", "is", "ol@@", "d", "."]
    assert ids["input_ids"][0][:8] == [0, *(WORDS.index(piece) + 4 for piece in pieces), 2]
    assert ids["labels"][0][-1] == reference.meta["special"]["[de]"]
    translator = pipeline("document-translation", model=str(output))
    sentences = translator(DOCUMENT)["sentences"]
    assert [sentence["source_text"] for sentence in sentences] == DOCUMENT
    translations = " ".join(sentence["translation_text"] for sentence in sentences)
    assert translations and not any(token in translations for token in ("@@", "madeupword", "[", "<"))
    # <unk>, the made-up words, [en] and <mask>.
    assert translator.model.generation_config.suppress_tokens == [3, 109, 110, 111, 112, 114]


def test_two_dictionaries(run, tmp_path, capsys):
    reference = Reference("postnorm_sin_k2")
    weights = reference.weights
    weights["encoder.embed_tokens.weight"] = torch.randn(120, 32)
    convert = run(reference.meta["args"] | UNTIED, weights)
    source_words = [*reversed(WORDS), *(f"quelle{number}" for number in range(5))]
    (tmp_path / "dict.source.txt").write_text("".join(f"{word} 1\n" for word in source_words))
    with pytest.raises(ValueError, match=r"dictionary has 115 tokens, the checkpoint's encoder 120"):
        convert()
    convert(dict=tmp_path / "dict.source.txt", target_dict=tmp_path / "dict.en.txt")
    output = tmp_path / "new" / "model"
    assert f"{output}/source reads documents, {output}/target writes them" in capsys.readouterr().out
    source, target = (GTransformerProcessor.from_pretrained(output / side) for side in ("source", "target"))
    model = GTransformerForConditionalGeneration.from_pretrained(output)
    inputs = source(["the cat"], return_tensors="pt")
    assert inputs["input_ids"].tolist() == [[0, 4 + source_words.index("the"), 4 + source_words.index("cat"), 2]]
    assert model.generation_config.eos_token_id == target.target_template.end == 113 != source.target_template.end
    generated = model.generate(**inputs, num_beams=3)
    assert generated.max() < 115 and len(target.batch_decode_sentences(generated)[0]) == 1


def test_sentencepiece(run, tmp_path):
    reference = Reference("mbart_prenorm_learned_k2")
    corpus = [" ".join(DOCUMENT), "die alte katze schläft .", "sie ist alt ."] * 3
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_prefix=str(tmp_path / "spm"), vocab_size=25, minloglevel=2
    )
    spm = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    pieces = [spm.id_to_piece(index) for index in range(3, len(spm))]
    words = [*pieces, *(f"word{number}" for number in range(108 - len(pieces)))]
    convert = run(reference.meta["args"], reference.weights, words=words)
    convert(bpe_codes=None, sentencepiece=tmp_path / "spm.model")
    translator = pipeline("document-translation", model=str(tmp_path / "new" / "model"))
    processor = translator.processor
    assert processor.encode_sentences(DOCUMENT) == [[index + 1 for index in spm.encode(line)] for line in DOCUMENT]
    assert processor.decode_sentences(processor.encode_sentences(DOCUMENT)) == DOCUMENT
    assert len(translator(DOCUMENT)["sentences"]) == 2


def test_what_does_not_fit_is_refused_and_leaves_nothing(run, tmp_path):
    reference = Reference("postnorm_sin_k0")
    convert, output = run(reference.meta["args"], reference.weights), tmp_path / "new" / "model"
    (tmp_path / "dict.de.txt").write_text("".join(f"{word} 1\n" for word in reversed(WORDS)))
    with pytest.raises(ValueError, match="leave out --target_dict"):
        convert(target_dict=tmp_path / "dict.de.txt")
    (tmp_path / "dict.de.txt").write_text("the 1\n")
    with pytest.raises(ValueError, match="checkpoint's decoder 115: give its own by --target_dict"):
        convert(target_dict=tmp_path / "dict.de.txt")
    with pytest.raises(ValueError, match=r"No such file: .*dict\.fr\.txt"):
        convert(target_dict=tmp_path / "dict.fr.txt")
    with pytest.raises(ValueError, match="either bpe_codes or sentencepiece"):
        convert(bpe_codes=None)
    (tmp_path / "code").write_text("\n".join(MERGES))
    with pytest.raises(ValueError, match="begins with 't h'"):
        convert()
    assert not output.exists() and not any(output.parent.iterdir())
    output.mkdir()
    (output / "config.json").write_text(json.dumps({}))
    (tmp_path / "checkpoint_best.pt").write_text("not even read")
    with pytest.raises(FileExistsError, match="not an empty folder"):
        convert()
