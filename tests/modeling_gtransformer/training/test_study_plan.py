"""A study is read and checked, and planned with what it leaves out."""

from pathlib import Path

import pytest
import yaml
from repository import ROOT

from modeling_gtransformer.training.recipe import parse_recipe, read_recipe
from modeling_gtransformer.training.study_plan import plan_runs, read_study, translation_arguments, translation_options


STUDIES = sorted((ROOT / "train" / "studies").glob("*.yaml"))
SYSTEMS = {"base": {"recipe": "base.yaml"}, "next": {"recipe": "next.yaml", "start": "base"}}


@pytest.fixture
def study_file(tmp_path):
    """A function that writes a study, with changes."""

    def write(**changes):
        values = {"test": {"valid": {"files": ["valid.jsonl"]}}, "baseline": "base", "systems": SYSTEMS, **changes}
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize(
    "changes", [{"seeds": 3}, {"test": {"valid": {"files": "valid.jsonl"}}}, {"vary": {"segment_tokens": 64}}]
)
def test_lists_are_lists(study_file, changes):
    with pytest.raises(ValueError, match="seeds, files and the values of vary must be lists, not"):
        read_study(study_file(**changes))


def test_the_baseline_of_each_score(study_file):
    assert read_study(study_file())["baseline"] == {"s-BLEU": "base", "d-BLEU": "base"}
    assert read_study(study_file(baseline=None))["baseline"] == {}
    assert read_study(study_file(baseline={"d-BLEU": "next"}))["baseline"] == {"d-BLEU": "next"}


def test_a_system_has_settings_of_its_own(study_file, tmp_path, experiment):
    recipe = {"recipe": experiment("planned")}
    free = {**recipe, "generation": {"align_sentences": False, "num_beams": 2}}
    study = read_study(study_file(systems={"base": recipe, "free": free}, generation={"num_beams": 5}))
    runs = plan_runs(study, Path(), tmp_path, str)
    options = [translation_options(run, study) for run in runs]
    assert [(each.free, each.num_beams) for each in options] == [(False, 5), (True, 2)]
    arguments = translation_arguments(runs[1], "valid", study)
    assert arguments[:3] == ["valid.jsonl", "--model", str(runs[1].folder)]
    assert {"--no-keep_placeholders", "--free", "--num_beams"} <= {*arguments}
    study["generation"] = {"beams": 5}
    with pytest.raises(ValueError, match=r"generation has an unknown option: .*'beams'"):
        translation_options(runs[0], study)


def test_systems_share_the_configuration_of_the_study(study_file, tmp_path):
    """What a system says of its own comes before what is said of all."""
    systems = {
        "base": {"recipe": "randinit", "arguments": {"config": {"dropout": 0.3, "encoder_layers": 1}}},
        "plain": {"recipe": "randinit"},
    }
    shared = {"max_tokens": 512, "config": {"dropout": 0.1, "decoder_layers": 3}}
    plan = read_study(study_file(systems=systems, arguments=shared))
    base, plain = (yaml.safe_load(run.recipe.read_text()) for run in plan_runs(plan, Path(), tmp_path, str))
    assert base["config"] == {"dropout": 0.3, "encoder_layers": 1, "decoder_layers": 3}
    assert plain["config"] == shared["config"] and base["max_tokens"] == plain["max_tokens"] == 512


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"system": {}}, "unknown keys system"),
        ({"test": {}}, "needs systems and test"),
        ({"test": {"x": {"files": ["a.jsonl", "b.jsonl"]}}}, "one file of both columns or a pair of texts"),
        ({"test": {"x": {"file": "y"}}}, "test x needs either files or paper_corpus"),
        ({"systems": {"a": {"recipe": "r", "start": "b"}}}, "starts from b, which must come before it"),
        ({"systems": {"a": {"recipe": "r", "arg": 1}}}, "system a has unknown keys arg"),
        ({"baseline": "nobody"}, "the baseline nobody is not a system"),
        ({"baseline": {"d-BLEU": "nobody"}}, "the baseline nobody is not a system"),
        ({"baseline": {"BLEU": "base"}}, "baseline has BLEU; it names systems for"),
        ({"vary": {"a": [1], "b": [2]}}, "vary must name one argument"),
        ({"systems": {"a": {"arguments": {}}}}, "system a needs a recipe"),
        ({"systems": {"a": None}}, "a must be a mapping, not None"),
        ({"systems": ["a"]}, r"systems must be a mapping, not \['a'\]"),
        ({"test": ["a.jsonl"]}, r"test must be a mapping, not \['a.jsonl'\]"),
        ({"vary": "segment_tokens"}, "vary must be a mapping, not 'segment_tokens'"),
        ({"systems": {"a": {"recipe": "r", "arguments": [1]}}}, r"arguments of a must be a mapping, not \[1\]"),
        ({"until": 0.1}, "until must be a mapping, not 0.1"),
        ({"until": {"eval_loss": 1, "eval_bleu": 2}}, "until must be a validation loss"),
        ({"until": {"eval_bleu": 2}}, "until must be a validation loss"),
    ],
)
def test_mistakes_are_named(study_file, changes, message):
    with pytest.raises(ValueError, match=message):
        read_study(study_file(**changes))


def test_empty_arguments_are_none(study_file, tmp_path):
    systems = {"a": {"recipe": "a.yaml", "arguments": None, "generation": None}}
    (tmp_path / "a.yaml").write_text("max_tokens: 1")
    plan = read_study(study_file(systems=systems, arguments=None, generation=None, baseline=None))
    [run] = plan_runs(plan, tmp_path, tmp_path / "output", str)
    assert read_recipe(run.recipe)["max_tokens"] == 1


def test_shared_arguments_may_extend_a_recipe(study_file, tmp_path):
    """Which the recipe of a system comes before, and the study's own arguments after."""
    for name, values in {
        "system": "max_tokens: 1\nwarmup_steps: 1\nseed: 9",
        "shared": "max_tokens: 2\nsave_steps: 2",
    }.items():
        (tmp_path / f"{name}.yaml").write_text(values)
    arguments = {"extends": ["shared.yaml"], "save_steps": 3}
    plan = read_study(study_file(systems={"a": {"recipe": "system.yaml"}}, arguments=arguments, baseline=None))
    [run] = plan_runs(plan, tmp_path, tmp_path / "output", str)
    values = read_recipe(run.recipe)
    assert {name: values[name] for name in ("max_tokens", "warmup_steps", "save_steps", "seed")} == {
        "max_tokens": 2,
        "warmup_steps": 1,
        "save_steps": 3,
        "seed": 1,
    }


def test_what_is_no_yaml_is_named(tmp_path):
    (tmp_path / "study.yaml").write_text("systems: [")
    with pytest.raises(ValueError, match=r"study.yaml is not YAML"):
        read_study(str(tmp_path / "study.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_shipped_study_can_be_planned(path, tmp_path):
    plan = read_study(str(path))
    for test in plan["test"].values():
        test.setdefault("files", ["test.en", "test.de"])
    for run in plan_runs(plan, path.parent, tmp_path, str):
        parse_recipe([str(run.recipe), "--fp16", "false", "--use_cpu"])
        translation_options(run, plan)
