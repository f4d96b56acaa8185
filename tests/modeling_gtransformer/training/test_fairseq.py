"""Converted checkpoints are the models of the authors' code, and translate text."""

import io
import json
import os
from argparse import Namespace
from collections import Counter

import pytest
import torch
from fairseq_reference import CONFIGS, MERGES, WORDS, Reference, write_run
from hypothesis import example, given
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe
from tiny import STACKS
from transformers import AutoModelForSeq2SeqLM, pipeline

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.training.fairseq import (
    FairseqOptions,
    bpe_tokenizer,
    config_from_fairseq,
    convert_fairseq,
    model_from_fairseq,
    read_checkpoint,
    read_dictionary,
)


DOCUMENT = ["the cat is old .", "it sleeps ."]
# Enough repetition for merges whose results become parts of others, and never stand alone.
CORPUS = [
    "the older cat sleeps longer than the oldest dog .",
    "it &apos;s the coldest winter , and the lowest lake freezes .",
    "die ältere katze schläft länger als der älteste hund .",
    "es ist der kälteste winter , und der tiefste see gefriert .",
] * 3
UNSEEN = ["the lower lakes 雪☃ freeze older", "katzen &apos; s q qu xx .", "schlafen ä th w"]


@pytest.fixture
def reference():
    return Reference("postnorm_sin_k2")


@pytest.fixture
def run(tmp_path):
    """Writes what a run leaves behind, and gives a function that converts it with changed options."""

    def write(args, weights, **kwargs):
        write_run(tmp_path, args, weights, **kwargs)
        files = {"checkpoint": tmp_path / "checkpoint_best.pt", "dict": tmp_path / "dict.en.txt"}
        files |= {"output": tmp_path / "new" / "model", "bpe_codes": tmp_path / "code"}
        return lambda **changes: convert_fairseq(FairseqOptions(**{**files, **changes}))

    return write


@pytest.mark.parametrize("name", CONFIGS)
def test_the_model_is_saved_as_it_computes(run, tmp_path, name):
    """`test_fairseq_parity.py` compares it with the authors' code before it is saved."""
    reference = Reference(name)
    run(reference.meta["args"], reference.weights)()
    model, inputs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "new" / "model"), reference.batch("valid_ragged")
    torch.testing.assert_close(model(**inputs).logits, reference.model(**inputs).logits)


def test_the_result_translates(run, reference, tmp_path, capsys):
    run(reference.meta["args"], reference.weights)()
    assert "115 tokens" in capsys.readouterr().out
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


def test_a_tokenizer_of_mbart(run, tmp_path, mbart_tokenizer):
    reference, folder = Reference("mbart_prenorm_learned_k2"), tmp_path / "mbart"
    mbart_tokenizer.save_pretrained(folder)
    weights, tokens = reference.weights, len(mbart_tokenizer)
    convert = run(reference.meta["args"], weights)
    with pytest.raises(ValueError, match=f"The tokenizer has {tokens} tokens, the checkpoint 115"):
        convert(dict=None, bpe_codes=None, tokenizer=str(folder))
    for name in [name for name, tensor in weights.items() if len(tensor) == 115]:
        weights[name] = torch.ones(tokens, 32)
    run(reference.meta["args"], weights)(dict=None, bpe_codes=None, tokenizer=str(folder))
    processor = GTransformerProcessor.from_pretrained(tmp_path / "new" / "model")
    assert (processor.src_lang, processor.tgt_lang) == ("en_XX", "de_DE")


def test_precision_doc_modes_and_scale(reference):
    """The authors' training with --fp16 saves half precision, and they evaluate in single precision."""
    args = reference.meta["args"] | {"encoder_ctxlayers": 1, "decoder_ctxlayers": 0, "cross_ctxlayers": 7}
    config = config_from_fairseq(args, 115)
    assert config.encoder_attention_types == ["group", "group", "combined"]
    assert config.decoder_attention_types == ["group"] * 3 and config.cross_attention_types == ["combined"] * 3
    config = config_from_fairseq(args | {"doc_mode": "full"}, 115)
    assert {kind for stack in STACKS for kind in config.attention_types(stack)} == {"global"}
    config = config_from_fairseq(args | {"arch": "mbart_large", "no_scale_embedding": True}, 115)
    assert (config.scale_embedding, config.init_std) == (False, 0.02)
    model = model_from_fairseq(reference.meta["args"], {k: v.half() for k, v in reference.weights.items()})
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    embeddings = model.model.encoder.embed_tokens
    torch.testing.assert_close(embeddings(torch.tensor([5])), embeddings.weight[5:6] * 32**0.5)
    assert model.config.scale_embedding and model.config.init_std is None


