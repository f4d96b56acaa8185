"""Runs a training from a recipe: data, model, trainer, checkpoint, validation scores."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import datasets
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoTokenizer, EvalPrediction, set_seed
from transformers.utils.logging import disable_progress_bar

from ..configuration_gtransformer import GTransformerConfig
from ..corpora.corpus_files import files_of_all
from ..corpora.fingerprint import hash_of_file
from ..corpora.stored_corpus import StoredCorpus
from ..document_translation import translate_documents
from ..evaluation.metrics import score_documents
from ..evaluation.provenance import keep_start
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import write_json
from ..runtime.usage_error import UsageError, user_message
from ..sentence import TranslatedDocument
from .arguments import GTransformerTrainingArguments
from .model_card import SAMPLE_NAME
from .paper_corpora import paper_corpus
from .recipe import DataArguments, ModelArguments, parse_recipe, start_of
from .resumption import KeepArguments, find_progress, lasting_arguments
from .segments import fit_positions, make_segments, sample, segment_texts, target_ratio
from .trainer import GTransformerTrainer


logger = logging.getLogger(__name__)

# Number of validation segments translated to measure the typical confidence of a trained model.
CONFIDENCE_SEGMENTS = 8
# Permitted numbers of sentences of the validation document shown in the model card.
SAMPLE_SENTENCES = range(3, 7)


def train_recipe(argv: list[str]) -> dict[str, float]:
    """
    Trains a recipe with the options after it, and returns the validation scores of the final model.

    Raises:
        UsageError: the training cannot start.
    """
    with _usage_errors():
        arguments = parse_recipe(argv)
    return train(*arguments)


@contextlib.contextmanager
def _usage_errors() -> Iterator[None]:
    """Converts errors of user input before the first update to `UsageError`."""
    try:
        yield
    except (OSError, ImportError, ValueError, StrictDataclassError) as error:
        message = user_message(error) if isinstance(error, OSError | ImportError) else str(error)
        raise UsageError(message) from error


def train(
    model_args: ModelArguments, data_args: DataArguments, training_args: GTransformerTrainingArguments
) -> dict[str, float]:
    """
    Trains with the arguments of [`parse_recipe`], and writes the checkpoint with its processor and scores into
    `output_dir`. An interrupted training continues from its last complete checkpoint.

    Returns:
        Validation scores of the final model.

    Raises:
        UsageError: the corpus or the initial checkpoint has problems, or `output_dir` holds a training with other
            arguments.
    """
    logging.basicConfig(format="%(asctime)s %(message)s")
    package = logging.getLogger(__package__.partition(".")[0])
    package.setLevel(logging.INFO if training_args.should_log else logging.WARNING)
    if training_args.disable_tqdm or not training_args.should_log:
        disable_progress_bar()
        datasets.disable_progress_bars()
    set_seed(training_args.seed)

    with _usage_errors():
        refuse_unknown_metric(training_args)
        arguments = asdict(model_args) | asdict(data_args) | training_args.to_dict() | hashes_of_files(data_args)
        arguments = lasting_arguments(training_args, arguments)
        progress = find_progress(training_args, arguments)
    if progress.scores is not None:
        logger.warning(f"{training_args.output_dir} holds a finished training: there is nothing left to do.")
        if training_args.push_to_hub:
            logger.warning("To upload it, run gtransformer publish.")
        return progress.scores
    log_plan(training_args)
    with _usage_errors():
        refuse_missing_start(model_args.model_name_or_path)
        trainer, validation_corpus = make_trainer(model_args, data_args, training_args)
    trainer.add_callback(KeepArguments(arguments))
    if training_args.should_save:
        keep_start(Path(training_args.output_dir), progress.checkpoint)
    if progress.checkpoint:
        logger.warning(f"Continuing from {progress.checkpoint}.")
    if progress.goes_on:
        training_args.resume_from_checkpoint = progress.checkpoint
    trainer.train(resume_from_checkpoint=progress.checkpoint)

    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled  # generates only in all processes at once
    if training_args.should_save and not sharded:
        translate_validation(trainer, validation_corpus, data_args)
    trainer.save_model()
    trainer.save_state()
    scores = trainer.evaluate()
    trainer.log_metrics("eval", scores)
    trainer.save_metrics("eval", scores)
    if training_args.push_to_hub:
        trainer.push_to_hub()
    return scores


def translate_validation(trainer: GTransformerTrainer, corpus: StoredCorpus, data_args: DataArguments) -> None:
    """Translates validation segments to set the processor's typical confidence, and a short document for the card."""
    segments, (source, target) = trainer.eval_dataset, corpus.columns
    pairs = segment_texts(sample(segments, min(len(segments), CONFIDENCE_SEGMENTS), seed=0), corpus)
    shown = next((each for each in corpus.documents if len(each[source]) in SAMPLE_SENTENCES), None)
    pairs += [(shown[source], shown[target])] if shown else []
    translated = translate_documents(
        trainer.model.eval(),
        trainer.processing_class,
        [sentences for sentences, _ in pairs],
        segment_tokens=data_args.segment_tokens,
        segment_sentences=data_args.segment_sentences,
        confidence=True,
    )
    trainer.processing_class.typical_confidence = typical_confidence(translated)
    if shown:
        rows = zip(*pairs[-1], translated[-1].texts, strict=True)
        names = ("source", "reference", "translation")
        write_json(Path(trainer.args.output_dir) / SAMPLE_NAME, [dict(zip(names, row, strict=True)) for row in rows])


