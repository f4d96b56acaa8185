"""What stands for a downloaded checkpoint is a plain mBART that has learnt single sentences."""

import datasets
from tiny import ONLY_GROUP, SIZE
from transformers import AutoTokenizer, MBartForConditionalGeneration

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus
from modeling_gtransformer.training import tiny_mbart


SENTENCES = {"en": ["a b c", "b c", "c a", "b b a"], "de": ["x y z", "y z", "z x", "y y x"]}


def test_sentences_are_learnt_from_their_source(tmp_path, monkeypatch):
    corpus = StoredCorpus.from_dataset(datasets.Dataset.from_list([SENTENCES] * 8), ("en", "de"))
    monkeypatch.setattr(tiny_mbart, "TINY", {**SIZE, "init_std": 0.08})
    tiny_mbart.pretrain_tiny_mbart(str(tmp_path), corpus, ("[en]", "[de]"), 1, steps=80, learning_rate=1e-2)
    model, report = MBartForConditionalGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert model.config.vocab_size == len(tokenizer) and tokenizer.convert_tokens_to_ids("[de]") == len(tokenizer) - 2

    processor = GTransformerProcessor.from_pretrained(tmp_path, src_lang="[en]", tgt_lang="[de]")
    model = GTransformerForConditionalGeneration.from_pretrained(tmp_path, **ONLY_GROUP).eval()
    sources, targets = ([[sentence] for sentence in SENTENCES[side]] for side in ("en", "de"))
    right, wrong = (
        model(**processor(sources, other, return_tensors="pt")).loss.item()
        for other in (targets, [*targets[1:], targets[0]])
    )
    assert right < 0.3 and wrong > 1
