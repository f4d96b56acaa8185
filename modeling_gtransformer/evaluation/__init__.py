"""Evaluation of translations and models: scores, test suites, use of context. Needs the extra `train`."""

from importlib.util import find_spec


# Packages of the extra; most modules of `evaluation` and `training` import them.
if missing := [name for name in ("accelerate", "datasets", "sacrebleu", "yaml") if find_spec(name) is None]:
    raise ImportError(f"Scores and training need {', '.join(missing)}: pip install 'gtransformer-hf[train]'")