def typical_confidence(translated: Sequence[TranslatedDocument]) -> float:
    """Computes the mean log-probability of generated tokens."""
    total, tokens = (sum(getattr(document, name) for document in translated) for name in ("log_probability", "tokens"))
    return round(total / max(tokens, 1), 3)


def hashes_of_files(args: DataArguments) -> dict[str, list[str]]:
    """Hashes the files of documents, to detect changed ones on resumption. Missing files are skipped."""
    hashes = {}
    for name in ("train_files", "validation_files"):
        with contextlib.suppress(FileNotFoundError):
            hashes[f"content of {name}"] = [
                hash_of_file(file) for file in files_of_all(getattr(args, name), columns=2)
            ]
    return hashes


def make_trainer(
    model_args: ModelArguments, data_args: DataArguments, training_args: GTransformerTrainingArguments
) -> tuple[GTransformerTrainer, StoredCorpus]:
    """Returns the trainer with its data, processor and model, and the validation corpus."""
    # Data errors show before a model is loaded. One process per machine prepares the data.
    with training_args.main_process_first(local=False), training_args.main_process_first(local=True):
        train_corpus, validation_corpus = load_corpora(data_args)
        processor = load_processor(model_args)
        cut = (data_args.segment_tokens, data_args.segment_sentences)
        train_segments = make_segments(train_corpus, processor, *cut, data_args.min_document_tokens)
        validation_segments = make_segments(validation_corpus, processor, *cut)
    if data_args.segment_sentences != 1:  # single sentences have no ratio of segment lengths
        processor.target_ratio = target_ratio(train_segments, processor)
    model = load_model(model_args, processor)
    if num_beams := training_args.generation_num_beams:  # becomes the default of the checkpoint
        model.generation_config.num_beams = num_beams
        model.generation_config.early_stopping = num_beams > 1 or None
    train_segments = fit_positions(train_segments, train_corpus, model.config, drop=True)
    train_segments = sample(train_segments, data_args.train_segments, training_args.seed)
    validation_segments = fit_positions(validation_segments, validation_corpus, model.config, drop=False)
    metrics = None
    if training_args.predict_with_generate:
        references = [target for _, target in segment_texts(validation_segments, validation_corpus)]
        metrics = generation_scores(processor, references)
    trainer = GTransformerTrainer(
        model,
        training_args,
        train_dataset=train_segments,
        eval_dataset=validation_segments,
        processing_class=processor,
        compute_metrics=metrics,
    )
    return trainer, validation_corpus


def refuse_unknown_metric(args: GTransformerTrainingArguments) -> None:
    """Raises `ValueError` if no evaluation reports `metric_for_best_model`."""
    known = ["loss", *(["s_bleu", "d_bleu"] if args.predict_with_generate else [])]
    metric = (args.metric_for_best_model or "loss").removeprefix("eval_")
    if metric not in known:
        raise ValueError(
            f"metric_for_best_model must be one of {', '.join(known)}, not {metric}. s_bleu and d_bleu need "
            "--predict_with_generate."
        )


def refuse_missing_start(start: str | None) -> None:
    """Raises `UsageError` if the initial checkpoint is a missing folder, with the command of a packaged recipe for it,
    if any. Other names may exist on the Hub."""
    if start is None or Path(start).exists():
        return
    if command := start_of(start):
        raise UsageError(f"The training starts from {start}, which does not exist: first run {command}.")
    if start.startswith((".", "/", "outputs/")):
        raise UsageError(f"The training starts from {start}, which does not exist.")


def log_plan(args: GTransformerTrainingArguments) -> None:
    """Logs the values derived for this machine."""
    precision = {"no": "float32"}.get(args.mixed_precision, args.mixed_precision)
    logger.info(
        f"Precision: {precision}. Processes: {args.world_size}. Batches per update: {args.batches_per_update}, of up "
        f"to {args.max_tokens} tokens, {args.gradient_accumulation_steps} from each process."
    )


