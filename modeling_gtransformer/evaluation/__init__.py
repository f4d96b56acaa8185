"""What translations and models are worth: scores, test suites, the use of context. Needs the extra `train`."""

from .. import corpora as corpora  # says what is missing, where the extra is
