"""Evaluation of translations and models: scores, test suites, use of context. Needs the extra `train`."""

from .. import corpora as corpora  # names missing packages of the extra
