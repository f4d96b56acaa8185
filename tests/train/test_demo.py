"""The demo, at a size at which nothing is learnt: both systems, scored and shown."""

import contextlib
import io
import random
from functools import partial

import pytest
from json_lines import read_json_lines
from transformers import MBartForConditionalGeneration

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.metrics import score_documents
from modeling_gtransformer.training.invented_language import InventedLanguagePair
from train import demo


QUICK = ["--max_steps", "2", "--save_strategy", "no", "--load_best_model_at_end", "false", "--report_to", "none"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Its folder, its scores and what it printed."""
    patch = pytest.MonkeyPatch()
    patch.setattr(demo, "DOCUMENTS", {"train": 8, "valid": 1, "test": 1})
    patch.setattr(demo, "pretrain_tiny_mbart", partial(demo.pretrain_tiny_mbart, steps=2))
    folder, printed = tmp_path_factory.mktemp("demo"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        scores = demo.main(["--output_dir", str(folder / "gtransformer"), *QUICK])
    yield folder, scores, printed.getvalue()
    patch.undo()


def test_both_systems_are_scored_on_the_test_documents(run):
    folder, scores, printed = run
    assert list(scores) == ["mBART, by sentence", "G-Transformer"]
    documents = read_json_lines(folder / "corpus" / "test.jsonl")
    sources, references = ([document[side] for document in documents] for side in ("source", "target"))
    mbart = MBartForConditionalGeneration.from_pretrained(folder / "mbart").eval()
    model = GTransformerForConditionalGeneration.from_pretrained(folder / "gtransformer").eval()
    processor = GTransformerProcessor.from_pretrained(folder / "gtransformer")
    by_sentence = demo.translate_sentences(mbart, processor, sources)
    by_document = [document.texts for document in translate_documents(model, processor, sources)]
    language_pair = InventedLanguagePair(demo.SEED)
    for system, hypotheses in zip(scores, (by_sentence, by_document), strict=True):
        assert scores[system] == pytest.approx(demo.score(hypotheses, references, language_pair))
    assert demo.score_table(scores) in printed
    assert demo.translated_dialogue() in printed


def test_scores_are_of_a_hundred():
    language_pair = InventedLanguagePair(1)
    references = [document["target"] for document in (language_pair.document(random.Random(i)) for i in range(5))]
    swap = dict(zip(language_pair.pronouns, language_pair.pronouns[::-1], strict=True))
    wrong = [[" ".join(swap.get(word, word) for word in s.split()) for s in document] for document in references]
    right_scores, wrong_scores = (demo.score(d, references, language_pair) for d in (references, wrong))
    assert right_scores == pytest.approx(dict.fromkeys(("s-BLEU", "d-BLEU", "pronouns"), 100))
    assert wrong_scores["pronouns"] == 0
    assert wrong_scores["d-BLEU"] == score_documents(wrong, references)["d-BLEU/document"]["score"] < 100


def test_models_of_others_are_not_replaced(tmp_path):
    (tmp_path / "gtransformer").mkdir()
    with pytest.raises(ValueError, match="contains other models: choose an empty folder"):
        demo.main(["--output_dir", str(tmp_path / "gtransformer")])
