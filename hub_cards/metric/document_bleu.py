"""BLEU and chrF of sentence-aligned documents, as a metric of the `evaluate` library."""

import datasets
import evaluate

from .scores import score_documents


class DocumentBleu(evaluate.Metric):
    def _info(self):
        documents = datasets.Sequence(datasets.Value("string"))
        features = datasets.Features({"predictions": documents, "references": documents})
        return evaluate.MetricInfo(description=score_documents.__doc__, citation="", features=features)

    def _compute(self, predictions, references, **kwargs):
        return score_documents(predictions, references, **kwargs)
