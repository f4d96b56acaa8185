"""Contrastive suites in the formats of their authors, the scores of their candidates, and the command."""

import json

import pytest
import torch
from contrapro import write_contrapro

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.evaluation.contrastive import (
    ContrastiveOptions,
    count_right,
    evaluate_contrastive,
)
from modeling_gtransformer.evaluation.contrastive_suites import ContrastiveItem, read_suite
from modeling_gtransformer.runtime.usage_error import UsageError


VOITA = [{"src": "one _eos two", "dst": ["ein _eos zwo", "ein _eos zwei"], "true_ind": 1, "ctx_dist": 1}]
ANAPHORA = {
    "1": {
        "src": ["The house is old.", "It is red."],
        "trg": [
            {
                "correct": ["Une maison.", "Elle est rouge."],
                "incorrect": ["Une maison.", "Il est rouge."],
                "type": "f.sg",
            },
            {
                "semi-correct": ["Un toit.", "Il est rouge."],
                "incorrect": ["Un toit.", "Elle est rouge."],
                "type": "m.sg",
            },
        ],
    }
}
CHOICE = {
    "7": {
        "type": "repet",
        "examples": [{"src": ["A", "B"], "trg": {"correct": ["x", "y"], "incorrect": ["x", "z"]}}],
    }
}


@pytest.fixture
def contrapro(tmp_path):
    return write_contrapro(tmp_path / "contrapro")


def test_contrapro(contrapro):
    with_context, without = read_suite(contrapro)
    assert with_context == ContrastiveItem(
        f"{contrapro}:1", ["a cat .", "it sleeps ."], ["eine Katze ."], ["Sie schläft .", "Er schläft ."], "sie", 1
    )
    assert (without.source, without.context, without.distance) == (["it barks ."], [], None)
    assert without.candidates == ["er bellt .", "es bellt ."] and without.phenomenon == "er"


def test_voita_and_bawden(tmp_path):
    files = {"deixis_test": VOITA, "anaphora": ANAPHORA, "lexical-choice": CHOICE}
    for name, records in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(records))
    [voita], anaphora, [choice] = (read_suite(tmp_path / f"{name}.json") for name in files)
    assert voita == ContrastiveItem(
        f"{tmp_path}/deixis_test.json:1", ["one", "two"], ["ein"], ["zwei", "zwo"], "deixis", 1
    )
    assert [item.candidates[0] for item in anaphora] == ["Elle est rouge.", "Il est rouge."]
    assert [item.phenomenon for item in anaphora] == ["anaphora, f.sg", "anaphora, m.sg"]
    assert [item.group for item in (*anaphora, choice)] == ["anaphora, correct", "anaphora, semi-correct", None]
    assert (choice.context, choice.candidates, choice.phenomenon) == (["x"], ["y", "z"], "lexical-choice, repet")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match="is not a contrastive suite in a known format"):
        read_suite(tmp_path / "other.json")
    (tmp_path / "other.json").write_text("{")
    with pytest.raises(ValueError, match=r"other\.json is not valid JSON"):
        read_suite(tmp_path / "other.json")


def test_a_wrong_candidate_that_is_the_right_one_is_none(tmp_path, caplog):
    items = [
        {**VOITA[0], "dst": ["ein _eos zwei", *candidates], "true_ind": 0}
        for candidates in (["ein _eos zwo", "ein _eos zwei"], ["ein _eos zwei"])
    ]
    (tmp_path / "deixis_test.json").write_text(json.dumps(items))
    assert [item.candidates for item in read_suite(tmp_path / "deixis_test.json")] == [["zwei", "zwo"]]
    assert "deixis_test.json:2: all its candidates" in caplog.text and "deixis_test.json:1:" not in caplog.text


def test_a_group_of_contrapro_without_wrong_candidates_is_left_out(contrapro, caplog):
    (contrapro / "sentence_groups.txt").write_text("0\n2\n3\n")
    assert [item.name for item in read_suite(contrapro)] == [f"{contrapro}:1"]
    assert f"Skipped {contrapro}:3: all its" in caplog.text


def test_context_is_cut_from_the_far_end():
    item = ContrastiveItem("x", ["1", "2", "3"], ["a", "b"], ["c", "d"], "p")
    assert item.with_context(1) == ContrastiveItem("x", ["2", "3"], ["b"], ["c", "d"], "p")
    assert item.with_context(0) == ContrastiveItem("x", ["3"], [], ["c", "d"], "p")
    assert item.with_context(9) == item


def test_groups_are_counted_and_a_tie_is_not_right():
    rows = {"x": (1, "g", -1.0), "y": (None, "h", -2.0), "z": (None, None, -2.0)}
    items = [ContrastiveItem(name, ["s"], [], ["a", "b"], "er", *row[:2]) for name, row in rows.items()]
    counts = count_right(items, {name: [-1.0, wrong] for name, (*_, wrong) in rows.items()})
    assert counts["er"] == counts["all"] == {"items": 3, "right": 2, "accuracy": pytest.approx(200 / 3)}
    assert (counts["g"]["accuracy"], counts["h"]["accuracy"], counts["er, distance 1"]["right"]) == (0, 100, 0)