def load_corpora(args: DataArguments) -> tuple[StoredCorpus, StoredCorpus]:
    """Reads training and validation documents from files, a dataset, or one of the paper's corpora."""
    columns = (args.source_column, args.target_column)
    if args.dataset_name is None:
        files = [args.train_files, args.validation_files]
        if args.paper_corpus:
            files = [paper_corpus(args.paper_corpus, split, columns) for split in ("train", "dev")]
        return StoredCorpus.from_files(files[0], columns), StoredCorpus.from_files(files[1], columns)
    name = args.dataset_name
    builder = datasets.load_dataset_builder(name, args.dataset_config_name)
    # The folder in the cache has a hash of the files.
    version = builder.cache_dir if args.dataset_streaming else None
    splits = builder.as_streaming_dataset() if version else datasets.load_dataset(name, args.dataset_config_name)
    if missing := [split for split in ("train", "validation") if split not in splits]:
        raise ValueError(
            f"{name} has the splits {', '.join(splits)}, but no {' and no '.join(missing)}: save the splits with "
            "save_to_disk, and pass their folders as train_files and validation_files."
        )
    train, validation = (
        StoredCorpus.from_dataset(splits[split], columns, f"{name}:{split}", version and f"{version}:{split}")
        for split in ("train", "validation")
    )
    return train, validation


def load_processor(args: ModelArguments) -> GTransformerProcessor:
    """Loads the processor of an earlier training, or makes one for a tokenizer with the initial checkpoint's ids."""
    given = {"src_lang": args.src_lang, "tgt_lang": args.tgt_lang}
    processor = GTransformerProcessor.from_pretrained(
        args.tokenizer_name_or_path or args.model_name_or_path,
        **{name: language for name, language in given.items() if language is not None},
    )
    processor.typical_confidence = None  # of the initial model
    if args.tokenizer_name_or_path and args.model_name_or_path:
        refuse_other_vocabulary(processor, args.model_name_or_path)
    return processor


def refuse_other_vocabulary(processor: GTransformerProcessor, checkpoint: str) -> None:
    """Raises `ValueError` if tokenizer and checkpoint have different ids for a token."""
    try:
        own = AutoTokenizer.from_pretrained(checkpoint).get_vocab()
    except (OSError, ValueError):  # the checkpoint has no tokenizer
        return
    words = processor.tokenizer.get_vocab()
    if other := [word for word, number in words.items() if own.get(word, number) != number]:
        raise ValueError(
            f"The tokenizer and {checkpoint} have different ids for {other[0]!r}: omit tokenizer_name_or_path to use "
            "the tokenizer of the checkpoint."
        )


def load_model(args: ModelArguments, processor: GTransformerProcessor) -> GTransformerForConditionalGeneration:
    """Loads the pretrained model, or makes one with the recipe's configuration, and sets the languages."""
    if args.model_name_or_path:
        # Full precision: Adam's small steps would be lost in half precision.
        model, info = GTransformerForConditionalGeneration.from_pretrained(
            args.model_name_or_path, dtype=torch.float32, output_loading_info=True, **args.config_values
        )
        if args.copy_group_attention:
            copy_group_attention(model, info["missing_keys"])
    else:
        config = GTransformerConfig(vocab_size=len(processor.tokenizer), **args.config_values)
        model = GTransformerForConditionalGeneration(config)
    processor.configure(model)
    if args.lora_values:
        from peft import LoraConfig

        model.add_adapter(LoraConfig(**args.lora_values))
        trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        logger.info(f"Training an adapter of {trained:,} parameters for {model.num_parameters() - trained:,}.")
    return model


def copy_group_attention(model: GTransformerForConditionalGeneration, fresh: Iterable[str]) -> None:
    """Copies the weights of group attention to fresh global attention of the layer."""
    weights = model.state_dict()
    for name in fresh:
        if "_global." in name:
            weights[name].copy_(weights[name.replace("_global.", ".")])


def generation_scores(
    processor: GTransformerProcessor, references: list[list[str]]
) -> Callable[[EvalPrediction], dict[str, float]]:
    """Makes a function that computes s-BLEU and d-BLEU of translated validation segments, as documents."""

    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        ids = prediction.predictions[: len(references)]  # without copies that pad the last batch
        ids[ids == -100] = processor.pad_token_id
        scores = score_documents(processor.batch_decode_sentences(ids), references)
        return {"s_bleu": scores["s-BLEU"]["score"], "d_bleu": scores["d-BLEU/document"]["score"]}

    return compute_metrics
