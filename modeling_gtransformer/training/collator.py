"""Makes batches of segments: word dropout and padding."""

from collections.abc import Sequence

import datasets
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset


class WordDropout(Dataset):
    """Segments with word dropout: with some probability, `<mask>`, or `<unk>` in a vocabulary without it, replaces a
    word of the source and, independently, of the target that the decoder reads; the labels stay clean (paper, appendix
    on training).

    Item `e * len(segments) + i` is segment `i` in epoch `e` (see `TokenBatchSampler`). Its noise is a pure function
    of `(seed, e, i)`: the same with any number of workers and processes, in any order, and after a resumption.

    Args:
        segments: the segments that `make_segments` returns.
        processor: distinguishes words from structural tokens. Neither these nor `<unk>` are replaced.
        probability: probability that a word is replaced.
        epochs: number of first epochs that have noise; `None` means all.
    """

    def __init__(self, segments: datasets.Dataset, processor, probability: float, epochs: int | None, seed: int):
        self.segments, self.probability, self.epochs, self.seed = segments, probability, epochs, seed
        if probability:
            self.start, self.mask_token_id = processor.target_template.start, processor.mask_token_id
            untouched = {*processor.structural_token_ids, processor.tokenizer.unk_token_id} - {None}
            self.untouched = torch.tensor(sorted(untouched))

    def __len__(self) -> int:
        return len(self.segments)

    def __getitem__(self, item: int) -> dict[str, Tensor]:
        return self.__getitems__([item])[0]

    def __getitems__(self, items: Sequence[int]) -> list[dict[str, Tensor]]:
        """Reads the items of a batch from the disk at once."""
        places = [divmod(item, len(self.segments)) for item in items]
        segments = self.segments.__getitems__([index for _, index in places])
        return [self._with_noise(segment, *place) for segment, place in zip(segments, places, strict=True)]

    def _with_noise(self, segment: dict[str, Tensor], epoch: int, index: int) -> dict[str, Tensor]:
        source, labels = segment["input_ids"], segment["labels"]
        if not self.probability or (self.epochs is not None and epoch >= self.epochs):
            return {"input_ids": source, "labels": labels}
        rng = np.random.default_rng([self.seed, epoch, index])
        target_input = torch.cat([labels.new_tensor([self.start]), labels[:-1]])
        return {
            "input_ids": self._noisy(source, rng),
            "labels": labels,
            "decoder_input_ids": self._noisy(target_input, rng),
        }

    def _noisy(self, ids: Tensor, rng: np.random.Generator) -> Tensor:
        dropped = torch.from_numpy(rng.random(len(ids)) < self.probability) & ~torch.isin(ids, self.untouched)
        return ids.masked_fill(dropped, self.mask_token_id)


class DocumentCollator:
    """Pads segments to a batch as the processor does."""

    def __init__(self, processor):
        self.processor = processor

    def __call__(self, segments: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        names = ("input_ids", "labels", "decoder_input_ids")
        data: dict[str, list[list[int]]] = {
            name: [segment[name].tolist() for segment in segments] for name in names if name in segments[0]
        }
        data["attention_mask"] = [[1] * len(ids) for ids in data["input_ids"]]
        return self.processor.pad(data)
