"""A file of any format, taken apart, checked to come back as it was, and put together with other sentences."""

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter


def translated(content, format, translate=str.upper):
    """The sentences of a file, and the file with `translate` of each: a function, or a list of translations."""
    file = SplitFile(content, format, sentencex_splitter("en"))
    assert file.rejoin(file.sentences) == content
    translations = list(map(translate, file.sentences)) if callable(translate) else translate
    return file.sentences, file.rejoin(translations)
