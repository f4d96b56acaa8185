"""The command that scores contrastive suites: log-probabilities of the model, which it continues to write."""

import json

import pytest
import torch

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.evaluation.contrastive_suites import read_suite
from modeling_gtransformer.usage_error import UsageError
from train.score_contrastive import main as score_contrastive


@pytest.fixture
def model(trained_model):
    return str(trained_model)


def test_two_suites_of_one_name(model, tmp_path):
    """Which item is meant is clear: their files are part of the names."""
    items = []
    for folder, dst in (("a", ["x _eos y", "x _eos z"]), ("b", ["x _eos z", "x _eos y"])):
        (tmp_path / folder).mkdir()
        record = {"src": "one _eos two", "dst": dst, "true_ind": 0, "ctx_dist": 1}
        (tmp_path / folder / "deixis.json").write_text(json.dumps([record]))
        items.append(str(tmp_path / folder / "deixis.json"))
    accuracies = score_contrastive([model, str(tmp_path / "out.jsonl"), "--suites", *items])
    assert accuracies["all"]["right"] == 1
    with pytest.raises(ValueError, match="given twice"):
        score_contrastive([model, str(tmp_path / "twice.jsonl"), "--suites", items[0], items[0]])


def test_the_file_of_accuracies(model, contrapro, tmp_path):
    output = tmp_path / "accuracies.json"
    arguments = [model, str(tmp_path / "scores.jsonl"), "--suites", str(contrapro), "--json", str(output)]
    accuracies = score_contrastive(arguments)
    record = json.loads(output.read_text())
    assert record["accuracies"] == accuracies and record["command"].startswith("python train/score_contrastive.py")


def test_a_failed_start_leaves_no_file_in_the_way(model, contrapro, tmp_path):
    output = tmp_path / "scores.jsonl"
    arguments = [str(output), "--suites", str(contrapro)]
    with pytest.raises(UsageError, match="mistyped"):
        score_contrastive([str(tmp_path / "mistyped"), *arguments])
    assert score_contrastive([model, *arguments])["all"]["items"] == 2


@pytest.mark.parametrize("context", [0, 1])
def test_scores_are_those_of_the_model_one_candidate_at_a_time(model, contrapro, tmp_path, context):
    output = tmp_path / "scores.jsonl"
    arguments = [model, str(output), "--suites", str(contrapro), "--context", str(context)]
    accuracies = score_contrastive(arguments)
    assert accuracies["all"]["items"] == 2 and accuracies["sie, distance 1"]["items"] == 1
    written = {r["name"]: r["scores"] for r in map(json.loads, output.read_text().splitlines()[1:])}

    processor = GTransformerProcessor.from_pretrained(model)
    reference = GTransformerForConditionalGeneration.from_pretrained(model).eval()
    for item in read_suite(contrapro):
        item = item.with_context(context)
        for candidate, score in zip(item.candidates, written[item.name], strict=True):
            inputs = processor(item.source, [*item.context, candidate], return_tensors="pt")
            with torch.no_grad():
                log_probabilities = reference(**inputs).logits.log_softmax(dim=-1)
            labels = inputs["labels"]
            of_labels = log_probabilities.gather(2, labels[..., None])[0, :, 0]
            # The words and </s> of the last sentence; behind them stands the end of the document.
            last = len(processor.encode_sentences([candidate])[0]) + 1
            assert score == pytest.approx(of_labels[-1 - last : -1].sum().item(), rel=1e-4)


def test_a_plain_translator_is_scored_sentence_by_sentence(sentence_level_checkpoint, contrapro, tmp_path):
    def scores(context):
        output = tmp_path / f"{context}.jsonl"
        arguments = [
            sentence_level_checkpoint("marian"),
            str(output),
            "--suites",
            str(contrapro),
            "--context",
            context,
        ]
        score_contrastive(list(map(str, arguments)))
        records = map(json.loads, output.read_text().splitlines()[1:])
        return {(r["name"], number): score for r in records for number, score in enumerate(r["scores"])}

    assert scores("0") == pytest.approx(scores("1"), rel=1e-4)


def test_continued_after_an_interruption(model, contrapro, tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    arguments = ["--suites", str(contrapro), "--max_tokens", "1"]
    accuracies = score_contrastive([model, str(whole), *arguments])
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:2]) + lines[2][:10])
    assert score_contrastive([model, str(cut), *arguments]) == accuracies
    assert cut.read_text() == whole.read_text()
    # What is not its own is left alone.
    for content in ("", '[{"a": 1}]', "text"):
        (tmp_path / "other.jsonl").write_text(content)
        with pytest.raises(ValueError, match="choose another output"):
            score_contrastive([model, str(tmp_path / "other.jsonl"), *arguments])
        assert (tmp_path / "other.jsonl").read_text() == content
    with pytest.raises(ValueError, match="choose another output"):
        score_contrastive([model, str(cut), "--suites", str(contrapro), "--context", "0"])


def test_an_item_beyond_the_positions_is_named(model, contrapro, tmp_path):
    long = " ".join(["ba bu"] * 200)
    for file, language in (("en.txt", "it"), ("de.txt", "er")):
        text = (contrapro / file).read_text(encoding="utf-8")
        (contrapro / file).write_text(text.replace(f"<SEP> {language} b", f"<SEP> {long} b"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"contrapro:3 has \d+ tokens, the model 128 positions: use less context"):
        score_contrastive([model, str(tmp_path / "out.jsonl"), "--suites", str(contrapro)])
