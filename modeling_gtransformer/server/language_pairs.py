"""The languages of a server, by the codes that its clients use."""

from collections import Counter
from typing import Any

import babel
from babel.core import get_global

from ..files.languages import language_tag
from ..pipeline_gtransformer import DocumentTranslationPipeline, knows_one_pair
from .api_error import ApiError


# Code of an unknown language (ISO 639-2).
UNDETERMINED = "und"
AUTO = "auto"


class LanguagePairs:
    """
    The languages that a server translates from and into.

    Clients call a language by its code of two letters, `de`; by its whole tag, `zh-Hans`, where several codes of the
    processor (`zho_Hans`, `zho_Hant`) share two letters; or by the code of the processor.

    Attributes:
        sources, targets: codes of the processor by codes of clients; `None` stands for the processor's own language.
    """

    def __init__(self, translate: DocumentTranslationPipeline):
        processor = translate.processor
        codes = [] if knows_one_pair(translate.model, processor) else processor.language_codes
        reads_code = "src_lang" in (*processor.template.source_prefix, *processor.template.source_suffix)
        self.sources = _by_client_code(codes if reads_code else [], processor.src_lang)
        self.targets = _by_client_code(codes, processor.tgt_lang)
        self.own_source = _own(self.sources, processor.src_lang)
        self.own_target = _own(self.targets, processor.tgt_lang)

    def source(self, code: str) -> tuple[str, str | None]:
        """Finds the codes of clients and of the processor for a source language.

        Raises:
            ApiError: the model does not translate from this language.
        """
        return _find(code, self.sources, "from")

    def target(self, code: str) -> tuple[str, str | None]:
        """Finds the codes of clients and of the processor for a target language.

        Raises:
            ApiError: the model does not translate into this language.
        """
        return _find(code, self.targets, "into")

    def sources_of(self, language: str) -> list[str]:
        """Lists the codes of clients that share a language of two letters."""
        return [code for code in self.sources if code.split("-")[0] == language]

    def listed(self) -> list[dict[str, Any]]:
        """Lists the source languages for clients, each with its targets."""
        targets = [*self.targets]
        return [{"code": code, "name": name_of(code), "targets": targets} for code in self.sources]


def name_of(code: str) -> str:
    """
    Gives the English name of a language.

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
        _short(tag) if shared[_short(tag)] == 1 else "-".join([_short(tag), *(tag or "").split("-")[1:]]): code
        for code, tag in tags.items()
        if tag is not None
    }


def _short(tag: str | None) -> str:
    """Gives the shortest code for the language of a tag: two letters, if they exist."""
    if tag is None:
        return UNDETERMINED
    language = tag.split("-")[0]
    return get_global("language_aliases").get(language, language)


def _own(languages: dict[str, str | None], own: str | None) -> str:
    """Gives the client's code of the processor's default language, or else the first code."""
    return next((code for code, language in languages.items() if language in (own, None)), next(iter(languages)))


def _find(code: str, languages: dict[str, str | None], direction: str) -> tuple[str, str | None]:
    wanted = code.replace("_", "-").lower()
    for known, language in languages.items():
        if wanted in (known.lower(), (language or known).replace("_", "-").lower()):
            return known, language
    for known, language in languages.items():  # for example de-AT, if there is only one German
        if wanted.split("-")[0] == known.lower():
            return known, language
    raise ApiError(400, f"{code[:50]!r} is no language to translate {direction}: possible are {', '.join(languages)}.")
