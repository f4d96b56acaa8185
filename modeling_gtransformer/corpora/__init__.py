"""Corpora of documents: reads and checks files, and translates them in chunks. Needs the extra `files` or `train`."""

from importlib.util import find_spec


if find_spec("datasets") is None:
    raise ImportError(
        "Corpora need datasets: pip install 'gtransformer-hf[files]' or pip install 'gtransformer-hf[train]'"
    )
