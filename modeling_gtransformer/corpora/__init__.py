"""Corpora of documents: files that are read and checked, and their translation in chunks. Needs the extra `train`."""

from importlib.util import find_spec


# Packages of the extra, without which most of this, of `evaluation` and of `training` cannot be imported.
if missing := [
    name for name in ("accelerate", "datasets", "evaluate", "sacrebleu", "yaml") if find_spec(name) is None
]:
    raise ImportError(f"Corpora, scores and training need {', '.join(missing)}: pip install 'gtransformer-hf[train]'")
