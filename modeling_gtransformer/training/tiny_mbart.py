"""A tiny sentence-level mBART that `make demo` uses instead of a downloaded checkpoint."""

import torch
from transformers import MBartConfig, MBartForConditionalGeneration, Trainer, TrainingArguments, set_seed

from ..corpora.stored_corpus import StoredCorpus
from ..processing_gtransformer import GTransformerProcessor
from .collator import DocumentCollator
from .segments import make_segments
from .tokenizer import train_tokenizer


TINY = {
    "d_model": 128,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "max_position_embeddings": 512,
    "init_std": 0.08,  # this width starts learning slowly with mBART's 0.02
}


def pretrain_tiny_mbart(
    folder: str,
    corpus: StoredCorpus,
    languages: tuple[str, str],
    seed: int,
    steps: int = 300,
    learning_rate: float = 2e-3,
) -> None:
    """Trains a tokenizer with the language codes and a small mBART on the sentences of a corpus, and saves them."""
    set_seed(seed)
    sentences = [text for document in corpus.documents for column in corpus.columns for text in document[column]]
    tokenizer = train_tokenizer(sentences, languages)
    processor = GTransformerProcessor(tokenizer, *languages)
    config = MBartConfig(vocab_size=len(tokenizer), scale_embedding=True, dropout=0.0, **TINY)
    model = MBartForConditionalGeneration(config)
    pad = DocumentCollator(processor)

    def collate(segments: list[dict]) -> dict[str, torch.Tensor]:
        batch = pad(segments)
        # mBART starts the decoder with the last token, its language code; our documents start with `<s>`.
        shifted = batch["labels"].masked_fill(batch["labels"] == -100, processor.pad_token_id).roll(1, dims=1)
        shifted[:, 0] = processor.bos_token_id
        return {**batch, "decoder_input_ids": shifted}

    training_args = TrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=64,
        learning_rate=learning_rate,
        warmup_steps=0.1,
        lr_scheduler_type="linear",
        logging_steps=100,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        seed=seed,
    )
    segments = make_segments(corpus, processor, segment_sentences=1)
    Trainer(model, training_args, train_dataset=segments, data_collator=collate).train()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
