"""An encoder that starts from BERT gives BERT's states."""

import pytest
import torch
from tiny import ONLY_GROUP
from transformers import BertConfig, BertModel, BertTokenizer, RobertaConfig

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.training.bert import BertOptions, convert_bert, gtransformer_from_bert
from modeling_gtransformer.training.licenses import base_license


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", *(f"##{c}" for c in "abcdefgh")]


@pytest.fixture
def bert(tmp_path):
    """A BERT checkpoint whose layer norms have our epsilon, so that the states can be compared exactly."""
    config = BertConfig(
        vocab_size=len(WORDS) + 3,  # as some published ones, it has more rows than its tokenizer has words
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        layer_norm_eps=1e-5,
    )
    folder = tmp_path / "bert"
    model = BertModel(config)
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    BertTokenizer(vocab={word: i for i, word in enumerate(WORDS)}).save_pretrained(folder)
    return folder


def test_one_sentence_has_the_states_of_bert(bert, tmp_path, capsys):
    output = tmp_path / "start"
    convert_bert(BertOptions(str(bert), output, decoder_layers=1))
    assert "of them from BERT" in capsys.readouterr().out
    model = GTransformerForConditionalGeneration.from_pretrained(output, **ONLY_GROUP).eval()
    processor = GTransformerProcessor.from_pretrained(output)
    assert (model.config.encoder_layers, model.config.decoder_layers) == (2, 1)
    inputs = processor(["abc de f"], return_tensors="pt")
    assert inputs["input_ids"][0, [0, -1]].tolist() == [WORDS.index("[CLS]"), WORDS.index("[SEP]")]
    with torch.no_grad():
        expected = BertModel.from_pretrained(bert).eval()(**inputs).last_hidden_state
        torch.testing.assert_close(model.model.encoder(**inputs).last_hidden_state, expected, rtol=1e-4, atol=1e-5)
        # It can translate from the start: as many sentences out as in.
        generated = model.generate(**processor(["ab", "c d"], return_tensors="pt"))
    assert len(processor.batch_decode_sentences(generated)[0]) == 2
    (bert / "README.md").write_text("---\nlicense: cc-by-sa-4.0\n---\n")
    assert base_license(str(output)) == "cc-by-sa-4.0"


def test_the_fresh_half_is_fresh(bert, tmp_path):
    for seed in ("1", "2"):
        convert_bert(BertOptions(str(bert), tmp_path / seed, seed=int(seed)))
    one, two = (GTransformerForConditionalGeneration.from_pretrained(tmp_path / seed) for seed in ("1", "2"))
    differing = {name for name, value in one.named_parameters() if not value.equal(two.get_parameter(name))}
    parts = ("_global.", "_gate.", ".decoder.", "shared")
    assert differing and all(any(part in name for part in parts) for name in differing)
    # Of the word embeddings, those of the two language codes.
    changed = (one.model.shared.weight != two.model.shared.weight).any(dim=1).nonzero()[:, 0]
    assert changed.tolist() == [len(WORDS), len(WORDS) + 1]


def test_another_kind_of_bert_is_refused(bert):
    model = BertModel.from_pretrained(bert, add_pooling_layer=False)
    convert_bert(BertOptions(str(bert), bert / "start"))
    processor = GTransformerProcessor.from_pretrained(bert / "start")
    del model.encoder.layer[1]
    with pytest.raises(ValueError, match=r"missing weights \['layers\.1\."):
        gtransformer_from_bert(model, processor)


def test_half_precision_becomes_single(bert, tmp_path):
    BertModel.from_pretrained(bert).half().save_pretrained(bert)
    convert_bert(BertOptions(str(bert), tmp_path / "start"))
    model = GTransformerForConditionalGeneration.from_pretrained(tmp_path / "start")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_other_models_and_codes_that_match_in_words_are_refused(bert, tmp_path):
    with pytest.raises(ValueError, match=r"code de would match inside words: write \[de\]"):
        convert_bert(BertOptions(str(bert), tmp_path / "start", tgt_lang="de"))
    RobertaConfig().save_pretrained(bert)
    with pytest.raises(ValueError, match="has the type 'roberta', not 'bert'"):
        convert_bert(BertOptions(str(bert), tmp_path / "start"))
    assert not (tmp_path / "start").exists()
