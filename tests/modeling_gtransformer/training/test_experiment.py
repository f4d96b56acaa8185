"""A training is the same after an interruption, is never continued as another one, and gets its data from anywhere."""

import json
import shutil
from pathlib import Path

import datasets
import pytest
import torch
import yaml
from experiment_fixtures import RECIPE_CONFIG
from json_lines import write_json_lines
from training_runs import history, output, weights
from transformers import EvalPrediction, Trainer

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.corpora import stored_corpus
from modeling_gtransformer.document_loss import sentence_log_probabilities
from modeling_gtransformer.evaluation.provenance import STARTS_NAME, read_starts
from modeling_gtransformer.training.experiment import (
    CONFIDENCE_SEGMENTS,
    generation_scores,
    load_corpora,
    load_model,
    load_processor,
    train_recipe,
)
from modeling_gtransformer.training.model_card import write_model_card
from modeling_gtransformer.training.recipe import DataArguments, ModelArguments, parse_recipe
from modeling_gtransformer.training.segments import sample, target_ratio
from modeling_gtransformer.training.tokenizer import train_tokenizer


def test_resumed_training_equals_the_uninterrupted(experiment):
    """With all that is random, from the middle of an epoch, from its end, and from the next one."""
    settings = {"max_tokens": 512, "max_steps": 11, "save_steps": 1, "config": {**RECIPE_CONFIG, "dropout": 0.1}}
    straight = experiment("straight", **settings)
    train_recipe([straight])
    epochs = json.loads((output(straight) / "trainer_state.json").read_text())["log_history"]
    epoch_end = next(record["step"] for record in epochs if record["epoch"] == 1)
    for step in (3, epoch_end, epoch_end + 1):
        resumed = experiment(f"resumed{step}", **settings)
        shutil.copytree(output(straight) / f"checkpoint-{step}", output(resumed) / f"checkpoint-{step}")
        shutil.copyfile(output(straight) / STARTS_NAME, output(resumed) / STARTS_NAME)
        (output(resumed) / "checkpoint-99").mkdir()  # one whose saving was cut off
        train_recipe([resumed])
        assert all(value.equal(weights(resumed)[name]) for name, value in weights(straight).items())
        assert history(resumed) == history(straight)
        assert read_starts(output(resumed)) == read_starts(output(straight)) * 2


def test_a_metric_that_no_evaluation_has_is_refused_at_once(experiment):
    """Transformers would miss it at the first evaluation, which may be hours later."""
    recipe = experiment("metric", load_best_model_at_end=True, metric_for_best_model="s_bleu", train_files=["absent"])
    with pytest.raises(ValueError, match="metric_for_best_model must be one of loss, not s_bleu"):
        train_recipe([recipe])
    with pytest.raises(ValueError, match="absent: No such file"):
        train_recipe([recipe, "--predict_with_generate", "true"])


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_early_stopping_is_resumed_with_its_patience(experiment):
    """A learning rate at which nothing gets better: the second evaluation without a gain ends it, resumed or not."""
    settings = {"learning_rate": 1e-9, "max_steps": 9, "eval_steps": 1, "save_steps": 1, "early_stopping_patience": 3}
    settings |= {"metric_for_best_model": "loss", "load_best_model_at_end": True, "warmup_steps": 1}
    settings["stop_at_eval_loss"] = 1e-9  # is never reached, and does not keep the training from ending
    straight = experiment("stopping", **settings)
    train_recipe([straight])
    last = max(step for step, _ in history(straight))
    assert last < 9
    resumed = experiment("stopping-resumed", **settings)
    shutil.copytree(output(straight) / f"checkpoint-{last - 1}", output(resumed) / f"checkpoint-{last - 1}")
    train_recipe([resumed])
    assert max(step for step, _ in history(resumed)) == last
    # Cut off when it had stopped, before it was finished: no update more, the same weights.
    kept = weights(straight)
    for name in ("eval_results.json", "all_results.json", "model.safetensors"):
        (output(straight) / name).unlink()
    train_recipe([straight])
    assert max(step for step, _ in history(straight)) == last
    assert all(value.equal(kept[name]) for name, value in weights(straight).items())
    # Unless it is to go on.
    more = ["--early_stopping_patience", "5"]
    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_maybe_log_save_evaluate", interrupted)
        train_recipe([straight, *more, "--resume_from_checkpoint", str(output(straight) / f"checkpoint-{last}")])
    train_recipe([straight, *more])  # continued again
    assert max(step for step, _ in history(straight)) == last + 2


