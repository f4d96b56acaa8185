"""Corpora of documents: reads and checks files, and translates them in chunks. Needs the extra `train`."""

from importlib.util import find_spec


# Packages of the extra, which most modules here, in `evaluation` and in `training` import.
if missing := [
    name for name in ("accelerate", "datasets", "evaluate", "sacrebleu", "yaml") if find_spec(name) is None
]:
    raise ImportError(f"Corpora, scores and training need {', '.join(missing)}: pip install 'gtransformer-hf[train]'")
