"""Tiny sentence-level translators of every family, made by Transformers' own models and tokenizers: checkpoints as
users have."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import sentencepiece
import torch
from tiny import SIZE
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartTokenizer,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    NllbTokenizer,
    PLBartConfig,
    PLBartForConditionalGeneration,
    PLBartTokenizer,
)


# Large enough to learn the pairs.
LEARNING = {
    **SIZE,
    "d_model": 32,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "init_std": 0.1,
}
PAIRS = {
    "the cat sleeps": "die katze schläft",
    "it is old": "sie ist alt",
    "the old dog is here": "der alte hund ist hier",
    "a dog sees the cat": "ein hund sieht die katze",
    "here it sleeps": "hier schläft sie",
    "the cat is old": "die katze ist alt",
}
# Subwords of every published vocabulary that are also codes of languages.
CODES = ["en", "de", "is", "to", "por"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyzäöüßD<>/_.-[]"]


# Words from which BPE learns these subwords.
WITH_CODES = [letter + code for code in CODES for letter in "hklmr"]


@dataclass(frozen=True)
class Family:
    """A family of sentence-level translators: classes of Transformers, and languages, the source first."""

    name: str
    model_class: type
    config_class: type
    config: dict = field(default_factory=dict)
    languages: tuple[str, ...] = (None, None)

    def save(self, folder: Path, steps: int = 120) -> str:
        """Trains a tiny translator of a few sentence pairs, and saves it as Transformers does."""
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        tokenizer = TOKENIZERS[self.name.partition("-")[0]](folder, self.name)
        known = {**tokenizer.get_vocab(), **getattr(tokenizer, "lang_token_to_id", {})}
        rows = max(len(tokenizer), max(known.values()) + 1)
        ids = {name: getattr(tokenizer, name) for name in ("pad_token_id", "eos_token_id")}
        if self.name.startswith("marian"):
            ids |= {"decoder_start_token_id": tokenizer.pad_token_id, "forced_eos_token_id": 0}
        # As hub checkpoints have it, the matrix may have more rows than there are tokens.
        config = self.config_class(**LEARNING, **ids, **self.config, vocab_size=rows + 2)
        if self.name == "mbart":
            config.decoder_start_token_id = tokenizer.convert_tokens_to_ids(self.languages[1])
        if not config.tie_word_embeddings or not getattr(config, "share_encoder_decoder_embeddings", True):
            config.decoder_vocab_size = len(tokenizer.target_encoder) + 1
        model = self.model_class(config)
        train(model, tokenizer, self.languages, steps)
        if hasattr(model, "final_logits_bias") and self.name.startswith("marian"):
            model.final_logits_bias.normal_(std=0.1)
        settings = model.generation_config
        settings.max_length, settings.num_beams = 200, 1
        if self.name in ("mbart-50", "m2m_100", "m2m_100-nllb"):
            code = tokenizer.get_lang_token(self.languages[1]) if self.name == "m2m_100" else self.languages[1]
            settings.forced_bos_token_id = tokenizer.convert_tokens_to_ids(code)
        model.eval().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return str(folder)


def train(model, tokenizer, languages, steps: int) -> None:
    """Teaches the pairs, to every target language the same, so that sentences end by themselves."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 5e-3)
    for step in range(steps):
        target = languages[1 + step % (len(languages) - 1)]
        batch = encode(tokenizer, [*PAIRS], languages[0], target, [*PAIRS.values()])
        labels = batch.pop("labels")
        loss = model(**batch, labels=labels.masked_fill(labels == tokenizer.pad_token_id, -100)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def encode(tokenizer, texts, src_lang=None, tgt_lang=None, targets=None):
    """Sentences as Transformers' own tokenizer gives them to the plain model."""
    if isinstance(tokenizer, MarianTokenizer):
        texts = [f">>{tgt_lang}<< {text}" if tgt_lang else text for text in texts]
    elif src_lang:
        tokenizer.src_lang, tokenizer.tgt_lang = src_lang, tgt_lang
    return tokenizer(texts, text_target=targets, return_tensors="pt", padding=True)


def words_of(texts) -> list[str]:
    return sorted({f"▁{word}" for text in texts for word in text.split()})


def unigram(first) -> list[tuple[str, float]]:
    pieces = [*words_of([*PAIRS, *PAIRS.values()]), "▁", *CODES, *LETTERS]
    return [(token, 0.0) for token in first] + [(piece, -1.0 - i / 99) for i, piece in enumerate(pieces)]


def sentencepiece_model(folder: Path, name: str, texts) -> tuple[str, list[str]]:
    """A SentencePiece model of a few words, and its pieces."""
    prefix = folder / name
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*texts, *LETTERS] * 3),
        model_prefix=str(prefix),
        vocab_size=90,
        hard_vocab_limit=False,
        character_coverage=1.0,
        user_defined_symbols=CODES,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    return f"{prefix}.model", [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]


