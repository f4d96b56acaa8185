"""Time and memory for a long document, in a model with few positions that count per sentence.

    python benchmarks/long_document.py [--sentences 100 1000 10000]

Sentences have eight random words. A small model with 512 learned positions, and only group attention like a
sentence-level translator, decodes eight tokens per sentence greedily. Every document has more tokens than the model
has positions. Each is translated in a new process, after a short one.
"""

import random

from measure import alone, memory_mb, parse_options, save, show, timed
from systems import make_translator

from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.sentence_level_models import ONLY_GROUP


WORDS = 8
CONFIG = {**ONLY_GROUP, "position_scope": "sentence", "max_position_embeddings": 512}


def translate(sentences: int) -> dict[str, float]:
    """Returns seconds and peak memory for a document in this process."""
    rng = random.Random(0)
    words = [f"w{number}" for number in range(2000)]
    model, processor = make_translator(words, "small", WORDS, **CONFIG)
    document = [" ".join(rng.choices(words, k=WORDS)) for _ in range(sentences)]
    translate_documents(model, processor, [document[:16]])
    before = memory_mb("VmHWM")
    translated = []
    seconds = timed(lambda: translated.extend(translate_documents(model, processor, [document])))
    if len(translated[0].sentences) != sentences:
        raise RuntimeError(f"{len(translated[0].sentences)} of {sentences} sentences")
    tokens = sum(map(len, processor.encode_sentences(document))) + sentences
    peak = memory_mb("VmHWM")
    return {"source_tokens": tokens, "seconds": seconds, "peak_mb": peak, "peak_mb_before": before}


def main() -> None:
    args = parse_options(__doc__, sentences=[100, 1000, 10000])
    results = {}
    for sentences in args.sentences:
        results[str(sentences)] = alone(translate, sentences)
        show("sentences", {str(sentences): results[str(sentences)]})
    save(args, "long_document", results)


if __name__ == "__main__":
    main()
