"""Every shipped recipe is understood, the command line has the last word, and mistakes are named."""

from pathlib import Path

import pytest

import train
from modeling_gtransformer import GTransformerConfig
from modeling_gtransformer.training.recipe import RECIPES, find_recipe, parse_recipe, read_recipe


TRAIN = Path(train.__file__).parent
# What a recipe leaves to the user, and what this machine may not have.
OWN = ["--tokenizer_name_or_path", "tokenizer", "--train_files", "a.en", "a.de", "--validation_files", "b.jsonl"]
OWN += ["--use_cpu"]


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_parses(path):
    model, data, training = parse_recipe([str(path), *OWN])
    assert training.learning_rate == read_recipe(path)["learning_rate"] and training.adam_beta2 == 0.98
    assert data.train_files == ["a.en", "a.de"] and data.segment_tokens == 512
    GTransformerConfig(**model.config_values)


@pytest.mark.parametrize("path", sorted((TRAIN / "accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_launch_configuration_is_accelerates(path):
    from accelerate.commands.config.config_args import load_config_from_file

    assert load_config_from_file(str(path)).num_processes > 1


def test_a_recipe_is_a_file_or_a_name(tmp_path):
    own = tmp_path / "opus_mt.yaml"
    own.write_text("extends: opus_mt\nseed: 7\n")
    assert find_recipe("opus_mt.yaml", tmp_path) == own
    # The former folder of the recipes, as older commands and studies name it.
    for name in ("opus_mt", "train/recipes/opus_mt.yaml", "../recipes/opus_mt.yaml"):
        assert find_recipe(name, tmp_path) == RECIPES / "opus_mt.yaml"
    assert read_recipe(own)["seed"] == 7 and read_recipe(own)["output_dir"] == "outputs/opus_mt"
    with pytest.raises(ValueError, match=r"There is no recipe opus_nt \(did you mean opus_mt\?\)"):
        find_recipe("opus_nt")
    with pytest.raises(ValueError, match=r"There is no recipe elsewhere/xyzzy\.yaml\.$"):
        find_recipe("elsewhere/xyzzy.yaml")


def test_positions_count_in_the_sentence_except_in_rows_of_the_paper():
    scopes = {path.stem: read_recipe(path).get("config", {}).get("position_scope") for path in RECIPES.glob("*.yaml")}
    of_sentences = {name for name, scope in scopes.items() if scope == "sentence"}
    assert of_sentences == {"opus_mt", "nllb", "nllb_lora", "mbart50", "mbart25", "mbart25_lora", "dialogues"}
    assert scopes["mbart25_paper"] == scopes["mbart25_documents"] == "document"


def test_a_recipe_extends_another(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "base.yaml").write_text("seed: 1\nlearning_rate: 0.1\nconfig: {d_model: 8, dropout: 0.1}\n")
    (tmp_path / "middle.yaml").write_text("extends: parts/base.yaml\nseed: 2\nconfig: {dropout: 0.2}\n")
    (tmp_path / "top.yaml").write_text(
        "extends: middle.yaml\nconfig: {encoder_layers: 3}\nearly_stopping_patience: null\n"
    )
    values = read_recipe(tmp_path / "top.yaml")
    assert values == {
        "seed": 2,
        "learning_rate": 0.1,
        "config": {"d_model": 8, "dropout": 0.2, "encoder_layers": 3},
        "early_stopping_patience": None,
    }
    (tmp_path / "adapter.yaml").write_text("extends: mbart25_lora\nlora: {r: 4}\n")
    own, given = read_recipe("mbart25_lora")["lora"], ["--lora", '{"r": 2}', "--paper_corpus", "news"]
    assert read_recipe(tmp_path / "adapter.yaml")["lora"] == {**own, "r": 4}
    assert parse_recipe([f"{tmp_path}/adapter.yaml", *given])[0].lora == {**own, "r": 2} and own["r"] != 4
    (tmp_path / "parts" / "base.yaml").write_text("extends: ../top.yaml\n")
    with pytest.raises(ValueError, match=r"top.yaml extends itself"):
        read_recipe(tmp_path / "top.yaml")
    (tmp_path / "list.yaml").write_text("- seed\n")
    with pytest.raises(ValueError, match="is not a mapping"):
        read_recipe(tmp_path / "list.yaml")


# Rows of the paper's tables: attention kinds of encoder, decoder and cross-attention, bottom and top, and settings.
GLOBAL, COMBINED = ("global global",) * 3, ("group combined",) * 3
PAPER = {"word_dropout_epochs": 29, "max_tokens": 4096, "lr_scheduler_type": "inverse_sqrt", "warmup_steps": 4000}
PAPER |= {"label_smoothing_factor": 0.1, "word_dropout": 0.3}
FINETUNED = {"word_dropout": 0.1, "word_dropout_epochs": 39, "pretrained_lr_scale": 0.2}
MBART = {"lr_scheduler_type": "polynomial", "decay_steps": 10**6, "max_tokens": 2048, "gradient_accumulation_steps": 8}
MBART |= {"label_smoothing_factor": 0.2, "word_dropout": 0.0}
ROWS = {
    "transformer_sentences": (GLOBAL, {"segment_sentences": 1}),
    "transformer_documents": (GLOBAL, {"word_dropout": 0.0}),
    "randinit": (COMBINED, PAPER),
    "finetuned": (COMBINED, FINETUNED),
    "finetuned_no_target_context": (("group combined", "group group", "group combined"), FINETUNED),
    "finetuned_no_source_context": (("group group",) * 3, FINETUNED),
    # Table 5 goes on from row to row: the drop of 1.78 is that from the row without word dropout.
    "randinit_no_word_dropout": (COMBINED, {"word_dropout": 0.0}),
    "randinit_no_language_locality": (("global global", "global global", "group combined"), {"word_dropout": 0.0}),
    "randinit_only_group": (("group group",) * 3, PAPER),
    "randinit_only_global": (("group global",) * 3, PAPER),
    "randinit_top3": (COMBINED, {"cross_attention_types": ["group"] * 3 + ["combined"] * 3}),
    "randinit_big": (COMBINED, {"d_model": 1024}),
    "randinit_large": (COMBINED, {"encoder_layers": 12, "d_model": 1024}),
    "mbart25_paper": (COMBINED, MBART),
    "mbart25_sentences": (GLOBAL, {"segment_sentences": 1}),
    "mbart25_documents": (GLOBAL, MBART),
    "bert": (COMBINED, {"fresh_parameters": ["_global.", "_gate.", ".decoder."]}),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_the_tables(name):
    model, data, training = parse_recipe([name, *OWN])
    config, (attention, settings) = GTransformerConfig(**model.config_values), ROWS[name]
    kinds = [config.attention_types(stack) for stack in ("encoder", "decoder", "cross")]
    assert tuple(f"{types[0]} {types[-1]}" for types in kinds) == attention
    assert (vars(config) | vars(data) | vars(training)).items() >= settings.items()


def test_the_command_line_overrides(experiment):
    recipe = experiment("override")
    overrides = ["--learning_rate", "7e-5", "--config", '{"d_model": 32}', "--train_files", "x.jsonl", "y.jsonl"]
    model, data, training = parse_recipe([recipe, *overrides])
    assert (training.learning_rate, model.config_values["d_model"]) == (7e-5, 32)
    # The other values of the recipe's configuration stay.
    kept = parse_recipe([recipe])[0].config_values
    assert len(kept) > 5 and model.config_values == kept | {"d_model": 32}
    assert data.train_files == ["x.jsonl", "y.jsonl"]


def test_one_name_may_stand_for_a_list_of_one(experiment):
    changes = {"fresh_parameters": "_global.", "train_files": "a.jsonl", "validation_files": "b.jsonl"}
    _, data, training = parse_recipe([experiment("one", **changes)])
    assert (data.train_files, data.validation_files) == (["a.jsonl"], ["b.jsonl"])
    assert training.fresh_parameters == ["_global."]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"word_drop": 0.1, "lr": 1}, r"unknown keys lr, word_drop \(did you mean word_dropout\?\)"),
        ({"config": {"droput": 0.1}}, r"GTransformerConfig has no droput \(did you mean dropout\?\)"),
        ({"tokenizer_name_or_path": None}, "Give model_name_or_path, or"),
        ({"validation_files": None}, "train_files and validation_files go together"),
        ({"dataset_name": "some/name"}, "Give either train_files and validation_files, or"),
        ({"paper_corpus": "news", "validation_files": None}, "train_files and validation_files go together"),
        ({"copy_group_attention": True}, "copy_group_attention needs model_name_or_path"),
        ({"lora": {"r": 2}}, "lora needs model_name_or_path"),
        ({"config": {"vocab_size": 1000}}, "vocab_size comes from the tokenizer"),
        ({"segment_tokens": 0}, "segment_tokens must be at least 1, not 0"),
        ({"segment_sentences": 0}, "segment_sentences must be at least 1, not 0"),
        ({"train_segments": 0}, "train_segments must be at least 1, not 0"),
        ({"paper_corpus": "news"}, "Give either train_files and validation_files, or"),
        ({"paper_corpus": "x", "train_files": [], "validation_files": []}, "one of ted, news, europarl, not x"),
    ],
)
def test_mistakes_are_named(experiment, changes, message):
    with pytest.raises(ValueError, match=message):
        parse_recipe([experiment("mistake", **changes)])


def test_the_usage_names_the_subcommand(capsys):
    with pytest.raises(SystemExit):
        parse_recipe([])
    usage, message = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: gtransformer train RECIPE") and message.startswith("gtransformer train: error: ")