def test_a_training_stops_at_a_validation_loss_and_is_finished_then(experiment, caplog):
    settings = {"max_steps": 6, "eval_steps": 2, "save_steps": 2}
    whole = experiment("whole", **settings)
    train_recipe([whole])
    losses = {step: value for (step, name), value in history(whole).items() if name == "eval_loss"}
    assert losses[2] > losses[4] > losses[6]
    stopped = experiment("stopped", **settings, stop_at_eval_loss=losses[4])
    train_recipe([stopped])
    assert max(step for step, _ in history(stopped)) == 4
    train_recipe([stopped])
    assert "there is nothing left to do" in caplog.text


def test_started_again(experiment, caplog):
    """A finished training is left alone, and none is continued with other arguments."""
    recipe = experiment("again", max_steps=2, save_steps=1)
    scores, trained = train_recipe([recipe]), weights(recipe)
    assert train_recipe([recipe]) == scores and "there is nothing left to do" in caplog.text
    assert all(value.equal(trained[name]) for name, value in weights(recipe).items())
    with pytest.raises(ValueError, match=r"another learning_rate \(0.01, now 0.5\): choose another output_dir"):
        train_recipe([recipe, "--learning_rate", "0.5"])
    # What does not change the training may change.
    other = ["--hub_model_id", "a/b", "--per_device_eval_batch_size", "1", "--logging_steps", "7"]
    assert train_recipe([recipe, *other]) == scores and "To upload" not in caplog.text
    assert train_recipe([recipe, *other, "--push_to_hub", "true"]) == scores
    assert "To upload it, run gtransformer publish." in caplog.text


def test_a_training_whose_documents_have_changed_is_not_continued(experiment, tmp_path):
    given = yaml.safe_load(Path(experiment("documents")).read_text())["train_files"][0]
    documents = tmp_path / "train.jsonl"
    shutil.copyfile(given, documents)
    recipe = experiment("documents", train_files=[str(documents)], max_steps=1, save_steps=1)
    scores = train_recipe([recipe])
    moved = documents.rename(tmp_path / "moved.jsonl")
    assert train_recipe([recipe]) == scores  # nothing is left to do for which they were needed
    documents.write_text("".join(moved.read_text().splitlines(keepends=True)[:20]))
    with pytest.raises(ValueError, match="has a training with another content of train_files: choose"):
        train_recipe([recipe])


def test_a_tokenizer_is_that_of_the_checkpoint(experiment, tmp_path):
    base = experiment("vocabulary", max_steps=1)
    train_recipe([base])
    start = ["--model_name_or_path", str(output(base))]
    assert load_processor(parse_recipe([base, *start])[0]).src_lang  # the same vocabulary again is fine
    train_tokenizer(["other words are here"] * 9, ["[en]", "[de]"], 60).save_pretrained(tmp_path / "other")
    with pytest.raises(ValueError, match=r"have different ids for .*: omit tokenizer_name_or_path"):
        train_recipe(
            [experiment("other-vocabulary", max_steps=1), *start, "--tokenizer_name_or_path", str(tmp_path / "other")]
        )


@pytest.mark.parametrize("dataset_streaming", [False, True])
def test_documents_of_a_dataset(dataset_streaming, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "data").mkdir()
    for split, size in (("train", 2), ("validation", 1)):
        write_json_lines(tmp_path / "data" / f"{split}.jsonl", [{"source": ["a", "b"], "target": ["c", "d"]}] * size)
    arguments = DataArguments(dataset_name=str(tmp_path / "data"), dataset_streaming=dataset_streaming)
    corpora = load_corpora(arguments)
    assert [len(corpus.documents) for corpus in corpora] == [2, 1]
    assert corpora[1].documents[0]["target"] == ["c", "d"]
    assert corpora[0].where(1, 0) == f"{arguments.dataset_name}:train[1] (source, sentence 1)"
    assert bool([*(tmp_path / "cache" / "data").rglob("*.arrow")]) != dataset_streaming
    # Read once, until the files change.
    with monkeypatch.context() as patched:
        patched.setattr(stored_corpus, "iterate_dataset", lambda *_: pytest.fail("read again"))
        assert load_corpora(arguments)[0].fingerprint == corpora[0].fingerprint
    write_json_lines(tmp_path / "data" / "train.jsonl", [{"source": ["e"], "target": ["f"]}])
    assert load_corpora(arguments)[0].documents[0] == {"source": ["e"], "target": ["f"]}


def ids_of(segments):
    return [row["input_ids"].tolist() for row in segments]