def mbart(folder: Path, name: str):
    if name == "mbart-50":
        return MBart50Tokenizer(vocab=unigram(["<unk>", "<s>", "</s>"]), src_lang="en_XX", tgt_lang="de_DE")
    return MBartTokenizer(vocab=unigram(["<s>", "<pad>", "</s>", "<unk>"]), src_lang="en_XX", tgt_lang="ro_RO")


def m2m_100(folder: Path, name: str):
    if name == "m2m_100-nllb":
        bpe = Tokenizer(models.BPE(unk_token="<unk>"))
        bpe.pre_tokenizer = pre_tokenizers.Metaspace()
        specials = ["<s>", "<pad>", "</s>", "<unk>"]
        bpe.train_from_iterator(
            [*PAIRS, *PAIRS.values(), *LETTERS, *WITH_CODES], trainers.BpeTrainer(special_tokens=specials)
        )
        content = json.loads(bpe.to_str())["model"]
        merges = [tuple(merge) for merge in content["merges"]]
        return NllbTokenizer(vocab=content["vocab"], merges=merges, src_lang="eng_Latn", tgt_lang="deu_Latn")
    file, pieces = sentencepiece_model(folder, "sentencepiece.bpe", [*PAIRS, *PAIRS.values()])
    vocabulary = {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    return M2M100Tokenizer(str(folder / "vocab.json"), file, src_lang="en", tgt_lang="de")


def marian(folder: Path, name: str):
    source_spm, source = sentencepiece_model(folder, "source", PAIRS)
    target_spm, target = sentencepiece_model(folder, "target", PAIRS.values())
    codes = [f">>{code}<<" for code in ("deu", "fra", "ron")] if name == "marian-many" else []
    files = {
        "vocab": source if name == "marian-two" else dict.fromkeys([*source, *target]),
        "target_vocab_file": target,
    }
    pad = 2 + max(map(len, files.values())) + len(codes)  # one id for both sides
    for file, pieces in files.items():
        vocabulary = {token: i for i, token in enumerate(["</s>", "<unk>", *pieces, *codes])}
        (folder / f"{file}.json").write_text(json.dumps({**vocabulary, "<pad>": pad}))
    return MarianTokenizer(
        source_spm,
        target_spm,
        str(folder / "vocab.json"),
        target_vocab_file=str(folder / "target_vocab_file.json"),
        source_lang="en",
        target_lang="de",
        separate_vocabs=name == "marian-two",
    )


def bart(folder: Path, name: str):
    bpe = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator([*PAIRS, *PAIRS.values(), *WITH_CODES], 330, special_tokens=specials)
    bpe.save_model(str(folder))
    return BartTokenizer.from_pretrained(folder)


def plbart(folder: Path, name: str):
    file, _ = sentencepiece_model(folder, "sentencepiece.bpe", [*PAIRS, *PAIRS.values()])
    return PLBartTokenizer(file, language_codes="multi", src_lang="en_XX", tgt_lang="java")


TOKENIZERS = {"mbart": mbart, "m2m_100": m2m_100, "marian": marian, "bart": bart, "plbart": plbart}
RELU = {"scale_embedding": True, "activation_function": "relu"}
SWISH = {"scale_embedding": True, "activation_function": "swish"}
FAMILIES = [
    Family("mbart", MBartForConditionalGeneration, MBartConfig, {"scale_embedding": True}, ("en_XX", "ro_RO")),
    Family(
        "mbart-50",
        MBartForConditionalGeneration,
        MBartConfig,
        RELU | {"decoder_start_token_id": 2},
        ("en_XX", "de_DE", "fr_XX", "ro_RO"),
    ),
    Family("m2m_100", M2M100ForConditionalGeneration, M2M100Config, {}, ("en", "de", "fr", "ro")),
    Family(
        "m2m_100-nllb",
        M2M100ForConditionalGeneration,
        M2M100Config,
        {},
        ("eng_Latn", "deu_Latn", "fra_Latn", "ron_Latn"),
    ),
    Family("marian", MarianMTModel, MarianConfig, SWISH),
    Family("marian-many", MarianMTModel, MarianConfig, SWISH, (None, "deu", "fra", "ron")),
    Family("marian-two", MarianMTModel, MarianConfig, SWISH | {"share_encoder_decoder_embeddings": False}),
    Family("bart", BartForConditionalGeneration, BartConfig),
    Family("plbart", PLBartForConditionalGeneration, PLBartConfig, {}, ("en_XX", "java", "python", "go")),
]
