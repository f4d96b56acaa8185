"""Structural tokens of a tokenizer, including languages: codes, tokens and ids."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable

from transformers import PreTrainedTokenizerBase


# Brackets that some tokenizers put around the code of a language.
LANGUAGE_TOKENS = ("__{}__", ">>{}<<", "[{}]")
BRACKETED = re.compile(r"^(?:__(.+)__|>>(.+)<<|\[(.+)\])$")
NO_LANGUAGES = ("bos", "eos", "pad", "unk", "mask", "cls", "sep")


class LanguageTokens:
    """
    The structural tokens of a tokenizer, as `ids` by token. `<unk>` is not structural.

    Args:
        languages: codes or tokens of languages that the tokenizer may not mark as special.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, languages: Iterable[str]):
        self.tokenizer = tokenizer
        tokens = {token.content: index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
        tokens |= dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
        tokens |= getattr(tokenizer, "lang_token_to_id", getattr(tokenizer, "lang_code_to_id", {}))
        unmarked = [*getattr(tokenizer, "supported_language_codes", ())]
        for language in languages:
            # Without brackets, an unmarked code such as "en" is a subword.
            unmarked += (
                [language] if BRACKETED.match(language) else [form.format(language) for form in LANGUAGE_TOKENS]
            )
        tokens |= {token: tokenizer.convert_tokens_to_ids(token) for token in unmarked}
        # Listed tokens that the vocabulary lacks have no id, or the id of <unk>.
        self.ids = {token: index for token, index in tokens.items() if index not in (None, tokenizer.unk_token_id)}

    @property
    def codes(self) -> list[str]:
        """Codes of all languages, with brackets only if several tokens share a code."""
        others = {getattr(self.tokenizer, f"{name}_token", None) for name in NO_LANGUAGES}
        bare = {token: BRACKETED.sub(r"\1\2\3", token) for token in self.ids.keys() - others}
        counts = Counter(bare.values())
        return sorted(code if counts[code] == 1 else token for token, code in bare.items())

    def find(self, language: str | None) -> int | None:
        """
        Returns the token id of a language, given as a code or a token; `None` if the tokenizer lacks it.

        Raises:
            ValueError: the tokenizer has several tokens for this code.
        """
        if language in self.ids:
            return self.ids[language]
        forms = sorted(form.format(language) for form in LANGUAGE_TOKENS)
        tokens = {form: self.ids[form] for form in forms if form in self.ids}
        if len({*tokens.values()}) > 1:
            raise ValueError(f"The language {language!r} has several tokens: pass one of {', '.join(tokens)}.")
        return next(iter(tokens.values()), None)

    def id_of(self, language: str) -> int:
        """
        Returns the token id of a language.

        Raises:
            ValueError: the tokenizer has no token or several tokens for this language.
        """
        if (token := self.find(language)) is not None:
            return token
        codes = self.codes
        near = [code for code in codes if code[:2] == language[:2]]
        near = near or difflib.get_close_matches(language, codes, n=5, cutoff=0.4)
        raise ValueError(
            f"The tokenizer has no language {language!r}. "
            + (f"Similar codes: {', '.join(near)}." if near else f"Its codes: {', '.join(codes) or 'none'}.")
        )
