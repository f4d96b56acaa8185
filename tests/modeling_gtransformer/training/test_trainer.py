"""What the trainer adds: two learning rates, the loss per target token, and generation in validation."""

import copy
import itertools
import json
from pathlib import Path

import pytest
import torch
from experiment_fixtures import RECIPE_CONFIG
from huggingface_hub import ModelCard
from json_lines import read_json_lines
from repository import ROOT
from safetensors.torch import load_file
from tiny import ONLY_GROUP, STACKS
from training_runs import history, output, validation_files, weights
from transformers import Trainer

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.cli.main import main as gtransformer
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.training.arguments import GTransformerTrainingArguments
from modeling_gtransformer.training.experiment import train_recipe
from modeling_gtransformer.training.recipe import read_recipe
from modeling_gtransformer.training.segments import make_segments


@pytest.mark.parametrize("fresh_parameters", [["_global.", "_gate."], [".decoder."]])
def test_optimizer_and_schedule_are_of_what_is_given(make_trainer, fresh_parameters):
    """With FSDP, Transformers gives the wrapped model. `test_fairseq_updates.py` takes steps as the authors."""
    trainer = make_trainer(fresh_parameters=fresh_parameters, weight_decay=0.01)
    model = copy.deepcopy(trainer.model)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    optimizer = trainer.create_optimizer(model)
    rates = {names[id(p)]: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert rates == {n: 1e-2 if any(part in n for part in fresh_parameters) else 0.2 * 1e-2 for n in names.values()}
    for group in optimizer.param_groups:
        biases = {names[id(p)].endswith("bias") for p in group["params"]}
        assert group["weight_decay"] == (0.0 if True in biases else 0.01)
    other = torch.optim.SGD(model.parameters(), lr=1.0)
    assert trainer.create_scheduler(8, other).optimizer is other


def test_max_steps_does_not_shorten_the_decay(experiment):
    decay = {"lr_scheduler_type": "linear", "warmup_steps": 0, "max_steps": 8, "eval_strategy": "no"}
    rates = []
    for name, settings in {"whole": {}, "short": {"max_steps": 3, "decay_steps": 8}}.items():
        recipe = experiment(f"decay-{name}", **{**decay, **settings})
        train_recipe([recipe])
        rates.append([rate for (_, name), rate in sorted(history(recipe).items()) if name == "learning_rate"])
    assert len(rates[1]) == 3 and rates[1] == rates[0][:3]


def test_the_decay_does_not_end_before_the_training(make_trainer):
    """A cosine would rise again."""
    trainer = make_trainer(num_train_epochs=4, max_steps=-1, decay_steps=6, lr_scheduler_type="cosine")
    with pytest.raises(ValueError, match=r"ends after decay_steps=6, before the \d+ updates of the training"):
        trainer.train()


@pytest.mark.parametrize("batch_size", [1, 4])
def test_validation_loss_is_the_smoothed_mean_over_target_tokens(make_trainer, batch_size):
    trainer = make_trainer(per_device_eval_batch_size=batch_size)
    loss_sum, tokens = 0.0, 0
    with torch.no_grad():
        for segment in trainer.eval_dataset:
            labels = segment["labels"]
            logits = trainer.model.eval()(input_ids=segment["input_ids"][None], labels=labels[None]).logits[0]
            log_probabilities = logits.log_softmax(-1)
            gold = log_probabilities.gather(1, labels[:, None]).sum()
            loss_sum += float(-0.9 * gold - 0.1 * log_probabilities.mean(-1).sum())
            tokens += len(labels)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(loss_sum / tokens, rel=1e-5)
    # In training, over the target tokens of an update.
    batch = trainer.data_collator([*trainer.eval_dataset])
    loss, outputs = trainer.compute_loss(trainer.model, batch, return_outputs=True, num_items_in_batch=2 * tokens)
    assert loss.item() == pytest.approx(loss_sum / tokens / 2, rel=1e-5)
    assert outputs.encoder_last_hidden_state.shape[:2] == batch["input_ids"].shape


def test_a_single_target_token_is_validated_as_two_equal_ones(make_trainer):
    trainer = make_trainer(attention_entropy=True, stop_at_eval_loss=99)
    segment = trainer.eval_dataset[0]
    one = [{**segment, "labels": segment["labels"][:1]}]
    scores, twice = (trainer.evaluate(rows, metric_key_prefix="test") for rows in (one, 2 * one))
    expected = {name: value for name, value in twice.items() if "loss" in name or "entropy" in name}
    assert len(expected) == 7 and {name: scores[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert not [name for name in scores if name.startswith("eval_")] and not trainer.control.should_training_stop
    for rows in (one, 2 * one):
        loss, *others = trainer.prediction_step(trainer.model, trainer.data_collator(rows), prediction_loss_only=False)
        assert float(loss) == pytest.approx(twice["test_loss"], rel=1e-5) and others == [None, None]


@pytest.mark.parametrize("segments", [1, None])
def test_validation_is_filled_up_to_equal_shares(make_trainer, segments, monkeypatch):
    trainer = make_trainer()
    given = [*trainer.eval_dataset][:segments]
    monkeypatch.setattr(GTransformerTrainingArguments, "world_size", 2)
    rows = [*trainer.get_eval_dataloader(given if segments else None).dataset]
    real, fill = rows[: len(given)], rows[len(given) :]
    assert len(given) % 6 not in (0, 3) and len(fill) == -len(given) % 6  # two batches of three
    for row, expected in zip(real, given, strict=True):
        torch.testing.assert_close(row, expected)
    for row in fill:
        assert set(row) == set(given[0]) and row["input_ids"].equal(given[0]["input_ids"])
        assert row["labels"].eq(-100).all()


def test_training_data_are_loaded_as_the_arguments_say(make_trainer, caplog):
    """`tests/train/test_train.py` divides them among processes."""
    caplog.set_level("INFO")
    values = {"num_workers": 1, "pin_memory": True, "persistent_workers": True, "prefetch_factor": 3}
    trainer = make_trainer()  # without a GPU, Transformers resets pin_memory
    for name, value in values.items():
        setattr(trainer.args, f"dataloader_{name}", value)
    loader = trainer.get_train_dataloader()
    assert {name: getattr(loader, name) for name in values} == values
    assert f"{len(trainer.train_dataset)} segments in {len(loader)} batches." in caplog.text


def test_the_state_has_the_epochs_and_the_trial(make_trainer, monkeypatch):
    monkeypatch.setattr("transformers.integrations.hp_params", dict)  # takes only trials of installed packages
    trainer = make_trainer(max_steps=1, eval_strategy="no")
    trainer.train(trial={"seed": 5})
    assert (trainer.state.num_train_epochs, trainer.state.trial_params) == (1, {"seed": 5})


@pytest.mark.parametrize(
    "noise, least, most",
    [
        ({"word_dropout": 0.5}, 0.95, 1),
        ({"word_dropout": 0.5, "word_dropout_epochs": 1}, 0.47, 0.5),
        ({"coword_dropout": 1.0}, 0.3, 1),
    ],
)
def test_every_epoch_has_its_own_noise_and_every_instance(make_trainer, noise, least, most):
    trainer = make_trainer(max_steps=-1, num_train_epochs=2, **{"word_dropout": 0.0, **noise})
    seen = []
    step = trainer.training_step
    trainer.training_step = lambda model, inputs, *args: seen.append(inputs) or step(model, inputs, *args)
    trainer.train()
    rows = list(itertools.chain(*(batch["input_ids"].tolist() for batch in seen)))
    assert len(rows) == 2 * len(trainer.train_dataset)
    mask, pad = trainer.processing_class.mask_token_id, trainer.processing_class.pad_token_id
    noisy = {tuple(i for i in row if i != pad) for row in rows if mask in row}
    assert least < len(noisy) / len(rows) <= most


def test_validation_by_translation(experiment, monkeypatch):
    validated = []
    # A model after two updates would score nothing.
    fixed = {"s-BLEU": {"score": 12.5}, "d-BLEU/document": {"score": 34.5}}
    score = "modeling_gtransformer.training.experiment.score_documents"
    monkeypatch.setattr(score, lambda *documents: validated.append(documents) or fixed)
    recipe = experiment("generate", predict_with_generate=True, max_steps=2)
    scores = train_recipe([recipe])
    # The translations are those of the model that was saved, segment by segment.
    documents = read_json_lines(*validation_files(recipe))
    corpus = StoredCorpus.from_files(validation_files(recipe), ("source", "target"))
    model = GTransformerForConditionalGeneration.from_pretrained(output(recipe)).eval()
    processor = GTransformerProcessor.from_pretrained(output(recipe))
    hypotheses, references = [], []
    for segment in make_segments(corpus, processor, 64).with_format(None):
        generated = model.generate(input_ids=torch.tensor([segment["input_ids"]]))
        hypotheses += processor.batch_decode_sentences(generated)
        first, size = segment["first_sentence"], segment["sentences"]
        references.append(documents[segment["document"]]["target"][first : first + size])
    assert validated[-1] == (hypotheses, references)
    assert (scores["eval_s_bleu"], scores["eval_d_bleu"]) == (12.5, 34.5)
    # The loss is the same whether or not the trainer also translates.
    plain = train_recipe([experiment("plain", max_steps=2)])
    assert scores["eval_loss"] == pytest.approx(plain["eval_loss"], rel=1e-6)


def test_validation_logs_the_entropies(experiment):
    # Batches of 3 of the 4 validation documents and of 1: the mean is over tokens, not over batches.
    scores = train_recipe([experiment("entropy", attention_entropy=True, max_steps=1, per_device_eval_batch_size=3)])
    alone = train_recipe([experiment("entropy-1", attention_entropy=True, max_steps=1, per_device_eval_batch_size=1)])
    names = {f"eval_entropy_{stack}_{kind}" for stack in STACKS for kind in ("group", "global")}
    assert names == {name for name in scores if "entropy" in name}
    for name in names:
        assert scores[name] == pytest.approx(alone[name], rel=1e-4) and 0 < scores[name] < 7


def test_rows_that_only_fill_up_a_batch_have_no_entropy(make_trainer):
    trainer, totals = make_trainer(attention_entropy=True), []
    rows = [trainer.eval_dataset[index] for index in (0, 1)]
    blank = {**rows[0], "labels": torch.full_like(rows[0]["labels"], -100)}
    for batch in (rows, [*rows, blank]):
        inputs = trainer.data_collator(batch)
        trainer._entropies = {}
        trainer._add_entropies({name: inputs[name] for name in ("input_ids", "attention_mask")}, inputs["labels"])
        totals.append(trainer._entropies)
    torch.testing.assert_close(*totals)


def test_other_updates_are_not_continued(experiment):
    """A checkpoint counts updates: with others it would lie elsewhere in the corpus."""
    settings = {"max_steps": 2, "save_steps": 1, "eval_strategy": "no"}
    begun = experiment("begun", **settings, gradient_accumulation_steps=2)
    train_recipe([begun])
    checkpoint = ["--resume_from_checkpoint", str(output(begun) / "checkpoint-1")]
    other = [experiment("other", **settings, gradient_accumulation_steps=3), *checkpoint]
    message = (
        r"has 2 batches per update, this training 3 \(1 processes, 3 each\): it would repeat some segments and miss "
        r"others\. Set tokens_per_update .* does not change, or accept that with --ignore_data_skip true\.$"
    )
    with pytest.raises(ValueError, match=message):
        train_recipe(other)
    train_recipe([*other, "--ignore_data_skip", "true"])
    # Old checkpoints do not have the number.
    kept = output(begun) / "checkpoint-1" / "trainer_state.json"
    state = json.loads(kept.read_text())
    state["stateful_callbacks"] = {"TrainerControl": state["stateful_callbacks"]["TrainerControl"]}
    kept.write_text(json.dumps(state))
    old = experiment("old", **settings, gradient_accumulation_steps=3)
    train_recipe([old, *checkpoint])
    assert '"batches_per_update": 3' in (output(old) / "checkpoint-2" / "trainer_state.json").read_text()


def test_embeddings_that_are_no_longer_tied_are_not_trained(make_trainer):
    """FSDP of Accelerate 1.14 puts them into two groups; before torch 2.13, nothing else says so."""
    trainer = make_trainer(eval_strategy="no")
    embeddings = trainer.model.model.decoder.embed_tokens
    embeddings.weight = torch.nn.Parameter(embeddings.weight.detach().clone())
    with pytest.raises(UsageError, match=r"unties the embeddings: pip install 'accelerate<1\.14'"):
        trainer.train()


def test_the_best_model_is_kept(experiment):
    """Even if it is that of the greatest loss."""
    best = {"load_best_model_at_end": True, "metric_for_best_model": "loss", "greater_is_better": True}
    recipe = experiment("best", max_steps=2, eval_steps=1, **best)
    train_recipe([recipe])
    losses = {step: value for (step, name), value in history(recipe).items() if name == "eval_loss"}
    assert losses[1] > losses[2]
    torch.testing.assert_close(load_file(output(recipe) / "checkpoint-1" / "model.safetensors"), weights(recipe))


def test_adapters_are_loaded_by_the_model(make_trainer, monkeypatch):
    """In a resumption, and as the best ones. `Trainer` could not load the file."""
    settings = {"max_steps": 1, "eval_steps": 1, "load_best_model_at_end": True}
    begun = make_trainer(**settings)
    begun.train()
    checkpoint = Path(begun.state.best_model_checkpoint)
    file, loaded = checkpoint / "adapter_model.safetensors", []
    file.touch()
    trainer = make_trainer(**settings)
    monkeypatch.setattr(trainer.model, "set_adapter_weights", loaded.append)
    trainer.train(resume_from_checkpoint=str(checkpoint))
    assert loaded == [file, file]


def stop_after(step):
    """What `Trainer` does after every step, until it is interrupted behind this one."""
    original = Trainer._maybe_log_save_evaluate

    def maybe_stop(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if self.state.global_step == step:
            raise KeyboardInterrupt

    return maybe_stop


def test_only_the_adapter_is_trained_saved_and_resumed(adapters, experiment, tmp_path):
    """LoRA in the group attention, global attention and gates as a whole, nothing else; interrupted or not."""
    base = experiment("base", config=RECIPE_CONFIG | ONLY_GROUP, max_steps=1, eval_strategy="no")
    train_recipe([base])
    lora = read_recipe("mbart25_lora")["lora"]
    settings = {"model_name_or_path": str(output(base)), "lora": lora, "config": RECIPE_CONFIG}
    settings |= {"save_strategy": "steps", "save_steps": 4, "load_best_model_at_end": True}
    settings |= {"metric_for_best_model": "loss"}
    straight, stopped = experiment("lora_straight", **settings), experiment("lora", **settings)
    train_recipe([straight])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_maybe_log_save_evaluate", stop_after(5))
        with pytest.raises(KeyboardInterrupt):
            train_recipe([stopped])
    train_recipe([stopped])

    assert not (output(stopped) / "model.safetensors").exists()
    resumed, expected = (load_file(output(recipe) / "adapter_model.safetensors") for recipe in (stopped, straight))
    torch.testing.assert_close(resumed, expected)
    assert all(any(part in name for part in ("lora_A", "lora_B", "_global.", "_gate.")) for name in resumed)
    assert any("self_attn.q_proj.lora_A" in name for name in resumed)
    assert any("encoder_attn_global.q_proj.weight" in name for name in resumed)
    assert not any("_global" in name and "lora" in name for name in resumed)
    # What has been trained is a model for the commands, without its base being named.
    options = ["--model", str(output(stopped)), "--output", str(tmp_path / "out.jsonl")]
    assert gtransformer(["translate", *validation_files(stopped), *options]) == 0
    assert [len(row["translation"]) for row in read_json_lines(tmp_path / "out.jsonl")] == [
        len(row["source"]) for row in read_json_lines(*validation_files(stopped))
    ]


def test_the_trainer_publishes(experiment, hub, run):
    recipe = experiment("pushed", max_steps=2, push_to_hub=True, hub_model_id="someone/trained")
    run(f"from train.train import main; main(['train', {recipe!r}])", PYTHONPATH=str(ROOT))
    files = hub.repositories["someone/trained"].files
    assert {"model.safetensors", "generation_config.json", "processor_config.json", "tokenizer.json"} <= set(files)
    assert {"modeling_gtransformer.py", "pipeline_gtransformer.py", "terminology.py", "README.md"} <= set(files)
    assert "AutoModelForSeq2SeqLM" in json.loads(files["config.json"])["auto_map"]
    card = files["README.md"].decode()
    assert "2 updates" in card and "loss per token" in card and "someone/trained" in card


def test_an_upload_has_the_code_of_model_and_processor(make_trainer, monkeypatch, tmp_path):
    def push_to_hub(trainer, *args, **kwargs):
        trainer.model.save_pretrained(tmp_path)
        trainer.processing_class.save_pretrained(tmp_path)
        return args, kwargs

    monkeypatch.setattr(Trainer, "push_to_hub", push_to_hub)
    assert make_trainer().push_to_hub("message", blocking=False) == (("message",), {"blocking": False})
    for name, auto_class in (("config", "AutoModelForSeq2SeqLM"), ("processor_config", "AutoProcessor")):
        assert auto_class in json.loads((tmp_path / f"{name}.json").read_text())["auto_map"]


def test_the_card_names_licence_data_and_repository(make_trainer):
    trainer = make_trainer(max_steps=1, eval_strategy="no")
    trainer.hub_model_id = "someone/carded"
    trainer.save_model()
    trainer.create_model_card(license="mit", dataset="user/corpus")
    card = ModelCard.load(Path(trainer.args.output_dir) / "README.md")
    assert (card.data.license, card.data.datasets) == ("mit", ["user/corpus"]) and "someone/carded" in card.text


def test_the_generation_config_stays(make_trainer):
    """`Trainer` would make an end of sequence of the `</s>` that closes a sentence, and `Seq2SeqTrainer` writes a
    maximum of 20 tokens into it, which would cut whatever the model translates later."""
    trainer = make_trainer(max_steps=1, predict_with_generate=True)
    trainer.compute_metrics = lambda prediction: {"translated": len(prediction.predictions)}
    before = trainer.model.generation_config.to_dict()
    trainer.train()
    assert trainer.evaluate()["eval_translated"] == len(trainer.eval_dataset)
    assert trainer.model.generation_config.to_dict() == before
    batch = trainer.data_collator([*trainer.eval_dataset])
    _, generated, _ = trainer.prediction_step(trainer.model, batch, False, max_new_tokens=2)
    assert generated.ne(trainer.processing_class.pad_token_id).sum(dim=1).max() <= 3
