"""What is derived for the machine: precision, batches per update, and when to save."""

import pytest
import torch

from modeling_gtransformer.training import arguments
from modeling_gtransformer.training.arguments import GTransformerTrainingArguments
from modeling_gtransformer.training.recipe import parse_recipe


def make(**values):
    return GTransformerTrainingArguments("unused", use_cpu=True, **values)


@pytest.fixture
def processes(monkeypatch):
    """Sets the number of processes."""
    return lambda number: monkeypatch.setattr(GTransformerTrainingArguments, "world_size", number)


@pytest.mark.parametrize(
    "number, max_tokens, batches, tokens", [(3, 4096, 6, 2731), (8, 4096, 8, 2048), (1, 100000, 1, 16384)]
)
def test_an_update_is_divided_evenly(processes, number, max_tokens, batches, tokens):
    """As few batches as memory and processes allow, all of one size."""
    processes(number)
    args = make(max_tokens=max_tokens, tokens_per_update=16384)
    assert (args.batches_per_update, args.max_tokens) == (batches, tokens)
    # Made again from its own values it stays as it is.
    again = make(
        max_tokens=tokens, tokens_per_update=16384, gradient_accumulation_steps=args.gradient_accumulation_steps
    )
    assert (again.batches_per_update, again.max_tokens) == (batches, tokens)


def test_a_contradictory_accumulation_is_refused(processes):
    processes(2)
    assert make(max_tokens=256, tokens_per_update=1024, gradient_accumulation_steps=2).batches_per_update == 4
    with pytest.raises(ValueError, match=r"on 2 processes .* implies gradient_accumulation_steps=2, not 8: set only"):
        make(max_tokens=256, tokens_per_update=1024, gradient_accumulation_steps=8)
    assert make(max_tokens=256, gradient_accumulation_steps=8).batches_per_update == 16


CARDS = {"cpu": (False, False), "Volta": (True, False), "Ampere": (True, True)}


@pytest.mark.parametrize(
    "card, given, launcher, expected",
    [
        ("cpu", {}, "no", "float32"),
        ("Volta", {}, "no", "fp16"),
        ("Ampere", {}, "no", "bf16"),
        ("Ampere", {"fp16": True}, "no", "fp16"),
        ("Ampere", {"fp16": False}, "no", "float32"),
        ("Volta", {"bf16": True}, "no", "bf16"),
        ("Ampere", {}, "fp16", "float32"),  # of the arguments: Accelerate has its own
        ("Ampere", {"precision": "float32"}, "no", "float32"),
        ("Ampere", {"precision": "float32", "bf16": True}, "no", "bf16"),
        ("cpu", {"use_cpu": True, "precision": "bf16"}, "no", "bf16"),
    ],
)
def test_precision(monkeypatch, card, given, launcher, expected):
    """What is asked for explicitly wins over `precision`."""
    has_gpu, has_bf16 = CARDS[card]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bf16)
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", launcher)
    # The rest of Transformers' own checks would want the card.
    monkeypatch.setattr(arguments.Seq2SeqTrainingArguments, "__post_init__", lambda self: None)
    monkeypatch.setattr(GTransformerTrainingArguments, "n_gpu", 1)
    args = GTransformerTrainingArguments("unused", **{"precision": "auto", **given})
    assert (args.fp16, args.bf16) == (expected == "fp16", expected == "bf16")


def test_one_process_uses_one_gpu(monkeypatch, caplog):
    """Transformers would divide each batch among all GPUs that it sees."""
    monkeypatch.setattr(arguments.Seq2SeqTrainingArguments, "__post_init__", lambda self: setattr(self, "_n_gpu", 4))
    assert GTransformerTrainingArguments("unused").n_gpu == 1
    assert "This process sees 4 GPUs but uses one" in caplog.text


def test_checkpoints_are_saved_where_it_evaluates():
    args = make(eval_strategy="steps", eval_steps=30, load_best_model_at_end=True)
    assert (args.save_strategy, args.save_steps) == ("steps", 30)
    assert make(eval_strategy="epoch", load_best_model_at_end=True).save_strategy == "epoch"
    with pytest.raises(ValueError, match="needs a checkpoint of each evaluation"):
        make(eval_strategy="steps", eval_steps=30, load_best_model_at_end=True, save_steps=60)
    named = make(eval_strategy="steps", eval_steps=300, load_best_model_at_end=True, save_strategy="steps")
    assert named.save_steps == 300
    plain = make(eval_strategy="epoch")
    assert (plain.save_strategy, plain.save_steps) == ("steps", 500)


def test_early_stopping_watches_the_loss_unless_told_otherwise():
    """Transformers would stop with an error at the start of the training."""
    args = make(eval_strategy="epoch", early_stopping_patience=3)
    assert (args.metric_for_best_model, args.greater_is_better) == ("loss", False)
    other = make(eval_strategy="epoch", early_stopping_patience=3, metric_for_best_model="s_bleu")
    assert (other.metric_for_best_model, other.greater_is_better) == ("s_bleu", True)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"eval_strategy": "epoch", "eval_steps": 30}, "eval_steps has no effect with eval_strategy=epoch"),
        ({"save_strategy": "epoch", "save_steps": 30}, "save_steps has no effect with save_strategy=epoch"),
        ({"auto_find_batch_size": True}, "auto_find_batch_size has no effect"),
        ({"early_stopping_patience": 3}, "early_stopping_patience needs evaluations"),
        ({"eval_strategy": "epoch", "early_stopping_patience": 0}, "early_stopping_patience must be at least 1"),
        ({"stop_at_eval_loss": 0.1}, "stop_at_eval_loss needs evaluations"),
        ({"load_best_model_at_end": True}, "load_best_model_at_end needs evaluations"),
        ({"decay_steps": 10, "max_steps": 20}, "ends after decay_steps=10, before the 20 updates"),
        ({"word_dropout": 30}, "word_dropout must be between 0 and 1, not 30"),
        ({"label_smoothing_factor": 1.5}, "label_smoothing_factor must be between 0 and 1"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"tokens_per_update": 0}, "tokens_per_update must be at least 1"),
    ],
)
def test_settings_without_effect_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        make(**values)


def test_the_command_line(experiment):
    recipe = experiment("command_line", report_to=["tensorboard"], precision="auto")
    args = parse_recipe([recipe, "--report_to", "tensorboard", "wandb"])[2]
    assert args.report_to == ["tensorboard", "wandb"]
    assert parse_recipe([recipe])[2].report_to == ["tensorboard"]
    assert parse_recipe([recipe, "--bf16"])[2].bf16 and parse_recipe([recipe, "--bf16", "true"])[2].bf16
    assert not parse_recipe([recipe])[2].bf16
