"""Converts a checkpoint that was trained with the authors' fairseq code (github.com/baoguangsheng/g-transformer).

The checkpoint is loaded without running any code in it. The checkpoint becomes a model, and dictionary and codes
become a processor, so the result translates. A model with BPE reads and writes the kind of text that it was trained
on, tokenized and truecased by Moses; `train/studies/moses.py` converts text in both directions.

Two different dictionaries become two processors. The pipeline cannot use them, because it has only one:

    source = GTransformerProcessor.from_pretrained("outputs/authors/source")
    target = GTransformerProcessor.from_pretrained("outputs/authors/target")
    target.batch_decode_sentences(model.generate(**source(document, return_tensors="pt")))
"""

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import atomic_folder
from ..translation_options import option
from .fairseq import model_from_fairseq, read_checkpoint
from .fairseq_tokenizer import Dictionary, bpe_tokenizer, read_dictionary, sentencepiece_tokenizer


@dataclass(frozen=True)
class FairseqOptions:
    """Options of `gtransformer convert fairseq`."""

    checkpoint: Path = option(MISSING, "Checkpoint of the authors' code, such as checkpoint_best.pt.", argument=True)
    output: Path = option(MISSING, "New folder for model and processor.", argument=True)
    dict: Path = option(MISSING, "File dict.txt of the source, or of both sides.")
    target_dict: Path | None = option(None, "File dict.txt of the target, if it differs from that of the source.")
    bpe_codes: Path | None = option(None, "Codes that subword-nmt learned from both languages.")
    sentencepiece: Path | None = option(None, "SentencePiece model, such as mBART's sentence.bpe.model.")

    def __post_init__(self) -> None:
        if (self.bpe_codes is None) == (self.sentencepiece is None):
            raise ValueError("Give either bpe_codes or sentencepiece.")
        files = [self.checkpoint, self.dict, self.target_dict, self.bpe_codes, self.sentencepiece]
        if missing := [str(file) for file in files if file and not file.is_file()]:
            raise ValueError(f"No such file: {', '.join(missing)}.")


def convert_fairseq(options: FairseqOptions) -> None:
    """
    Writes the model and its processor or processors, and prints a summary.

    Raises:
        ValueError: the files do not belong together, or are not those of such a run.
    """
    with atomic_folder(options.output) as folder:
        print(_convert(options, folder))


def _convert(args: FairseqOptions, folder: Path) -> str:
    arguments, weights = read_checkpoint(args.checkpoint)
    model = model_from_fairseq(arguments, weights)
    languages = arguments["langs"].split(",")
    source = read_dictionary(args.dict, languages)
    target = read_dictionary(args.target_dict or args.dict, languages)
    _check_sizes(weights, source, target)
    if model.config.tie_word_embeddings and source != target:
        raise ValueError("The checkpoint shares its embeddings, so it has one dictionary: leave out --target_dict.")
    sides = {"": source} if source == target else {"source": source, "target": target}
    for side, dictionary in sides.items():
        processor = _make_processor(dictionary, arguments, args, folder / side)
        processor.save_pretrained(folder / side)
    # The last one belongs to the target, whose dictionary has the generated tokens.
    processor.configure(model)
    model.save_pretrained(folder)
    tokens = f"{len(source):,} source and {len(target):,} target tokens"
    made = f"{model.num_parameters():,} parameters, {tokens}, in {args.output}"
    if len(sides) > 1:
        read = f"{args.output}/source reads documents, {args.output}/target writes them"
        made += f"\nNo pipeline: the dictionaries differ; {read}."
    return made


def _check_sizes(weights: dict[str, Any], source: Dictionary, target: Dictionary) -> None:
    """Raises a `ValueError` if a dictionary has another number of tokens than the checkpoint has embeddings."""
    for side, dictionary, name in (("encoder", source, "--dict"), ("decoder", target, "--target_dict")):
        rows = len(weights[f"{side}.embed_tokens.weight"])
        if rows != len(dictionary):
            raise ValueError(
                f"With the special tokens and language codes the dictionary has {len(dictionary)} tokens, the "
                f"checkpoint's {side} {rows}: give its own by {name}."
            )


def _make_processor(
    dictionary: Dictionary, arguments: dict[str, Any], args: FairseqOptions, folder: Path
) -> GTransformerProcessor:
    """Makes the processor of a dictionary for the run's languages; some tokenizers keep their files in the folder."""
    folder.mkdir(parents=True)
    if args.bpe_codes:
        tokenizer = bpe_tokenizer(dictionary, args.bpe_codes, folder)
    else:
        assert args.sentencepiece is not None
        tokenizer = sentencepiece_tokenizer(dictionary, args.sentencepiece)
    source, target = (f"[{arguments[name]}]" for name in ("source_lang", "target_lang"))
    return GTransformerProcessor(tokenizer, source, target, normalization=None)