@pytest.fixture
def score(trained_model):
    """Runs the command."""

    def score(output, *suites, model=trained_model, **options):
        return evaluate_contrastive(ContrastiveOptions(str(model), output, list(map(str, suites)), **options))

    return score


def written(output):
    records = map(json.loads, output.read_text().splitlines()[1:])
    return {record["name"]: record["scores"] for record in records}


def test_two_suites_of_one_name(score, tmp_path):
    """The names of items contain their files."""
    suites = []
    for folder, dst in (("a", ["x _eos y", "x _eos z"]), ("b", ["x _eos z", "x _eos y"])):
        (tmp_path / folder).mkdir()
        record = {"src": "one _eos two", "dst": dst, "true_ind": 0, "ctx_dist": 1}
        (tmp_path / folder / "deixis.json").write_text(json.dumps([record]))
        suites.append(tmp_path / folder / "deixis.json")
    assert score(tmp_path / "out.jsonl", *suites)["all"]["right"] == 1
    with pytest.raises(ValueError, match="contains a suite twice"):
        score(tmp_path / "twice.jsonl", suites[0], suites[0])


def test_a_suite_without_items(score, tmp_path):
    (tmp_path / "deixis.json").write_text(json.dumps([{"src": "a", "dst": ["x"], "true_ind": 0, "ctx_dist": 1}]))
    with pytest.raises(ValueError, match="have no items"):
        score(tmp_path / "scores.jsonl", tmp_path / "deixis.json")
    assert not (tmp_path / "scores.jsonl").exists()


def test_a_failed_start_leaves_no_file_in_the_way(score, contrapro, tmp_path):
    output, report = tmp_path / "scores.jsonl", tmp_path / "accuracies.json"
    with pytest.raises(UsageError, match="mistyped"):
        score(output, contrapro, model=tmp_path / "mistyped")
    accuracies = score(output, contrapro, json=report)
    assert accuracies["all"]["items"] == 2 and json.loads(report.read_text())["accuracies"] == accuracies


@pytest.mark.parametrize("context", [0, 1])
def test_scores_are_those_of_the_model_one_candidate_at_a_time(score, trained_model, contrapro, tmp_path, context):
    accuracies = score(tmp_path / "scores.jsonl", contrapro, context=context)
    assert accuracies["all"]["items"] == 2 and accuracies["sie, distance 1"]["items"] == 1
    scores = written(tmp_path / "scores.jsonl")

    processor = GTransformerProcessor.from_pretrained(trained_model)
    reference = GTransformerForConditionalGeneration.from_pretrained(trained_model).eval()
    for item in read_suite(contrapro):
        item = item.with_context(context)
        for candidate, score_of_it in zip(item.candidates, scores[item.name], strict=True):
            inputs = processor(item.source, [*item.context, candidate], return_tensors="pt")
            with torch.no_grad():
                log_probabilities = reference(**inputs).logits.log_softmax(dim=-1)
            labels = inputs["labels"]
            of_labels = log_probabilities.gather(2, labels[..., None])[0, :, 0]
            # The words and </s> of the last sentence; behind them stands the end of the document.
            last = len(processor.encode_sentences([candidate])[0]) + 1
            assert score_of_it == pytest.approx(of_labels[-1 - last : -1].sum().item(), rel=1e-4)


def test_continued_after_an_interruption(score, contrapro, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    accuracies = score(whole, contrapro, max_tokens=1)
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:2]) + lines[2][:10])
    assert score(cut, contrapro, max_tokens=1) == accuracies
    assert written(cut).keys() == written(whole).keys()
    # Nor are scores of other items taken.
    translations = contrapro / "de.txt"
    translations.write_text("\n".join(reversed(translations.read_text().splitlines())) + "\n")
    with pytest.raises(ValueError, match="choose another output"):
        score(whole, contrapro, max_tokens=1)
    # Files of other commands are left alone.
    for content in ("", '[{"a": 1}]', "text"):
        (tmp_path / "other.jsonl").write_text(content)
        with pytest.raises(ValueError, match="choose another output"):
            score(tmp_path / "other.jsonl", contrapro)
        assert (tmp_path / "other.jsonl").read_text() == content
    with pytest.raises(ValueError, match="choose another output"):
        score(cut, contrapro, context=0)


def test_an_item_beyond_the_positions_is_named(score, contrapro, tmp_path):
    long = " ".join(["ba bu"] * 200)
    for file, language in (("en.txt", "it"), ("de.txt", "er")):
        text = (contrapro / file).read_text(encoding="utf-8")
        (contrapro / file).write_text(text.replace(f"<SEP> {language} b", f"<SEP> {long} b"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"contrapro:3 has \d+ tokens, the model 128 positions: use less context"):
        score(tmp_path / "out.jsonl", contrapro)
