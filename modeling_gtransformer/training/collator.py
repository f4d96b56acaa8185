"""Batches of segments with word dropout, CoWord dropout and padding."""

from collections.abc import Sequence

import datasets
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset


# Distance between the sentences with noise of CoWord dropout.
COWORD_DISTANCE = 3


class WordDropout(Dataset):
    """
    Segments with noise: random words become `<mask>`, or `<unk>` in vocabularies without it. Labels do not change.

    * Word dropout replaces words of the source and, independently, of the decoder input (paper, appendix on training).
    * CoWord dropout (Fernandes et al., 2021) replaces source words in every third sentence, starting with a random one
      of the first three. The clean neighbours of these sentences train the use of context.

    Item `e * len(segments) + i` is segment `i` in epoch `e` (see `TokenBatchSampler`). Its noise is a pure function
    of `(seed, e, i)`, so it does not depend on the number of workers and processes, their order, or resumptions.

    Args:
        segments: output of `make_segments`.
        processor: distinguishes words from structural tokens; these and `<unk>` are never replaced.
        probability: probability of word dropout.
        epochs: number of first epochs with word dropout; `None` means all.
        coword_probability: probability of CoWord dropout in the chosen sentences, in all epochs.
    """

    def __init__(
        self,
        segments: datasets.Dataset,
        processor,
        probability: float,
        epochs: int | None,
        seed: int,
        coword_probability: float = 0.0,
    ):
        self.segments, self.probability, self.epochs, self.seed = segments, probability, epochs, seed
        self.coword_probability = coword_probability
        if probability or coword_probability:
            self.target_template, self.mask_token_id = processor.target_template, processor.mask_token_id
            untouched = {*processor.structural_token_ids, processor.tokenizer.unk_token_id} - {None}
            self.untouched = torch.tensor(sorted(untouched))

    def __len__(self) -> int:
        return len(self.segments)

    def __getitem__(self, item: int) -> dict[str, Tensor]:
        return self.__getitems__([item])[0]

    def __getitems__(self, items: Sequence[int]) -> list[dict[str, Tensor]]:
        """Reads the items of a batch at once."""
        places = [divmod(item, len(self.segments)) for item in items]
        segments = self.segments.__getitems__([index for _, index in places])
        return [self._with_noise(segment, *place) for segment, place in zip(segments, places, strict=True)]

    def _with_noise(self, segment: dict[str, Tensor], epoch: int, index: int) -> dict[str, Tensor]:
        source, labels = segment["input_ids"], segment["labels"]
        noisy = {"input_ids": source, "labels": labels}
        rng = np.random.default_rng([self.seed, epoch, index])
        if self.probability and (self.epochs is None or epoch < self.epochs):
            target_input = torch.cat([labels.new_tensor([self.target_template.start]), labels[:-1]])
            noisy["input_ids"] = self._noisy(source, self.probability, rng)
            noisy["decoder_input_ids"] = self._noisy(target_input, self.probability, rng)
        if self.coword_probability:
            sentences = (source == self.target_template.eos_id).cumsum(0)
            chosen = sentences % COWORD_DISTANCE == int(rng.integers(COWORD_DISTANCE))
            noisy["input_ids"] = self._noisy(noisy["input_ids"], self.coword_probability * chosen, rng)
        return noisy

    def _noisy(self, ids: Tensor, probability: float | Tensor, rng: np.random.Generator) -> Tensor:
        dropped = (torch.from_numpy(rng.random(len(ids))) < probability) & ~torch.isin(ids, self.untouched)
        return ids.masked_fill(dropped, self.mask_token_id)


class DocumentCollator:
    def __init__(self, processor):
        self.processor = processor

    def __call__(self, segments: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        names = ("input_ids", "labels", "decoder_input_ids")
        data: dict[str, list[list[int]]] = {
            name: [segment[name].tolist() for segment in segments] for name in names if name in segments[0]
        }
        data["attention_mask"] = [[1] * len(ids) for ids in data["input_ids"]]
        return self.processor.pad(data)
