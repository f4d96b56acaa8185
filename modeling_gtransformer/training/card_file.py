"""Cards in folders; a card that was edited by hand is kept."""

import hashlib
import re
from pathlib import Path

from huggingface_hub import RepoCard
from transformers.utils import logging

from ..runtime.atomic_file import write_atomic


logger = logging.get_logger(__name__)

MARK = "<!-- Generated: {}. A card that has been edited since is kept. -->"


def save_card(card: RepoCard, path: Path, overwrite: bool = False) -> None:
    """
    Saves a generated card. A card that was written or edited by hand is kept, with a warning.

    Args:
        overwrite: whether to replace such a card, too.
    """
    if path.exists() and not overwrite and not is_generated(path.read_text(encoding="utf-8")):
        logger.warning(f"{path} was written or edited by hand and is kept: --overwrite_card replaces it.")
        return
    text = str(card).rstrip("\n") + "\n"
    write_atomic(path, f"{text}\n{MARK.format(_digest(text))}\n")


def is_generated(text: str) -> bool:
    """Tells whether a card is unchanged since [`save_card`] wrote it."""
    body, separator, mark = text.replace("\r\n", "\n").rstrip("\n").rpartition("\n\n<!-- ")
    digest = re.fullmatch(MARK.removeprefix("<!-- ").format("([0-9a-f]{16})"), mark)
    return bool(separator) and digest is not None and digest[1] == _digest(f"{body}\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
