"""Contrastive suites in the formats of their authors."""

import json

import pytest

from modeling_gtransformer.evaluation.contrastive_suites import ContrastiveItem, read_suite


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
    assert (choice.context, choice.candidates, choice.phenomenon) == (["x"], ["y", "z"], "lexical-choice, repet")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match="is not a contrastive suite in a known format"):
        read_suite(tmp_path / "other.json")
    (tmp_path / "other.json").write_text("{")
    with pytest.raises(ValueError, match=r"other\.json is broken"):
        read_suite(tmp_path / "other.json")


def test_the_antecedent_of_bawden_may_be_semi_correct(tmp_path):
    for name, records in (("anaphora", ANAPHORA), ("lexical-choice", CHOICE)):
        (tmp_path / f"{name}.json").write_text(json.dumps(records))
    groups = [
        [item.group for item in read_suite(tmp_path / f"{name}.json")] for name in ("anaphora", "lexical-choice")
    ]
    assert groups == [["anaphora, correct", "anaphora, semi-correct"], [None]]


def test_a_wrong_candidate_that_is_the_right_one_is_none(tmp_path, caplog):
    items = [
        {**VOITA[0], "dst": ["ein _eos zwei", *candidates], "true_ind": 0}
        for candidates in (["ein _eos zwo", "ein _eos zwei"], ["ein _eos zwei"])
    ]
    (tmp_path / "deixis_test.json").write_text(json.dumps(items))
    assert [item.candidates for item in read_suite(tmp_path / "deixis_test.json")] == [["zwei", "zwo"]]
    assert "deixis_test.json:2 is left out" in caplog.text and "deixis_test.json:1 is" not in caplog.text


def test_a_group_of_contrapro_without_wrong_candidates_is_left_out(contrapro, caplog):
    (contrapro / "sentence_groups.txt").write_text("0\n2\n3\n")
    assert [item.name for item in read_suite(contrapro)] == [f"{contrapro}:1"]
    assert f"{contrapro}:3 is left out" in caplog.text


def test_context_is_cut_from_the_far_end():
    item = ContrastiveItem("x", ["1", "2", "3"], ["a", "b"], ["c", "d"], "p")
    assert item.with_context(1) == ContrastiveItem("x", ["2", "3"], ["b"], ["c", "d"], "p")
    assert item.with_context(0) == ContrastiveItem("x", ["3"], [], ["c", "d"], "p")
    assert item.with_context(9) == item
