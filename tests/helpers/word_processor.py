"""A processor whose tokens are words."""


class WordProcessor:
    """Does without a tokenizer; a sentence of dots has no words."""

    def encode_sentences(self, sentences):
        encoded = [[hash(word) for word in sentence.replace(".", "").split()] for sentence in sentences]
        if not all(encoded):
            raise ValueError("nothing to translate")
        return encoded

    def build_source(self, encoded):
        return [token for sentence in encoded for token in (0, *sentence, 2)]

    def build_labels(self, encoded):
        return [*self.build_source(encoded)[1:], 9]
