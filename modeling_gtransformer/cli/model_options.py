"""Options of every command that translates, and their translator."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..runtime.usage_error import UsageError, user_message
from ..translation_options import TranslationOptions, option


if TYPE_CHECKING:
    from ..runtime.translator import Translator


@dataclass(frozen=True)
class ModelOptions(TranslationOptions):
    """Options of a translation and its model. The glossary is a file."""

    model: str | None = option(
        None,
        "Folder or Hub name of a G-Transformer or a sentence-level model; default: the bundled model of "
        "English-German dialogues.",
    )
    precision: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        None, "Type of the weights; int8 quantises linear layers, on a CPU; default: the checkpoint's."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model == "":
            raise ValueError("model is empty: pass a folder or a model on the Hub, or omit the option.")

    def translator(self, **arguments: Any) -> "Translator":
        """
        Makes the translator of a command, without loading its model.

        Args:
            arguments: additional arguments of [`Translator`].

        Raises:
            UsageError: the glossary cannot be read.
        """
        from ..files import read_glossary
        from ..runtime.translator import SMALL_MODEL, Translator

        given = self.given
        if self.glossary:
            try:
                given["glossary"] = read_glossary(str(self.glossary))
            except (OSError, ValueError) as error:
                raise UsageError(f"The glossary {self.glossary} cannot be used: {user_message(error)}") from error
        if self.model is None:
            print("No --model given: using the bundled English-German model.", file=sys.stderr)
        return Translator(self.model or str(SMALL_MODEL), precision=self.precision, **given, **arguments)
