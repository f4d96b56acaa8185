"""Languages of a server, by the codes of its clients."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import babel
from babel.core import get_global
from starlette.exceptions import HTTPException

from ..files.languages import language_tag
from ..pipeline_gtransformer import DocumentTranslationPipeline, is_for_one_pair
from .protocol import AUTO


# Code of an unknown language (ISO 639-2).
UNDETERMINED = "und"
# Maximum number of characters for language detection, with tags and without.
MAX_MARKUP, MAX_CHARACTERS = 50_000, 5_000
TAG = re.compile("<[^<>]*>")
# Maximum number of detected languages.
MAX_LANGUAGES = 5


class Pair(NamedTuple):
    """
    The languages of a request.

    Attributes:
        source, target: client codes.
        src_lang, tgt_lang: codes of the processor; `None` for its own languages.
        confidence: probability of a detected source in percent.
    """

    source: str
    target: str
    src_lang: str | None
    tgt_lang: str | None
    confidence: float | None = None


class Languages:
    """
    Source and target languages of a pipeline.

    A client code is a two-letter code (`de`), or a whole tag (`zh-Hans`) if several codes of the processor
    (`zho_Hans`, `zho_Hant`) share two letters. The processor's own codes are also accepted.

    Attributes:
        sources, targets: codes of the processor by client code; `None` for the processor's own language.
        own_source, own_target: client codes of the processor's own languages, or else the first code.
        detect: detector of [`language_detector`] for the sources.
    """

    def __init__(self, pipeline: DocumentTranslationPipeline):
        processor = pipeline.processor
        codes = [] if is_for_one_pair(pipeline.model, processor) else processor.language_codes
        reads_code = "src_lang" in (*processor.template.source_prefix, *processor.template.source_suffix)
        self.sources = _by_client_code(codes if reads_code else [], processor.src_lang)
        self.targets = _by_client_code(codes, processor.tgt_lang)
        self.own_source = _own(self.sources, processor.src_lang)
        self.own_target = _own(self.targets, processor.tgt_lang)
        self.detect = language_detector(self.sources)

    def pair(self, source: str, target: str | None, texts: Sequence[str]) -> Pair:
        """
        Resolves the languages of a request.

        Args:
            source: client code; `auto` detects the language of the texts.
            target: client code; by default the pipeline's own language.

        Raises:
            HTTPException: the model does not support a language, or the source cannot be detected.
        """
        confidence = None
        if source == AUTO:
            if not texts and len(self.sources) > 1:
                raise HTTPException(400, "The server cannot detect the language of this format: set source.")
            language, confidence = self.detect("\n".join(texts))[0]
            source, *others = [code for code in self.sources if code.split("-")[0] == language]
            if others:
                codes = " or ".join([source, *others])
                raise HTTPException(400, f"The text is in {name_of(language)}: set source to {codes}.")
        source, src_lang = _find(source, self.sources, "from")
        target, tgt_lang = _find(target or self.own_target, self.targets, "into")
        return Pair(source, target, src_lang, tgt_lang, confidence)

    def listed(self) -> list[dict[str, Any]]:
        targets = [*self.targets]
        return [
            {"code": code, "name": name_of(code), "targets": targets if code in self.sources else []}
            for code in self.sources | self.targets
        ]


def language_detector(codes: Iterable[str]) -> Callable[[str], list[tuple[str, float]]]:
    """
    Makes a detector, which lists possible languages of a text with their probabilities in percent, most probable
    first. With several languages and without py3langid, the detector raises an [`HTTPException`].

    Args:
        codes: two-letter codes, or tags that start with one, of which the rest is ignored.
    """
    languages = sorted({code.split("-")[0] for code in codes})
    if len(languages) == 1:
        return lambda text: [(languages[0], 100.0)]
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        return _refuse_detection
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([language for language in languages if language in identifier.labels])

    def detect(text: str) -> list[tuple[str, float]]:
        words = TAG.sub(" ", text[:MAX_MARKUP])[:MAX_CHARACTERS]
        ranked = identifier.rank(words)[:MAX_LANGUAGES]
        return [(language, round(100 * probability, 1)) for language, probability in ranked]

    return detect


def _refuse_detection(text: str) -> list[tuple[str, float]]:
    raise HTTPException(
        501, "This server cannot detect languages: set source, or pip install 'gtransformer-hf[detect]' on the server."
    )


def name_of(code: str) -> str:
    """
    Returns the English name of a language.

    >>> name_of("de"), name_of("zh-Hans"), name_of("und")
    ('German', 'Simplified Chinese', 'Unknown language')
    """
    names = babel.Locale("en").languages
    return names.get(code.replace("-", "_")) or names.get(code.split("-")[0]) or code


def _by_client_code(codes: list[str], own: str | None) -> dict[str, str | None]:
    if not codes:
        return {_short(language_tag(own)): None}
    tags = {code: language_tag(code) for code in codes}
    shared = Counter(_short(tag) for tag in tags.values())
    return {
        _short(tag) if shared[_short(tag)] == 1 else "-".join([_short(tag), *tag.split("-")[1:]]): code
        for code, tag in tags.items()
        if tag is not None
    }


def _short(tag: str | None) -> str:
    """Returns the shortest code for the language of a tag, with two letters if possible."""
    if tag is None:
        return UNDETERMINED
    language = tag.split("-")[0]
    return get_global("language_aliases").get(language, language)


def _own(languages: dict[str, str | None], own: str | None) -> str:
    return next((code for code, language in languages.items() if language in (own, None)), next(iter(languages)))


def _find(code: str, languages: dict[str, str | None], direction: str) -> tuple[str, str | None]:
    wanted = code.replace("_", "-").lower()
    for tag in (wanted, wanted.split("-")[0]):  # de-AT falls back to de
        for known, language in languages.items():
            if tag in (known.lower(), (language or known).replace("_", "-").lower()):
                return known, language
    supported = ", ".join(languages)
    raise HTTPException(400, f"Cannot translate {direction} {code[:50]!r}. Supported languages: {supported}.")
