"""Hashes of files, code, processors and translators, to validate cached or unfinished work."""

import hashlib
import inspect
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, ProcessorMixin

from .corpus_files import open_binary


# Configuration fields that do not affect a translation.
INCIDENTAL = ("_name_or_path", "transformers_version")


def hash_of_file(path: str) -> str:
    """Computes the SHA-256 of a file."""
    with open_binary(path) as file:
        return _digest(iter(lambda: file.read(2**20), b""))


def stats_of_weights(folder: str | Path) -> list[list[Any]]:
    """Lists names, sizes and times of the weight files of a local model, which change with every training."""
    stats = [(file.name, file.stat()) for file in sorted(Path(folder).glob("*.safetensors"))]
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]


def hash_of_code(*parts: Callable) -> str:
    """Computes the SHA-256 of the source files of functions and classes."""
    return _digest(Path(inspect.getfile(part)).read_bytes() for part in parts)


def hash_of_processor(processor: ProcessorMixin) -> str:
    """Computes the SHA-256 of the saved files of a processor, the common form of all tokenizers."""
    with tempfile.TemporaryDirectory() as folder:
        processor.save_pretrained(folder)
        files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
        return _digest(part for file in files for part in (file.name.encode(), file.read_bytes()))


def hashes_of_translator(model: PreTrainedModel, processor: ProcessorMixin) -> dict[str, str]:
    """
    Hashes the loaded `weights`, `configuration` (including that of generation) and `processor`, independent of the
    origin of the model.
    """
    weights = sorted(model.state_dict().items())
    return {
        "weights": _digest(f"{name} {_content_of(value)}".encode() for name, value in weights),
        "configuration": _digest(_in_json(each.to_dict()) for each in (model.config, model.generation_config)),
        "processor": hash_of_processor(processor),
    }


def _content_of(value: torch.Tensor) -> str:
    """Summarizes a tensor by type, shape and hash."""
    content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return f"{value.dtype} {tuple(value.shape)} {_digest([content])}"


def _in_json(configuration: dict[str, Any]) -> bytes:
    kept = {name: value for name, value in configuration.items() if name not in INCIDENTAL}
    return json.dumps(kept, sort_keys=True, default=str).encode()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
