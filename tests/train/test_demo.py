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
    assert demo.score(references, references, None) == pytest.approx({"s-BLEU": 100, "d-BLEU": 100})
    right_scores, wrong_scores = (demo.score(d, references, language_pair) for d in (references, wrong))
    assert right_scores["pronouns"] == 100 and wrong_scores["pronouns"] == 0
    assert wrong_scores["d-BLEU"] == score_documents(wrong, references)["d-BLEU/document"]["score"] < 100


def test_pretrained_checkpoint_is_a_plain_mbart(run):
    folder, *_ = run
    _, report = MBartForConditionalGeneration.from_pretrained(folder / "mbart", output_loading_info=True)
    assert not any(report[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))


def test_same_with_a_model_and_documents_of_ones_own(run, capsys):
    folder, *_ = run
    files = {part: str(folder / "corpus" / f"{part}.jsonl") for part in ("train", "valid")}
    languages = ["--src_lang", "[sou]", "--tgt_lang", "[tar]"]
    arguments = ["--model_name_or_path", str(folder / "mbart")]
    arguments += ["--train_files", files["train"], "--validation_files", files["valid"]]
    scores = demo.main([*arguments, "--output_dir", str(folder / "own" / "gtransformer"), *languages, *QUICK])
    assert all(list(row) == ["s-BLEU", "d-BLEU"] for row in scores.values())

    printed = capsys.readouterr().out
    first_document = demo.read_documents([files["valid"]], ["source"])[0]["source"]
    table = [line for line in printed.splitlines() if "  |  " in line]
    assert [line.split("  |  ")[0].strip() for line in table] == first_document


def test_own_model_needs_own_documents():
    with pytest.raises(ValueError, match="--train_files, --validation_files go together"):
        demo.main(["--model_name_or_path", "some/mbart"])


def test_models_of_others_are_not_replaced(tmp_path):
    (tmp_path / "gtransformer").mkdir()
    with pytest.raises(ValueError, match="gtransformer exists and would be replaced"):
        demo.main(["--output_dir", str(tmp_path / "gtransformer")])