@pytest.mark.parametrize(
    "argument",
    [
        {"no_token_positional_embeddings": True},
        {"encoder_layers_to_keep": "0,2"},
        {"prepend_bos": True},
        {"decoder_normalize_before": True},
        {"decoder_learned_pos": True},
        {"activation_fn": "swish_"},
    ],
    ids=lambda argument: next(iter(argument)),
)
def test_what_no_configuration_expresses_is_refused(reference, argument):
    with pytest.raises((ValueError, KeyError), match=r"|".join([*argument, *map(str, argument.values())])):
        model_from_fairseq(reference.meta["args"] | argument, reference.weights)


def test_all_weights_are_used_and_none_is_missing(reference, caplog):
    args, weights = reference.meta["args"], reference.weights
    with pytest.raises(ValueError, match=r"'model\.encoder\.layers\.0\.self_attn_gate\.weight'.* are missing"):
        model_from_fairseq(args | {"encoder_ctxlayers": 3}, weights)
    with pytest.raises(ValueError, match=r"\['model\.decoder\.alignment\.weight'\] are not expected"):
        model_from_fairseq(args, weights | {"decoder.alignment.weight": torch.zeros(2)})
    output = "decoder.output_projection.weight"
    for other in ({output: weights[output] + 1}, {}):
        rest = {name: tensor for name, tensor in weights.items() if name != output}
        with pytest.raises(ValueError, match="must share its embeddings"):
            model_from_fairseq(args, rest | other)
    with pytest.raises(RuntimeError, match=r"encoder\.layers\.0\.fc1\.weight"):
        model_from_fairseq(args | {"encoder_ffn_embed_dim": 48}, weights)
    # Plain fairseq's checkpoints lack the authors' arguments, and often the output layer too.
    with pytest.raises(ValueError, match="lack 'doc_mode'"):
        model_from_fairseq({name: value for name, value in args.items() if name != "doc_mode"}, rest)
    mbart = Reference("mbart_prenorm_learned_k2")
    with pytest.raises(RuntimeError, match=r"encoder\.embed_positions\.weight"):
        model_from_fairseq(mbart.meta["args"] | {"max_source_positions": 9, "max_target_positions": 9}, mbart.weights)
    assert "encoder.embed_positions.weight has 98 trained positions" in caplog.text


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "torch1.4"])
def test_loading_runs_no_code(reference, tmp_path, zipped):
    path = tmp_path / "checkpoint_best.pt"
    write_run(tmp_path, reference.meta["args"], reference.weights, _use_new_zipfile_serialization=zipped)
    args, weights = read_checkpoint(path)
    assert args == reference.meta["args"] and weights.keys() == reference.weights.keys()
    args["user_dir"] = Harmful(tmp_path / "harm")
    write_run(tmp_path, args, weights, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"contains a \w+\.mkdir\. Only tensors, .* can run code"):
        read_checkpoint(path)
    assert not (tmp_path / "harm").exists()


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    for content in ({"args": None, "cfg": {"model": {}}, "model": {}}, {"args": Namespace(), "state_dict": {}}):
        torch.save(content, path)
        with pytest.raises(ValueError, match="not a checkpoint of the authors' code"):
            read_checkpoint(path)
    for damaged in (b"", b"no checkpoint", path.read_bytes()[:300]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            read_checkpoint(path)


def test_what_does_not_fit_is_refused_and_leaves_nothing(run, reference, tmp_path):
    convert, output = run(reference.meta["args"], reference.weights), tmp_path / "new" / "model"
    (tmp_path / "dict.de.txt").write_text("the 1\n")
    with pytest.raises(ValueError, match="The tokenizer has 8 tokens, the checkpoint 115"):
        convert(dict=tmp_path / "dict.de.txt")
    with pytest.raises(ValueError, match=r"No such file: .*dict\.fr\.txt"):
        convert(dict=tmp_path / "dict.fr.txt")
    for changes in ({"bpe_codes": None}, {"tokenizer": "mbart"}):
        with pytest.raises(ValueError, match="either dict and bpe_codes, or tokenizer"):
            convert(**changes)
    (tmp_path / "code").write_text("\n".join(MERGES))
    with pytest.raises(ValueError, match="begins with 't h'"):
        convert()
    assert not output.exists() and not any(output.parent.iterdir())
    output.mkdir()
    (output / "config.json").write_text(json.dumps({}))
    (tmp_path / "checkpoint_best.pt").write_text("not even read")
    with pytest.raises(FileExistsError, match="not an empty folder"):
        convert()


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    """subword-nmt, the dictionary of what it makes of the corpus, and our tokenizer of the two."""
    folder = tmp_path_factory.mktemp("bpe")
    with open(folder / "code", "w", encoding="utf-8") as codes:
        learn_bpe(io.StringIO("\n".join(CORPUS)), codes, 60)
    with open(folder / "code", encoding="utf-8") as codes:
        theirs = BPE(codes)
    counts = Counter(piece for line in CORPUS for piece in theirs.process_line(line).split())
    pieces = [*counts.most_common(), ("madeupword0000", 0)]
    (folder / "dict.txt").write_text("".join(f"{piece} {count}\n" for piece, count in pieces), encoding="utf-8")
    words = read_dictionary(folder / "dict.txt", ["en", "de"])
    assert words == ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in pieces), "[en]", "[de]", "<mask>"]
    return theirs, words, bpe_tokenizer(words, folder / "code", folder)


