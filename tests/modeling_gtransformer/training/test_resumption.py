"""A training is only continued as it began, by every process from the same place."""

import json

import pytest

from modeling_gtransformer.runtime import atomic_file
from modeling_gtransformer.training import resumption
from modeling_gtransformer.training.arguments import GTransformerTrainingArguments
from modeling_gtransformer.training.resumption import KeepArguments, Progress, find_progress, lasting_arguments


@pytest.fixture
def find(tmp_path, monkeypatch):
    """Looks for the progress of a training on a number of processes, and starts it."""

    def find(processes=1, checkpoint=None, **values):
        monkeypatch.setattr(GTransformerTrainingArguments, "world_size", processes)
        values = {"tokens_per_update": 1024, "max_tokens": 256, **values}
        args = GTransformerTrainingArguments(
            str(tmp_path / "output"), use_cpu=True, resume_from_checkpoint=checkpoint, **values
        )
        return start(args, args.to_dict())

    return find


def start(args, arguments):
    arguments = lasting_arguments(args, arguments)
    progress = find_progress(args, arguments)
    if progress.goes_on:
        args.resume_from_checkpoint = progress.checkpoint
    if progress.scores is None:
        KeepArguments(arguments).on_train_begin(args, None, None)
    return progress


def add_checkpoint(output, step, state="{}"):
    folder = output / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    if state is not None:
        (folder / "trainer_state.json").write_text(state)
    return str(folder)


@pytest.fixture
def checkpoint(find, tmp_path):
    """A checkpoint of a training that one process began."""
    assert find() == Progress()
    return add_checkpoint(tmp_path / "output", 7)


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_continued_on_another_number_of_processes(find, checkpoint, processes):
    assert find(processes) == Progress(checkpoint)


def test_not_continued_with_other_updates(find, checkpoint):
    with pytest.raises(
        ValueError,
        match=r"has a training with another max_tokens \(256, now 171\), batches_per_update \(4, now 6\): choose",
    ):
        find(processes=3)
    with pytest.raises(ValueError, match="another batches_per_update"):
        find(tokens_per_update=None)
    # The same said in another way.
    assert find(tokens_per_update=None, gradient_accumulation_steps=4) == Progress(checkpoint)
    assert find(processes=3, checkpoint=checkpoint) == Progress(checkpoint), "in spite of that"
    assert find(processes=3) == Progress(checkpoint, goes_on=True), "as it was continued in spite of that"
    with pytest.raises(ValueError, match="another max_tokens"):
        find()


def test_a_checkpoint_of_another_training_brings_its_origin(tmp_path):
    checkpoint = add_checkpoint(tmp_path / "before", 7)
    (tmp_path / "before" / "arguments.json").write_text('{"model_name_or_path": "base", "seed": 1}')
    args = GTransformerTrainingArguments(
        str(tmp_path / "more"), use_cpu=True, resume_from_checkpoint=checkpoint, seed=2
    )
    start(args, {**args.to_dict(), "model_name_or_path": None})
    kept = json.loads((tmp_path / "more" / "arguments.json").read_text())
    assert (kept["model_name_or_path"], kept["seed"]) == ("base", 2)


def test_a_finished_training_that_goes_on_is_finished_no_more(find, checkpoint, tmp_path):
    (tmp_path / "output" / "eval_results.json").write_text('{"eval_loss": 2.0}')
    assert find() == Progress(scores={"eval_loss": 2.0})
    assert find(checkpoint=checkpoint, max_steps=9) == Progress(checkpoint)
    for _ in range(2):
        assert find(max_steps=9) == Progress(checkpoint, goes_on=True), "as it was interrupted again"


def test_what_a_checkpoint_brings_cannot_change(find, checkpoint, tmp_path):
    """A refused resumption leaves the record as it was."""
    (tmp_path / "output" / "eval_results.json").write_text('{"eval_loss": 2.0}')
    with pytest.raises(ValueError, match=r"checkpoint-7 keeps its learning_rate \(5e-05, now 0.1\)"):
        find(checkpoint=checkpoint, learning_rate=0.1)
    add_checkpoint(tmp_path / "output", 10)
    with pytest.raises(ValueError, match="has the later checkpoint-10: omit --resume_from_checkpoint"):
        find(checkpoint=checkpoint)
    assert find() == Progress(scores={"eval_loss": 2.0})


def test_checkpoints_without_an_optimizer_are_not_continued(find, tmp_path):
    find(save_only_model=True)
    add_checkpoint(tmp_path / "output", 7)
    with pytest.raises(ValueError, match="has no state of the optimizer"):
        find(save_only_model=True)


def test_a_checkpoint_that_does_not_exist_is_named(find, checkpoint):
    with pytest.raises(ValueError, match="checkpoint-8 is not a checkpoint of a training: pass a folder such as"):
        find(checkpoint=checkpoint.replace("-7", "-8"))


@pytest.mark.parametrize("is_new", [False, True])
def test_what_a_process_does_not_see_is_refused_by_all(find, request, monkeypatch, is_new):
    """As on machines with disks of their own: a checkpoint, or the folder of a new training."""
    file = "arguments.json" if is_new else request.getfixturevalue("checkpoint")
    monkeypatch.setattr(resumption, "gather_object", lambda seen: [*seen, False, False])
    with pytest.raises(ValueError, match=rf"Processes \[1, 2\] do not see .*{file}.*save_on_each_node true"):
        find()


def test_the_newest_checkpoint_is_that_of_most_updates(find, checkpoint, tmp_path):
    for step in (9, 10, 100):
        newest = add_checkpoint(tmp_path / "output", step)
        assert find() == Progress(newest)


@pytest.mark.parametrize("cut_off", [None, "", '{"global_step": 8, "log_hist'])
def test_what_a_kill_or_a_full_disk_cut_off_does_not_count(find, checkpoint, tmp_path, cut_off):
    add_checkpoint(tmp_path / "output", 8, cut_off)
    (tmp_path / "output" / "eval_results.json").write_text(cut_off or "")
    assert find() == Progress(checkpoint)


def test_a_disk_that_is_full_from_the_start_leaves_nothing_behind(find, monkeypatch, tmp_path):
    def full(_, path):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(atomic_file.os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            find()
    assert find() == Progress()
    assert [file.name for file in (tmp_path / "output").iterdir()] == ["arguments.json"]
