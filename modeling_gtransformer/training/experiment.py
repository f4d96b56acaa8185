"""One training after a recipe: data, model, trainer, checkpoint, validation scores."""

import json
import logging
import os
import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import datasets
import torch
from transformers import EvalPrediction, set_seed
from transformers.utils.logging import disable_progress_bar

from ..configuration_gtransformer import GTransformerConfig
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from .corpus import Document, documents_of, fit_positions, make_segments, read_documents
from .metrics import score_documents
from .paper_corpora import paper_corpus
from .recipe import DataArguments, ModelArguments
from .trainer import GTransformerTrainer, GTransformerTrainingArguments, last_complete_checkpoint


logger = logging.getLogger("train")

# Arguments that may change when a training is continued.
WITHOUT_EFFECT = {"output_dir", "resume_from_checkpoint", "report_to", "disable_tqdm", "local_rank", "run_name"}
WITHOUT_EFFECT |= {"dataloader_num_workers", "save_total_limit", "logging_steps", "log_level", "push_to_hub"}


def train(
    model_args: ModelArguments, data_args: DataArguments, training_args: GTransformerTrainingArguments
) -> dict[str, float]:
    """
    Trains what the arguments of [`parse_recipe`] describe, and writes the checkpoint with its processor and scores
    into `output_dir`. A training that was interrupted continues from its last complete checkpoint.

    Returns:
        The validation scores of the model that it leaves.

    Raises:
        ValueError: the corpus has problems, or `output_dir` holds a training with other arguments.
    """
    logging.basicConfig(format="%(asctime)s %(message)s")
    logger.setLevel(logging.INFO if training_args.should_log else logging.WARNING)
    if not training_args.should_log:
        disable_progress_bar()
    set_seed(training_args.seed)

    checkpoint = training_args.resume_from_checkpoint
    if not checkpoint:
        output_dir = Path(training_args.output_dir)
        refuse_other_arguments(output_dir, asdict(model_args) | asdict(data_args) | training_args.to_dict())
        if (scores := output_dir / "eval_results.json").exists():
            logger.warning(f"{output_dir} holds a training that is finished: nothing is left to do.")
            return json.loads(scores.read_text())
        checkpoint = last_complete_checkpoint(training_args.output_dir)

    # Data first: what is wrong with it should show before a model is loaded.
    train_documents, validation_documents = load_documents(data_args)
    processor = load_processor(model_args)
    model = load_model(model_args, processor)
    if training_args.generation_num_beams:
        # The checkpoint then translates as it was validated.
        model.generation_config.num_beams = training_args.generation_num_beams
        model.generation_config.early_stopping = training_args.generation_num_beams > 1 or None
    columns = (data_args.source_column, data_args.target_column)
    positions = model.config.max_position_embeddings

    def segments_of(documents: list[Document], drop: bool, min_document_tokens: int = 0) -> list[dict]:
        cut = (data_args.segment_tokens, data_args.segment_sentences, min_document_tokens)
        segments = make_segments(documents, processor, columns, *cut)
        return fit_positions(segments, documents, columns[0], positions, drop)

    train_segments = segments_of(train_documents, True, data_args.min_document_tokens)
    train_segments = sample(train_segments, data_args.train_segments, training_args.seed)
    validation_segments = segments_of(validation_documents, drop=False)
    references = [validation_documents[i["document"]][columns[1]][i["sentences"]] for i in validation_segments]

    trainer = GTransformerTrainer(
        model,
        training_args,
        train_dataset=train_segments,
        eval_dataset=validation_segments,
        processing_class=processor,
        compute_metrics=generation_scores(processor, references) if training_args.predict_with_generate else None,
    )

    if checkpoint:
        logger.warning(f"Continuing from {checkpoint}.")
    trainer.train(resume_from_checkpoint=checkpoint)

    trainer.save_model()
    trainer.save_state()
    scores = trainer.evaluate()
    trainer.log_metrics("eval", scores)
    trainer.save_metrics("eval", scores)
    if training_args.push_to_hub:
        trainer.push_to_hub()
    return scores