def with_examples(test):
    for line in CORPUS[:4] + UNSEEN:
        test = example(line)(test)
    return test


@with_examples
@given(st.lists(st.text("theoldrcaäwsq☃.", min_size=1, max_size=9), min_size=1, max_size=6).map(" ".join))
def test_pieces_of_subword_nmt(bpe, line):
    theirs, dictionary, tokenizer = bpe
    ids, pieces = tokenizer(line, add_special_tokens=False)["input_ids"], theirs.process_line(line).split()
    assert ids == [dictionary.index(piece if piece in dictionary else "<unk>") for piece in pieces]
    if line in CORPUS + UNSEEN:
        assert ("<unk>" in tokenizer.convert_ids_to_tokens(ids)) == (line in UNSEEN)
    if line in CORPUS:
        assert "@@ " in theirs.process_line(line) and tokenizer.decode(ids) == line


def test_documents_of_bpe(bpe, tmp_path):
    _, words, tokenizer = bpe
    GTransformerProcessor(tokenizer, "[en]", "[de]", normalization=None).save_pretrained(tmp_path)
    processor = GTransformerProcessor.from_pretrained(tmp_path)
    document = ["the older cat .", "it &apos;s [de] madeupword0000 </s> ."]
    inputs = processor(document, document)
    assert inputs["labels"][0][-1] == words.index("[de]")
    assert inputs["input_ids"][0].count(processor.eos_token_id) == 2
    assert not {words.index(word) for word in ("[en]", "[de]", "madeupword0000")} & {*inputs["input_ids"][0]}
    # A sentence that is cut off inside a word, as an untrained model writes it.
    cut = next(i for i, word in enumerate(words) if word.endswith("@@"))
    assert processor.decode_sentences([[words.index("the"), cut]]) == [f"the {words[cut][:-2]}"]


@pytest.mark.parametrize("line", ["the", "the x", "the 1 #fairseq:overwrite", " 3", "<s> 1", "cat 2"])
def test_broken_dictionaries(tmp_path, line):
    (tmp_path / "dict.txt").write_text(f"cat 7\n{line}\n")
    with pytest.raises(ValueError, match="line 2: expected a new word and its count"):
        read_dictionary(tmp_path / "dict.txt", ["en", "de"])


def test_broken_codes(tmp_path):
    (tmp_path / "code").write_text("#version: 0.2\nt h\nth e</w> 25\n")
    with pytest.raises(ValueError, match="line 3: expected two pieces"):
        bpe_tokenizer(["e"], tmp_path / "code", tmp_path)
    # sentencepiece's model, as of mBART
    (tmp_path / "code").write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\xd4\xff")
    with pytest.raises(ValueError, match="begins with '', but codes of subword-nmt begin with"):
        bpe_tokenizer(["e"], tmp_path / "code", tmp_path)
    with pytest.raises(ValueError, match="code, line 1: expected a new word"):
        read_dictionary(tmp_path / "code", [])
