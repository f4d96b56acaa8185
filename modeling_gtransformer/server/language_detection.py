"""Detects the language of a text with py3langid, if it is installed."""

import re
from collections.abc import Iterable

from .api_error import ApiError


# Numbers of characters of a text that are examined, with its tags and without.
MAX_MARKUP, MAX_CHARACTERS = 50_000, 5_000
TAG = re.compile("<[^<>]*>")
# Upper bound on the languages in an answer.
MAX_LANGUAGES = 5


class LanguageDetector:
    """
    Tells which of the languages of a server a text is written in.

    Args:
        codes: codes of two letters, or tags that begin with one. If only one is possible, it is the answer. Codes of
            the same language, such as the scripts of Chinese, are not told apart.
    """

    def __init__(self, codes: Iterable[str]):
        self.codes: dict[str, str] = {}
        for code in codes:
            language = code.split("-")[0]
            self.codes[language] = language if language in self.codes else code
        self._identifier = None
        if len(self.codes) > 1:
            try:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier
            except ImportError:
                return
            self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            self._identifier.set_languages(sorted({*self.codes} & {*self._identifier.labels}))

    def detect(self, text: str) -> list[tuple[str, float | None]]:
        """
        Lists languages of a text with their probabilities, the most probable first; an only language has none.

        Raises:
            ApiError: no detector is installed.
        """
        if len(self.codes) == 1:
            return [(code, None) for code in self.codes.values()]
        if self._identifier is None:
            raise ApiError(
                501, "This server cannot detect languages: name the source, or pip install 'gtransformer-hf[detect]'."
            )
        words = TAG.sub(" ", text[:MAX_MARKUP])[:MAX_CHARACTERS]
        ranked = self._identifier.rank(words)[:MAX_LANGUAGES]
        return [(self.codes[language], probability) for language, probability in ranked]