def refuse_other_arguments(output_dir: Path, arguments: dict[str, Any]) -> None:
    """Keeps the arguments beside the checkpoints, so that a training is only ever continued as it began.

    Raises:
        ValueError: the folder holds a training with other arguments.
    """
    file = output_dir / "arguments.json"
    arguments = {name: value for name, value in arguments.items() if name not in WITHOUT_EFFECT}
    arguments = json.loads(json.dumps(arguments, default=str))
    # One that failed before it had anything to continue from may be begun again with other arguments.
    if file.exists() and (any(output_dir.glob("checkpoint-*")) or any(output_dir.glob("*.safetensors"))):
        before = json.loads(file.read_text(encoding="utf-8"))
        # An argument that did not exist then had no effect.
        changed = [name for name in arguments if name in before and arguments[name] != before[name]]
        if changed:
            raise ValueError(
                f"{output_dir} holds a training with another {', '.join(changed)}: choose another output_dir, remove "
                "this one, or continue in spite of that with --resume_from_checkpoint."
            )
    elif int(os.environ.get("RANK", 0)) == 0:
        output_dir.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(arguments, indent=2) + "\n", encoding="utf-8")


def load_documents(args: DataArguments) -> tuple[list[Document], list[Document]]:
    """Training and validation documents, from files, a dataset, or one of the paper's corpora."""
    columns = (args.source_column, args.target_column)
    if args.dataset_name is None:
        files = (args.train_files, args.validation_files)
        if args.paper_corpus:
            files = (paper_corpus(args.paper_corpus, "train"), paper_corpus(args.paper_corpus, "dev"))
        return read_documents(files[0], columns), read_documents(files[1], columns)
    splits = datasets.load_dataset(args.dataset_name, args.dataset_config_name)
    train, validation = (
        documents_of(splits[split], columns, f"{args.dataset_name}:{split}") for split in ("train", "validation")
    )
    return train, validation


def sample(segments: list[dict], size: int | None, seed: int) -> list[dict]:
    """Draws so many of the segments without replacement (the paper's data scales).

    Raises:
        ValueError: there are not as many.
    """
    if size is None:
        return segments
    if size > len(segments):
        raise ValueError(f"train_segments={size}, but the corpus has {len(segments)} segments.")
    return random.Random(seed).sample(segments, size)


def load_processor(args: ModelArguments) -> GTransformerProcessor:
    """The processor of an earlier training, or a new one around a tokenizer."""
    given = {"src_lang": args.src_lang, "tgt_lang": args.tgt_lang}
    return GTransformerProcessor.from_pretrained(
        args.tokenizer_name_or_path or args.model_name_or_path,
        **{name: language for name, language in given.items() if language is not None},
    )


def load_model(args: ModelArguments, processor: GTransformerProcessor) -> GTransformerForConditionalGeneration:
    """The pretrained model, or a fresh one of the recipe's configuration, set up for the processor's languages."""
    if args.model_name_or_path:
        # In full precision: a checkpoint may be stored in half, in which Adam's small steps get lost.
        model = GTransformerForConditionalGeneration.from_pretrained(
            args.model_name_or_path, dtype=torch.float32, **args.config_values
        )
    else:
        config = GTransformerConfig(vocab_size=len(processor.tokenizer), **args.config_values)
        model = GTransformerForConditionalGeneration(config)
    processor.configure(model)
    if args.lora_values:
        from peft import LoraConfig

        model.add_adapter(LoraConfig(**args.lora_values))
        trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        logger.info(f"An adapter of {trained:,} parameters, for a model of {model.num_parameters() - trained:,}.")
    return model


def generation_scores(
    processor: GTransformerProcessor, references: list[list[str]]
) -> Callable[[EvalPrediction], dict[str, float]]:
    """Validation by translation: s-BLEU, d-BLEU (of a segment, which stands for a document) and chrF."""

    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        ids = prediction.predictions[: len(references)]  # processes may have filled up the last batch
        ids[ids == -100] = processor.pad_token_id
        scores = score_documents(processor.batch_decode_sentences(ids), references)
        return {"s_bleu": scores["s-BLEU"]["score"], "d_bleu": scores["d-BLEU/document"]["score"]}

    return compute_metrics