def test_a_sample_or_long_documents_are_what_is_trained_on(make_trainer):
    """And nothing of the validation is left out."""
    changes = ({}, {"train_segments": 5}, {"min_document_tokens": 80})
    whole, drawn, long = (make_trainer(seed=3, **each) for each in changes)
    assert ids_of(drawn.train_dataset) == ids_of(sample(whole.train_dataset, 5, seed=3))
    assert ids_of(drawn.train_dataset) != ids_of(sample(whole.train_dataset, 5, seed=42))
    assert 0 < len(long.train_dataset) < len(whole.train_dataset)
    assert ids_of(drawn.eval_dataset) == ids_of(long.eval_dataset) == ids_of(whole.eval_dataset)


def test_the_processor_learns_how_long_translations_become(make_trainer, trained_model):
    """Of whole documents; single sentences say nothing about segments."""
    trainer = make_trainer()
    ratio = trainer.processing_class.target_ratio
    assert ratio == target_ratio(trainer.train_dataset, trainer.processing_class) != 1.0
    assert GTransformerProcessor.from_pretrained(trained_model).target_ratio == ratio
    assert make_trainer(segment_sentences=1).processing_class.target_ratio == 1.0


def test_the_processor_learns_how_sure_the_model_is(make_trainer, trained_model):
    """On texts of its kind: the mean over the tokens of its own translations of the validation."""
    processor = GTransformerProcessor.from_pretrained(trained_model)
    model = GTransformerForConditionalGeneration.from_pretrained(trained_model)
    segments = make_trainer().eval_dataset
    assert len(segments) <= CONFIDENCE_SEGMENTS
    total = tokens = 0
    for ids in (segment["input_ids"][None] for segment in segments):
        encoded = model.get_encoder()(ids)
        scores, counts = sentence_log_probabilities(
            model, model.generate(ids), processor.target_template, encoder_outputs=(encoded[0], encoded.group_tags)
        )
        total, tokens = total + float(scores.sum()), tokens + int(counts.sum())
    assert processor.typical_confidence == pytest.approx(total / tokens, abs=2e-3)


def test_the_card_shows_a_short_validation_document(experiment):
    recipe = experiment("shown", max_steps=1)
    train_recipe([recipe])
    documents = load_corpora(parse_recipe([recipe])[1])[1].documents
    shown = next(document for document in documents if 3 <= len(document["source"]) <= 6)
    rows = json.loads((output(recipe) / "sample.json").read_text())
    assert [(row["source"], row["reference"]) for row in rows] == [*zip(shown["source"], shown["target"], strict=True)]
    write_model_card(output(recipe))
    assert "| reference |" not in (output(recipe) / "README.md").read_text()  # the data may be private
    write_model_card(output(recipe), dataset="user/corpus")
    lines = (output(recipe) / "README.md").read_text().splitlines()
    cells = [[row[name].replace("|", r"\|") for name in ("source", "translation", "reference")] for row in rows]
    start = lines.index("| source | translation | reference |") + 2
    assert lines[start : start + len(rows) + 1] == [*(f"| {' | '.join(row)} |" for row in cells), ""]


def test_training_may_leave_out_what_is_too_long_but_validation_may_not(make_trainer, caplog):
    with pytest.raises(
        ValueError, match=r"segments are longer than the 30 positions of the model, the first at .*val"
    ):
        make_trainer(segment_tokens=40, config={**RECIPE_CONFIG, "max_position_embeddings": 30})
    assert "dropped from training" in caplog.text


def test_half_precision_checkpoints_are_trained_in_full(trained_model, experiment, tmp_path):
    for part in (
        GTransformerForConditionalGeneration.from_pretrained(trained_model).bfloat16(),
        GTransformerProcessor.from_pretrained(trained_model),
    ):
        part.save_pretrained(tmp_path)
    arguments = ModelArguments(model_name_or_path=str(tmp_path))
    loaded = load_model(arguments, load_processor(arguments))
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert loaded.config.dtype == torch.float32


@pytest.mark.parametrize("num_beams, early_stopping", [(5, True), (1, None)])
def test_a_search_by_beams_stops_early_as_the_papers(make_trainer, num_beams, early_stopping):
    config = make_trainer(generation_num_beams=num_beams).model.generation_config
    assert (config.num_beams, config.early_stopping) == (num_beams, early_stopping)


def test_what_fills_up_the_last_batch_has_no_score(trained_model):
    """Processes take equal shares of the validation segments."""
    processor = GTransformerProcessor.from_pretrained(trained_model)
    references = [["da gu .", "zo ."], ["vi ."]]
    rows = [processor.build_target(processor.encode_sentences(each, is_target=True)) for each in references]
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in (*rows, rows[0])], True, -100)
    scores = generation_scores(processor, references)(EvalPrediction(ids.numpy(), None))
    assert set(scores) == {"s_bleu", "d_bleu"}
